// RUN: mica-opt %s --mica-assign-precision="weights=int8 kv=bf16" | FileCheck %s --check-prefixes=CHECK,INT8
// RUN: mica-opt %s --mica-assign-precision="weights=int4 kv=bf16" | FileCheck %s --check-prefixes=CHECK,INT4

// Tables, and the product with the vocabulary, have 8 bits; norms and gates of experts stay f32.
// CHECK: mica.weight @table : tensor<96x32x!mica.int8>
mica.weight @table : tensor<96x32xbf16>
// CHECK: mica.weight @norm : tensor<32xf32>
mica.weight @norm : tensor<32xbf16>
// INT8: mica.weight @q : tensor<32x32x!mica.int8>
// INT4: mica.weight @q : tensor<32x32x!mica.int4<group = 32>>
mica.weight @q : tensor<32x32xbf16>
// CHECK: mica.weight @gate : tensor<4x32xf32>
mica.weight @gate : tensor<4x32xbf16>
// INT8: mica.weight @up : tensor<4x48x32x!mica.int8>
// INT4: mica.weight @up : tensor<4x48x32x!mica.int4<group = 32>>
mica.weight @up : tensor<4x48x32xbf16>
mica.weight @down : tensor<4x32x48xbf16>

// CHECK-LABEL: func @main
func.func @main(%tokens: tensor<?xi32>) -> tensor<?x96xf32> {
  %table = mica.get_weight @table : tensor<96x32xbf16>
  %norm = mica.get_weight @norm : tensor<32xbf16>
  %q = mica.get_weight @q : tensor<32x32xbf16>
  %gate = mica.get_weight @gate : tensor<4x32xbf16>
  %up = mica.get_weight @up : tensor<4x48x32xbf16>
  %down = mica.get_weight @down : tensor<4x32x48xbf16>
  %x = mica.embedding %tokens, %table : tensor<?xi32>, tensor<96x32xbf16> -> tensor<?x32xf32>
  // Rows are quantised where they enter a product.
  // CHECK: %[[N:.*]] = mica.rmsnorm
  // CHECK-NEXT: %[[Q:.*]] = mica.cast %[[N]] : tensor<?x32xf32> to tensor<?x32x!mica.int8>
  %n = mica.rmsnorm %x, %norm eps(1.0e-05) : tensor<?x32xf32>, tensor<32xbf16> -> tensor<?x32xf32>
  // INT8: mica.linear %[[Q]], %{{.*}} : tensor<?x32x!mica.int8>, tensor<32x32x!mica.int8> -> tensor<?x32xf32>
  // INT4: mica.linear %[[Q]], %{{.*}} : tensor<?x32x!mica.int8>, tensor<32x32x!mica.int4<group = 32>> -> tensor<?x32xf32>
  %y = mica.linear %n, %q : tensor<?x32xf32>, tensor<32x32xbf16> -> tensor<?x32xf32>
  // CHECK: mica.moe_gate %{{.*}} : tensor<?x32xf32>, tensor<4x32xf32>
  %w, %e = mica.moe_gate %y, %gate softmax k(2) : tensor<?x32xf32>, tensor<4x32xbf16> -> tensor<?x2xf32>, tensor<?x2xi32>
  // CHECK: mica.moe_experts %{{.*}} : tensor<?x32x!mica.int8>
  %m = mica.moe_experts %y, %w, %e, %up, %down up(%up : tensor<4x48x32xbf16>) silu inner(48)
      : tensor<?x32xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<4x48x32xbf16>, tensor<4x32x48xbf16> -> tensor<?x32xf32>
  // CHECK: mica.lm_head %{{.*}} : tensor<?x32x!mica.int8>, tensor<96x32x!mica.int8> -> tensor<?x96xf32>
  %logits = mica.lm_head %m, %table : tensor<?x32xf32>, tensor<96x32xbf16> -> tensor<?x96xf32>
  return %logits : tensor<?x96xf32>
}
