// RUN: mica-opt %s --split-input-file --verify-diagnostics --cpu-assign-layouts | FileCheck %s

// Weights are stored in order of use; each weight of a layer is 32896 bytes after that of the previous layer.

// CHECK: mica.weight @table at 0 bytes 12288 : tensor<96x32xf32>{{$}}
// CHECK-NEXT: mica.weight @norm.0 at 12288 bytes 128 : tensor<32xf32>
// CHECK-NEXT: mica.weight @w.0 at 12416 bytes 16384 : tensor<65x20xf32, #mica.packed<columns = 64, depth = 1, k_block = 16>>
// CHECK-NEXT: mica.weight @b.0 at 28800 bytes 16384 : tensor<2x48x40xbf16, #mica.packed<columns = 64, depth = 2, k_block = 32>>
// CHECK-NEXT: mica.weight @norm.1 at 45184 bytes 128 : tensor<32xf32>
// CHECK-NEXT: mica.weight @w.1 at 45312 bytes 16384
// CHECK-NEXT: mica.weight @b.1 at 61696 bytes 16384
// An unused weight is stored as well.
// CHECK-NEXT: mica.weight @unused at 78080 bytes 20 : tensor<5xf32>
mica.weight @b.1 : tensor<2x48x40xbf16>
mica.weight @b.0 : tensor<2x48x40xbf16>
mica.weight @unused : tensor<5xf32>
mica.weight @w.0 : tensor<65x20xf32>
mica.weight @w.1 : tensor<65x20xf32>
mica.weight @norm.0 : tensor<32xf32>
mica.weight @norm.1 : tensor<32xf32>
mica.weight @table : tensor<96x32xf32>

// CHECK-LABEL: func private @layer
// CHECK-SAME: tensor<65x20xf32, #mica.packed<columns = 64, depth = 1, k_block = 16>>
func.func private @layer(%x: tensor<?x32xf32>, %y: tensor<?x20xf32>, %b: tensor<?x40xbf16>, %p: tensor<?x1xf32>, %e: tensor<?x1xi32>,
    %norm: tensor<32xf32>, %w: tensor<65x20xf32>, %experts: tensor<2x48x40xbf16>, %down: tensor<2x40x48xbf16>) -> tensor<?x32xf32> {
  %n = mica.rmsnorm %x, %norm eps(1.0e-05) : tensor<?x32xf32>, tensor<32xf32> -> tensor<?x32xf32>
  // CHECK: mica.linear {{.*}} tensor<65x20xf32, #mica.packed<columns = 64, depth = 1, k_block = 16>> -> tensor<?x65xf32>
  %z = mica.linear %y, %w : tensor<?x20xf32>, tensor<65x20xf32> -> tensor<?x65xf32>
  %m = mica.moe_experts %b, %p, %e, %experts, %down up(%experts : tensor<2x48x40xbf16>) silu inner(48)
      : tensor<?x40xbf16>, tensor<?x1xf32>, tensor<?x1xi32>, tensor<2x48x40xbf16>, tensor<2x40x48xbf16> -> tensor<?x40xf32>
  return %n : tensor<?x32xf32>
}
func.func private @call_both(%tokens: tensor<?xi32>, %y: tensor<?x20xf32>, %b: tensor<?x40xbf16>, %p: tensor<?x1xf32>, %e: tensor<?x1xi32>,
    %down: tensor<2x40x48xbf16>) -> tensor<?x32xf32> {
  %table = mica.get_weight @table : tensor<96x32xf32>
  %x = mica.embedding %tokens, %table : tensor<?xi32>, tensor<96x32xf32> -> tensor<?x32xf32>
  // CHECK: mica.get_weight @w.0 : tensor<65x20xf32, #mica.packed<columns = 64, depth = 1, k_block = 16>>
  %w0 = mica.get_weight @w.0 : tensor<65x20xf32>
  %b0 = mica.get_weight @b.0 : tensor<2x48x40xbf16>
  %n0 = mica.get_weight @norm.0 : tensor<32xf32>
  %x1 = call @layer(%x, %y, %b, %p, %e, %n0, %w0, %b0, %down)
      : (tensor<?x32xf32>, tensor<?x20xf32>, tensor<?x40xbf16>, tensor<?x1xf32>, tensor<?x1xi32>, tensor<32xf32>, tensor<65x20xf32>, tensor<2x48x40xbf16>, tensor<2x40x48xbf16>) -> tensor<?x32xf32>
  %w1 = mica.get_weight @w.1 : tensor<65x20xf32>
  %b1 = mica.get_weight @b.1 : tensor<2x48x40xbf16>
  %n1 = mica.get_weight @norm.1 : tensor<32xf32>
  %x2 = call @layer(%x1, %y, %b, %p, %e, %n1, %w1, %b1, %down)
      : (tensor<?x32xf32>, tensor<?x20xf32>, tensor<?x40xbf16>, tensor<?x1xf32>, tensor<?x1xi32>, tensor<32xf32>, tensor<65x20xf32>, tensor<2x48x40xbf16>, tensor<2x40x48xbf16>) -> tensor<?x32xf32>
  return %x2 : tensor<?x32xf32>
}

// -----

// An embedding that is also the output matrix is packed, and so is a router; a matrix that is only gathered from is not.

// CHECK: mica.weight @tied at 0 bytes 16384 : tensor<96x32xf32, #mica.packed<columns = 64, depth = 1, k_block = 16>>
// CHECK: mica.weight @gate at 16384 bytes 8192 : tensor<4x32xf32, #mica.packed<columns = 64, depth = 1, k_block = 16>>
mica.weight @tied : tensor<96x32xf32>
mica.weight @gate : tensor<4x32xf32>
func.func @main(%tokens: tensor<?xi32>) -> (tensor<?x96xf32>, tensor<?x1xf32>, tensor<?x1xi32>) {
  %table = mica.get_weight @tied : tensor<96x32xf32>
  %x = mica.embedding %tokens, %table : tensor<?xi32>, tensor<96x32xf32> -> tensor<?x32xf32>
  %gate = mica.get_weight @gate : tensor<4x32xf32>
  %w, %e = mica.moe_gate %x, %gate softmax k(1) : tensor<?x32xf32>, tensor<4x32xf32> -> tensor<?x1xf32>, tensor<?x1xi32>
  %l = mica.lm_head %x, %table : tensor<?x32xf32>, tensor<96x32xf32> -> tensor<?x96xf32>
  return %l, %w, %e : tensor<?x96xf32>, tensor<?x1xf32>, tensor<?x1xi32>
}

// -----

// Large weights begin at page boundaries, and so does the first weight of an op that reads one: each weight of a layer is
// 143360 bytes after that of the previous layer, although small weights come last.

// CHECK: mica.weight @first at 0 bytes 128
// CHECK-NEXT: mica.weight @norm.0 at 4096 bytes 512
// CHECK-NEXT: mica.weight @w.0 at 8192 bytes 131072
// CHECK-NEXT: mica.weight @bias.0 at 139264 bytes 1024
// CHECK-NEXT: mica.weight @norm.1 at 143360 bytes 512
// CHECK-NEXT: mica.weight @w.1 at 147456 bytes 131072
// CHECK-NEXT: mica.weight @bias.1 at 278528 bytes 1024
mica.weight @first : tensor<32xf32>
mica.weight @norm.0 : tensor<128xf32>
mica.weight @w.0 : tensor<256x128xf32>
mica.weight @bias.0 : tensor<256xf32>
mica.weight @norm.1 : tensor<128xf32>
mica.weight @w.1 : tensor<256x128xf32>
mica.weight @bias.1 : tensor<256xf32>
func.func private @tall(%x: tensor<?x128xf32>, %norm: tensor<128xf32>, %w: tensor<256x128xf32>, %bias: tensor<256xf32>) -> tensor<?x256xf32> {
  %n = mica.rmsnorm %x, %norm eps(1.0e-05) : tensor<?x128xf32>, tensor<128xf32> -> tensor<?x128xf32>
  %y = mica.linear %n, %w bias(%bias : tensor<256xf32>) : tensor<?x128xf32>, tensor<256x128xf32> -> tensor<?x256xf32>
  return %y : tensor<?x256xf32>
}
func.func @both(%x: tensor<?x128xf32>, %z: tensor<?x32xf32>) -> (tensor<?x32xf32>, tensor<?x256xf32>, tensor<?x256xf32>) {
  %first = mica.get_weight @first : tensor<32xf32>
  %n = mica.rmsnorm %z, %first eps(1.0e-05) : tensor<?x32xf32>, tensor<32xf32> -> tensor<?x32xf32>
  %n0 = mica.get_weight @norm.0 : tensor<128xf32>
  %w0 = mica.get_weight @w.0 : tensor<256x128xf32>
  %b0 = mica.get_weight @bias.0 : tensor<256xf32>
  %n1 = mica.get_weight @norm.1 : tensor<128xf32>
  %w1 = mica.get_weight @w.1 : tensor<256x128xf32>
  %b1 = mica.get_weight @bias.1 : tensor<256xf32>
  %y0 = call @tall(%x, %n0, %w0, %b0) : (tensor<?x128xf32>, tensor<128xf32>, tensor<256x128xf32>, tensor<256xf32>) -> tensor<?x256xf32>
  %y1 = call @tall(%x, %n1, %w1, %b1) : (tensor<?x128xf32>, tensor<128xf32>, tensor<256x128xf32>, tensor<256xf32>) -> tensor<?x256xf32>
  return %n, %y0, %y1 : tensor<?x32xf32>, tensor<?x256xf32>, tensor<?x256xf32>
}

// -----

// A cache that attention reads as keys has the keys layout, also through appends, calls and returns.

!cache = !mica.kv_cache<2 x 2 x 8 x bf16>
// CHECK-LABEL: func private @layer
// CHECK-SAME: !mica.kv_cache<2 x 2 x 8 x bf16, <values, block = 64, depth = 2>>, %{{[a-z0-9]+}}: !mica.kv_cache<2 x 2 x 8 x bf16, <keys, block = 64, depth = 2>>
func.func private @layer(%v: !cache, %k: !cache, %q: tensor<?x4x8xbf16>, %h: tensor<?x2x8xf32>, %layer: index, %s: tensor<?xi32>, %p: tensor<?xi32>)
    -> (!cache, !cache, tensor<?x4x8xf32>) {
  %k1 = mica.kv_append %h, %k[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !cache
  %v1 = mica.kv_append %h, %v[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !cache
  %keys = mica.kv_read %k1[%layer] : !cache -> tensor<?x?x2x8xbf16>
  %values = mica.kv_read %v1[%layer] : !cache -> tensor<?x?x2x8xbf16>
  %y = mica.attention %q, %keys, %values at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.35)
      : tensor<?x4x8xbf16>, tensor<?x?x2x8xbf16>, tensor<?x?x2x8xbf16> -> tensor<?x4x8xf32>
  return %k1, %v1, %y : !cache, !cache, tensor<?x4x8xf32>
}
// CHECK-LABEL: func @main
// CHECK-SAME: <keys, block = 64, depth = 2>>, %{{[a-z0-9]+}}: !mica.kv_cache<2 x 2 x 8 x bf16, <values, block = 64, depth = 2>>
// CHECK-SAME: -> (!mica.kv_cache<2 x 2 x 8 x bf16, <keys, block = 64, depth = 2>>, !mica.kv_cache<2 x 2 x 8 x bf16, <values, block = 64, depth = 2>>)
func.func @main(%k: !cache, %v: !cache, %q: tensor<?x4x8xbf16>, %h: tensor<?x2x8xf32>, %layer: index, %s: tensor<?xi32>, %p: tensor<?xi32>)
    -> (!cache, !cache) {
  %r:3 = call @layer(%v, %k, %q, %h, %layer, %s, %p)
      : (!cache, !cache, tensor<?x4x8xbf16>, tensor<?x2x8xf32>, index, tensor<?xi32>, tensor<?xi32>) -> (!cache, !cache, tensor<?x4x8xf32>)
  return %r#0, %r#1 : !cache, !cache
}

// -----

// int8 elements have depth 4.

!cache = !mica.kv_cache<2 x 2 x 8 x !mica.int8>
// CHECK-LABEL: func @integers
// CHECK-SAME: !mica.kv_cache<2 x 2 x 8 x !mica.int8, <keys, block = 64, depth = 4>>, %{{[a-z0-9]+}}: !mica.kv_cache<2 x 2 x 8 x !mica.int8, <values, block = 64, depth = 4>>
func.func @integers(%k: !cache, %v: !cache, %q: tensor<?x4x8xf32>, %layer: index, %s: tensor<?xi32>, %p: tensor<?xi32>) -> tensor<?x4x8xf32> {
  %keys = mica.kv_read %k[%layer] : !cache -> tensor<?x?x2x8x!mica.int8>
  %values = mica.kv_read %v[%layer] : !cache -> tensor<?x?x2x8x!mica.int8>
  %y = mica.attention %q, %keys, %values at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.35)
      : tensor<?x4x8xf32>, tensor<?x?x2x8x!mica.int8>, tensor<?x?x2x8x!mica.int8> -> tensor<?x4x8xf32>
  return %y : tensor<?x4x8xf32>
}

// -----

!cache = !mica.kv_cache<2 x 2 x 8 x f32>
func.func @no_cache_for_both(%c: !cache, %d: !cache, %q: tensor<?x4x8xf32>, %layer: index, %s: tensor<?xi32>,
    %p: tensor<?xi32>) -> (tensor<?x4x8xf32>, tensor<?x4x8xf32>) {
  %a = mica.kv_read %c[%layer] : !cache -> tensor<?x?x2x8xf32>
  %b = mica.kv_read %d[%layer] : !cache -> tensor<?x?x2x8xf32>
  %y = mica.attention %q, %a, %b at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.35)
      : tensor<?x4x8xf32>, tensor<?x?x2x8xf32>, tensor<?x?x2x8xf32> -> tensor<?x4x8xf32>
  // expected-error @+1 {{uses a cache for keys that is used for values elsewhere}}
  %z = mica.attention %q, %b, %a at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.35)
      : tensor<?x4x8xf32>, tensor<?x?x2x8xf32>, tensor<?x?x2x8xf32> -> tensor<?x4x8xf32>
  return %y, %z : tensor<?x4x8xf32>, tensor<?x4x8xf32>
}

// -----

// If the values are a prefix of the keys, the cache has the keys layout.

!cache = !mica.kv_cache<2 x 2 x 8 x f32>
// CHECK-LABEL: func @values_in_keys
// CHECK-SAME: !mica.kv_cache<2 x 2 x 8 x f32, <keys, block = 64, depth = 1>>
func.func @values_in_keys(%c: !cache, %q: tensor<?x4x8xf32>, %layer: index, %s: tensor<?xi32>, %p: tensor<?xi32>) -> tensor<?x4x8xf32> {
  %keys = mica.kv_read %c[%layer] : !cache -> tensor<?x?x2x8xf32>
  %y = mica.attention %q, %keys, %keys at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.35)
      : tensor<?x4x8xf32>, tensor<?x?x2x8xf32>, tensor<?x?x2x8xf32> -> tensor<?x4x8xf32>
  return %y : tensor<?x4x8xf32>
}
