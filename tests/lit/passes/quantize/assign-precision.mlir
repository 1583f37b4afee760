// RUN: mica-opt %s --split-input-file --verify-diagnostics --mica-assign-precision="weights=bf16 kv=bf16" | FileCheck %s --check-prefixes=CHECK,BF16
// RUN: mica-opt %s --split-input-file --verify-diagnostics --mica-assign-precision="weights=f32 kv=f32" | FileCheck %s --check-prefixes=CHECK,F32 --implicit-check-not=mica.cast

// The checkpoint is f16. Matrices get the requested precision; norms and routers are f32.
// BF16: mica.weight @table : tensor<96x32xbf16>
// F32: mica.weight @table : tensor<96x32xf32>
mica.weight @table : tensor<96x32xf16>
// BF16: mica.weight @q : tensor<32x32xbf16>
// F32: mica.weight @q : tensor<32x32xf32>
mica.weight @q : tensor<32x32xf16>
mica.weight @k : tensor<16x32xf16>
// CHECK: mica.weight @norm : tensor<32xf32>
mica.weight @norm : tensor<32xf16>
// CHECK: mica.weight @gate : tensor<4x32xf32>
mica.weight @gate : tensor<4x32xf16>
// BF16: mica.weight @up : tensor<4x48x32xbf16>
mica.weight @up : tensor<4x48x32xf16>
mica.weight @down : tensor<4x32x48xf16>

// CHECK-LABEL: func private @layer
// BF16-SAME: !mica.kv_cache<2 x 2 x 8 x bf16>
// BF16-SAME: tensor<32xf32>, %{{[a-z0-9]+}}: tensor<32x32xbf16>, %{{[a-z0-9]+}}: tensor<16x32xbf16>
// F32-SAME: tensor<32xf32>, %{{[a-z0-9]+}}: tensor<32x32xf32>, %{{[a-z0-9]+}}: tensor<16x32xf32>
func.func private @layer(%x: tensor<?x32xf32>, %cache: !mica.kv_cache<2 x 2 x 8 x f32>, %layer: index, %s: tensor<?xi32>, %p: tensor<?xi32>,
    %norm: tensor<32xf16>, %wq: tensor<32x32xf16>, %wk: tensor<16x32xf16>) -> (tensor<?x32xf32>, !mica.kv_cache<2 x 2 x 8 x f32>) {
  // CHECK: %[[N:.*]] = mica.rmsnorm
  %n = mica.rmsnorm %x, %norm eps(1.0e-05) : tensor<?x32xf32>, tensor<32xf16> -> tensor<?x32xf32>
  // Both matmuls share one cast.
  // BF16-NEXT: %[[B:.*]] = mica.cast %[[N]] : tensor<?x32xf32> to tensor<?x32xbf16>
  // BF16-NEXT: %[[Q:.*]] = mica.linear %[[B]], {{.*}} : tensor<?x32xbf16>, tensor<32x32xbf16> -> tensor<?x32xf32>
  // BF16-NEXT: mica.linear %[[B]], {{.*}} : tensor<?x32xbf16>, tensor<16x32xbf16> -> tensor<?x16xf32>
  %q = mica.linear %n, %wq : tensor<?x32xf32>, tensor<32x32xf16> -> tensor<?x32xf32>
  %k = mica.linear %n, %wk : tensor<?x32xf32>, tensor<16x32xf16> -> tensor<?x16xf32>
  // BF16: %[[QH:.*]] = mica.split_heads %[[Q]]
  // BF16-NEXT: %[[QB:.*]] = mica.cast %[[QH]] : tensor<?x4x8xf32> to tensor<?x4x8xbf16>
  %qh = mica.split_heads %q : tensor<?x32xf32> to tensor<?x4x8xf32>
  %kh = mica.split_heads %k : tensor<?x16xf32> to tensor<?x2x8xf32>
  // The append rounds, so there is no cast.
  // CHECK: mica.kv_append %{{.*}} : tensor<?x2x8xf32>
  %next = mica.kv_append %kh, %cache[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !mica.kv_cache<2 x 2 x 8 x f32>
  // BF16: mica.kv_read {{.*}} -> tensor<?x?x2x8xbf16>
  %keys = mica.kv_read %next[%layer] : !mica.kv_cache<2 x 2 x 8 x f32> -> tensor<?x?x2x8xf32>
  // BF16: mica.repeat_kv {{.*}} : tensor<?x?x2x8xbf16> -> tensor<?x?x4x8xbf16>
  %keys4 = mica.repeat_kv %keys times 2 : tensor<?x?x2x8xf32> -> tensor<?x?x4x8xf32>
  // BF16: mica.attention %[[QB]], {{.*}} : tensor<?x4x8xbf16>, tensor<?x?x4x8xbf16>, tensor<?x?x4x8xbf16> -> tensor<?x4x8xf32>
  // F32: mica.attention {{.*}} : tensor<?x4x8xf32>, tensor<?x?x4x8xf32>, tensor<?x?x4x8xf32> -> tensor<?x4x8xf32>
  %a = mica.attention %qh, %keys4, %keys4 at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.35)
      : tensor<?x4x8xf32>, tensor<?x?x4x8xf32>, tensor<?x?x4x8xf32> -> tensor<?x4x8xf32>
  %m = mica.merge_heads %a : tensor<?x4x8xf32> to tensor<?x32xf32>
  // The residual stream stays f32.
  // CHECK: mica.add {{.*}} : tensor<?x32xf32>
  %y = mica.add %x, %m : tensor<?x32xf32>
  return %y, %next : tensor<?x32xf32>, !mica.kv_cache<2 x 2 x 8 x f32>
}

// CHECK-LABEL: func @main
func.func @main(%tokens: tensor<?xi32>, %s: tensor<?xi32>, %p: tensor<?xi32>, %cache: !mica.kv_cache<2 x 2 x 8 x f32>)
    -> (tensor<?x96xf32>, !mica.kv_cache<2 x 2 x 8 x f32>) {
  // BF16: mica.get_weight @table : tensor<96x32xbf16>
  %table = mica.get_weight @table : tensor<96x32xf16>
  // BF16: mica.embedding {{.*}} tensor<96x32xbf16> -> tensor<?x32xf32>
  %x = mica.embedding %tokens, %table : tensor<?xi32>, tensor<96x32xf16> -> tensor<?x32xf32>
  %zero = arith.constant 0 : index
  %norm = mica.get_weight @norm : tensor<32xf16>
  %q = mica.get_weight @q : tensor<32x32xf16>
  %k = mica.get_weight @k : tensor<16x32xf16>
  // BF16: call @layer{{.*}} tensor<32xf32>, tensor<32x32xbf16>, tensor<16x32xbf16>) -> (tensor<?x32xf32>, !mica.kv_cache<2 x 2 x 8 x bf16>)
  %y, %next = call @layer(%x, %cache, %zero, %s, %p, %norm, %q, %k)
      : (tensor<?x32xf32>, !mica.kv_cache<2 x 2 x 8 x f32>, index, tensor<?xi32>, tensor<?xi32>, tensor<32xf16>, tensor<32x32xf16>, tensor<16x32xf16>)
      -> (tensor<?x32xf32>, !mica.kv_cache<2 x 2 x 8 x f32>)
  %gate = mica.get_weight @gate : tensor<4x32xf16>
  %up = mica.get_weight @up : tensor<4x48x32xf16>
  %down = mica.get_weight @down : tensor<4x32x48xf16>
  // The router reads f32 activations, the experts rounded ones.
  // BF16: %[[Y:.*]] = mica.cast %{{.*}} : tensor<?x32xf32> to tensor<?x32xbf16>
  // CHECK: mica.moe_gate {{.*}} : tensor<?x32xf32>, tensor<4x32xf32>
  %w, %e = mica.moe_gate %y, %gate softmax k(2) : tensor<?x32xf32>, tensor<4x32xf16> -> tensor<?x2xf32>, tensor<?x2xi32>
  // BF16: mica.moe_experts %[[Y]],
  %z = mica.moe_experts %y, %w, %e, %up, %down up(%up : tensor<4x48x32xf16>) silu inner(48)
      : tensor<?x32xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<4x48x32xf16>, tensor<4x32x48xf16> -> tensor<?x32xf32>
  // BF16: mica.lm_head {{.*}} : tensor<?x32xbf16>, tensor<96x32xbf16> -> tensor<?x96xf32>
  %logits = mica.lm_head %z, %table : tensor<?x32xf32>, tensor<96x32xf16> -> tensor<?x96xf32>
  return %logits, %next : tensor<?x96xf32>, !mica.kv_cache<2 x 2 x 8 x f32>
}
