// RUN: mica-opt %s --mica-assign-precision="weights=bf16 kv=int8" | FileCheck %s --implicit-check-not=mica.cast

// An int8 cache. Appended rows keep their type, and the append quantizes them; queries are not converted for attention,
// however narrow the weights are.
mica.weight @q : tensor<32x32xbf16>

// CHECK-LABEL: func @main
// CHECK-SAME: !mica.kv_cache<2 x 2 x 8 x !mica.int8>
// CHECK-SAME: -> (tensor<?x4x8xf32>, !mica.kv_cache<2 x 2 x 8 x !mica.int8>)
func.func @main(%x: tensor<?x32xf32>, %h: tensor<?x2x8xf32>, %cache: !mica.kv_cache<2 x 2 x 8 x f32>, %layer: index, %s: tensor<?xi32>,
    %p: tensor<?xi32>) -> (tensor<?x4x8xf32>, !mica.kv_cache<2 x 2 x 8 x f32>) {
  // CHECK: mica.cast %{{.*}} : tensor<?x32xf32> to tensor<?x32xbf16>
  %w = mica.get_weight @q : tensor<32x32xbf16>
  %q = mica.linear %x, %w : tensor<?x32xf32>, tensor<32x32xbf16> -> tensor<?x32xf32>
  %qh = mica.split_heads %q : tensor<?x32xf32> to tensor<?x4x8xf32>
  // CHECK: mica.kv_append %{{.*}} : tensor<?x2x8xf32>, <2 x 2 x 8 x !mica.int8>
  %next = mica.kv_append %h, %cache[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !mica.kv_cache<2 x 2 x 8 x f32>
  // CHECK: mica.kv_read {{.*}} -> tensor<?x?x2x8x!mica.int8>
  %keys = mica.kv_read %next[%layer] : !mica.kv_cache<2 x 2 x 8 x f32> -> tensor<?x?x2x8xf32>
  // CHECK: mica.repeat_kv {{.*}} : tensor<?x?x2x8x!mica.int8> -> tensor<?x?x4x8x!mica.int8>
  %keys4 = mica.repeat_kv %keys times 2 : tensor<?x?x2x8xf32> -> tensor<?x?x4x8xf32>
  // CHECK: mica.attention {{.*}} : tensor<?x4x8xf32>, tensor<?x?x4x8x!mica.int8>, tensor<?x?x4x8x!mica.int8> -> tensor<?x4x8xf32>
  %a = mica.attention %qh, %keys4, %keys4 at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.35)
      : tensor<?x4x8xf32>, tensor<?x?x4x8xf32>, tensor<?x?x4x8xf32> -> tensor<?x4x8xf32>
  return %a, %next : tensor<?x4x8xf32>, !mica.kv_cache<2 x 2 x 8 x f32>
}
