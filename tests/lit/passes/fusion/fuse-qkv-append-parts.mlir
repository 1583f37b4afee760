// RUN: mica-opt %s --mica-fuse-qkv-append | FileCheck %s

// Queries, keys and values with weights in different formats are separate matmuls, which one append reads.
!cache = !mica.kv_cache<2 x 2 x 8 x f32>

// CHECK-LABEL: func @values_apart
func.func @values_apart(%x: tensor<?x32xf32>, %wqk: tensor<48x32xf32>, %wv: tensor<16x32xbf16>, %kc: !cache, %vc: !cache, %layer: index,
    %s: tensor<?xi32>, %p: tensor<?xi32>) -> (tensor<?x4x8xf32>, !cache, !cache) {
  // CHECK-NOT: mica.split
  // CHECK: %[[QK:.*]] = mica.linear %{{.*}} -> tensor<?x48xf32>
  // CHECK-NOT: mica.split
  // CHECK: %[[V:.*]] = mica.linear %{{.*}} -> tensor<?x16xf32>
  // CHECK-NOT: mica.split
  // CHECK: %[[T:.*]] = mica.rope_table
  // CHECK: %{{.*}}, %{{.*}}, %{{.*}} = mica.qkv_append %[[QK]] parts(%[[V]] : tensor<?x16xf32>), %[[T]], %{{.*}} half
  // CHECK-NOT: mica.split
  // CHECK: mica.attention
  %qk = mica.linear %x, %wqk : tensor<?x32xf32>, tensor<48x32xf32> -> tensor<?x48xf32>
  %q, %k = mica.split %qk : tensor<?x48xf32> -> tensor<?x32xf32>, tensor<?x16xf32>
  %xb = mica.cast %x : tensor<?x32xf32> to tensor<?x32xbf16>
  %v = mica.linear %xb, %wv : tensor<?x32xbf16>, tensor<16x32xbf16> -> tensor<?x16xf32>
  %qh = mica.split_heads %q : tensor<?x32xf32> to tensor<?x4x8xf32>
  %kh = mica.split_heads %k : tensor<?x16xf32> to tensor<?x2x8xf32>
  %vh = mica.split_heads %v : tensor<?x16xf32> to tensor<?x2x8xf32>
  %qr = mica.rope %qh, %p half theta(1.0e+06) : tensor<?x4x8xf32>, tensor<?xi32>
  %kr = mica.rope %kh, %p half theta(1.0e+06) : tensor<?x2x8xf32>, tensor<?xi32>
  %k1 = mica.kv_append %kr, %kc[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !cache
  %v1 = mica.kv_append %vh, %vc[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !cache
  %ks = mica.kv_read %k1[%layer] : !cache -> tensor<?x?x2x8xf32>
  %vs = mica.kv_read %v1[%layer] : !cache -> tensor<?x?x2x8xf32>
  %a = mica.attention %qr, %ks, %vs at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.3)
      : tensor<?x4x8xf32>, tensor<?x?x2x8xf32>, tensor<?x?x2x8xf32> -> tensor<?x4x8xf32>
  return %a, %k1, %v1 : tensor<?x4x8xf32>, !cache, !cache
}

// A matmul with additional columns is not fused.
// CHECK-LABEL: func @no_other_columns
func.func @no_other_columns(%x: tensor<?x32xf32>, %wqk: tensor<56x32xf32>, %wv: tensor<16x32xf32>, %kc: !cache, %vc: !cache, %layer: index,
    %s: tensor<?xi32>, %p: tensor<?xi32>) -> (tensor<?x4x8xf32>, tensor<?x8xf32>, !cache, !cache) {
  // CHECK-NOT: mica.qkv_append
  %qk = mica.linear %x, %wqk : tensor<?x32xf32>, tensor<56x32xf32> -> tensor<?x56xf32>
  %q, %k, %more = mica.split %qk : tensor<?x56xf32> -> tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x8xf32>
  %v = mica.linear %x, %wv : tensor<?x32xf32>, tensor<16x32xf32> -> tensor<?x16xf32>
  %qh = mica.split_heads %q : tensor<?x32xf32> to tensor<?x4x8xf32>
  %kh = mica.split_heads %k : tensor<?x16xf32> to tensor<?x2x8xf32>
  %vh = mica.split_heads %v : tensor<?x16xf32> to tensor<?x2x8xf32>
  %qr = mica.rope %qh, %p half theta(1.0e+06) : tensor<?x4x8xf32>, tensor<?xi32>
  %kr = mica.rope %kh, %p half theta(1.0e+06) : tensor<?x2x8xf32>, tensor<?xi32>
  %k1 = mica.kv_append %kr, %kc[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !cache
  %v1 = mica.kv_append %vh, %vc[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !cache
  %ks = mica.kv_read %k1[%layer] : !cache -> tensor<?x?x2x8xf32>
  %vs = mica.kv_read %v1[%layer] : !cache -> tensor<?x?x2x8xf32>
  %a = mica.attention %qr, %ks, %vs at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.3)
      : tensor<?x4x8xf32>, tensor<?x?x2x8xf32>, tensor<?x?x2x8xf32> -> tensor<?x4x8xf32>
  return %a, %more, %k1, %v1 : tensor<?x4x8xf32>, tensor<?x8xf32>, !cache, !cache
}
