// RUN: mica-opt %s --mica-assign-precision="weights=int8 kv=bf16" | FileCheck %s --check-prefixes=CHECK,INT8
// RUN: mica-opt %s --mica-assign-precision="weights=int4 kv=bf16" | FileCheck %s --check-prefixes=CHECK,INT4

// Embeddings and output matrices have at least 6 bits; norms and routers stay f32.
// INT8: mica.weight @table : tensor<96x32x!mica.block<int8_g32>>
// INT4: mica.weight @table : tensor<96x32x!mica.block<int6_g32>>
mica.weight @table : tensor<96x32xbf16>
// CHECK: mica.weight @norm : tensor<32xf32>
mica.weight @norm : tensor<32xbf16>
// INT8: mica.weight @q : tensor<32x32x!mica.block<int8_g32>>
// INT4: mica.weight @q : tensor<32x32x!mica.block<int4_g32>>
mica.weight @q : tensor<32x32xbf16>
// CHECK: mica.weight @gate : tensor<4x32xf32>
mica.weight @gate : tensor<4x32xbf16>
// INT8: mica.weight @up : tensor<4x48x32x!mica.block<int8_g32>>
// INT4: mica.weight @up : tensor<4x48x32x!mica.block<int4_g32>>
mica.weight @up : tensor<4x48x32xbf16>
mica.weight @down : tensor<4x32x48xbf16>
// Weights without matmuls are not changed, nor are vectors.
// CHECK: mica.weight @unused : tensor<32x32xbf16>
mica.weight @unused : tensor<32x32xbf16>
// CHECK: mica.weight @bias : tensor<32xf32>
mica.weight @bias : tensor<32xbf16>

// CHECK-LABEL: func @main
func.func @main(%tokens: tensor<?xi32>) -> tensor<?x96xf32> {
  %table = mica.get_weight @table : tensor<96x32xbf16>
  %norm = mica.get_weight @norm : tensor<32xbf16>
  %q = mica.get_weight @q : tensor<32x32xbf16>
  %gate = mica.get_weight @gate : tensor<4x32xbf16>
  %up = mica.get_weight @up : tensor<4x48x32xbf16>
  %down = mica.get_weight @down : tensor<4x32x48xbf16>
  %x = mica.embedding %tokens, %table : tensor<?xi32>, tensor<96x32xbf16> -> tensor<?x32xf32>
  // Activations are quantized before each matmul.
  // CHECK: %[[N:.*]] = mica.rmsnorm
  // CHECK-NEXT: %[[Q:.*]] = mica.cast %[[N]] : tensor<?x32xf32> to tensor<?x32x!mica.int_rows<bits = 16, group = 32>>
  %n = mica.rmsnorm %x, %norm eps(1.0e-05) : tensor<?x32xf32>, tensor<32xbf16> -> tensor<?x32xf32>
  // INT8: mica.linear %[[Q]], %{{.*}} : tensor<?x32x!mica.int_rows<bits = 16, group = 32>>, tensor<32x32x!mica.block<int8_g32>> -> tensor<?x32xf32>
  // INT4: mica.linear %[[Q]], %{{.*}} : tensor<?x32x!mica.int_rows<bits = 16, group = 32>>, tensor<32x32x!mica.block<int4_g32>> -> tensor<?x32xf32>
  %y = mica.linear %n, %q : tensor<?x32xf32>, tensor<32x32xbf16> -> tensor<?x32xf32>
  // CHECK: mica.moe_gate %{{.*}} : tensor<?x32xf32>, tensor<4x32xf32>
  %w, %e = mica.moe_gate %y, %gate softmax k(2) : tensor<?x32xf32>, tensor<4x32xbf16> -> tensor<?x2xf32>, tensor<?x2xi32>
  // CHECK: mica.moe_experts %{{.*}} : tensor<?x32x!mica.int_rows<bits = 16, group = 32>>
  %m = mica.moe_experts %y, %w, %e, %up, %down up(%up : tensor<4x48x32xbf16>) silu inner(48)
      : tensor<?x32xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<4x48x32xbf16>, tensor<4x32x48xbf16> -> tensor<?x32xf32>
  // INT8: mica.lm_head %{{.*}} : tensor<?x32x!mica.int_rows<bits = 16, group = 32>>, tensor<96x32x!mica.block<int8_g32>> -> tensor<?x96xf32>
  // INT4: mica.lm_head %{{.*}} : tensor<?x32x!mica.int_rows<bits = 16, group = 32>>, tensor<96x32x!mica.block<int6_g32>> -> tensor<?x96xf32>
  %logits = mica.lm_head %m, %table : tensor<?x32xf32>, tensor<96x32xbf16> -> tensor<?x96xf32>
  return %logits : tensor<?x96xf32>
}

// Only matmuls have integer activations: their results, the residual stream, norms and activation functions are f32;
// queries, keys and values have the precision of the cache.
// CHECK-LABEL: func @no_integers_between_products
// CHECK-SAME: %[[K:[^:]*]]: !mica.kv_cache<1 x 1 x 32 x bf16>
func.func @no_integers_between_products(%x: tensor<?x32xf32>, %k: !mica.kv_cache<1 x 1 x 32 x f32>, %s: tensor<?xi32>, %p: tensor<?xi32>) -> tensor<?x32xf32> {
  %q = mica.get_weight @q : tensor<32x32xbf16>
  %bias = mica.get_weight @bias : tensor<32xbf16>
  %layer = arith.constant 0 : index
  // CHECK: %[[Y:.*]] = mica.linear %{{.*}} bias(%{{.*}} : tensor<32xf32>) : {{.*}} -> tensor<?x32xf32>
  // CHECK-NOT: !mica.int
  // CHECK: mica.cast %{{.*}} : tensor<?x1x32xf32> to tensor<?x1x32xbf16>
  // CHECK-NOT: !mica.int
  // CHECK: return
  %y = mica.linear %x, %q bias(%bias : tensor<32xbf16>) : tensor<?x32xf32>, tensor<32x32xbf16> -> tensor<?x32xf32>
  %h = mica.split_heads %y : tensor<?x32xf32> to tensor<?x1x32xf32>
  %r = mica.rope %h, %p half theta(1.0e+04) : tensor<?x1x32xf32>, tensor<?xi32>
  %next = mica.kv_append %r, %k[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x1x32xf32>, !mica.kv_cache<1 x 1 x 32 x f32>
  %keys = mica.kv_read %next[%layer] : !mica.kv_cache<1 x 1 x 32 x f32> -> tensor<?x?x1x32xf32>
  %a = mica.attention %r, %keys, %keys at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(1.0)
      : tensor<?x1x32xf32>, tensor<?x?x1x32xf32>, tensor<?x?x1x32xf32> -> tensor<?x1x32xf32>
  %m = mica.merge_heads %a : tensor<?x1x32xf32> to tensor<?x32xf32>
  %z = mica.silu %m : tensor<?x32xf32>
  %sum = mica.add %x, %z : tensor<?x32xf32>
  return %sum : tensor<?x32xf32>
}
