// RUN: %python %S/Inputs/make_npy.py %t q=8x6 k=4x6 v=4x6 gate=70x6 up=70x6 q_norm=4 k_norm=4 x=3x6
// RUN: mica-interpret %s --weights %t --cache 2x4 | FileCheck %s
// CHECK: 6 of 6 functions checked, all as expected

// Fused ops compute the same as the original ops.

mica.weight @x : tensor<3x6xf32>
mica.weight @q : tensor<8x6xf32>
mica.weight @k : tensor<4x6xf32>
mica.weight @v : tensor<4x6xf32>
mica.weight @qkv from ["q", "k", "v"] concat : tensor<16x6xf32>
mica.weight @q_norm : tensor<4xf32>
mica.weight @k_norm : tensor<4xf32>
mica.weight @gate : tensor<70x6xf32>
mica.weight @up : tensor<70x6xf32>
mica.weight @gate_up from ["gate", "up"] interleave : tensor<256x6xf32>

// Three matmuls = a split matmul with the concatenated weights.
func.func @merged_product() -> (tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>)
    attributes {mica.expect_pairs, mica.tolerance = 0.0} {
  %x = mica.get_weight @x : tensor<3x6xf32>
  %wq = mica.get_weight @q : tensor<8x6xf32>
  %wk = mica.get_weight @k : tensor<4x6xf32>
  %wv = mica.get_weight @v : tensor<4x6xf32>
  %wqkv = mica.get_weight @qkv : tensor<16x6xf32>
  %q = mica.linear %x, %wq : tensor<3x6xf32>, tensor<8x6xf32> -> tensor<3x8xf32>
  %k = mica.linear %x, %wk : tensor<3x6xf32>, tensor<4x6xf32> -> tensor<3x4xf32>
  %v = mica.linear %x, %wv : tensor<3x6xf32>, tensor<4x6xf32> -> tensor<3x4xf32>
  %qkv = mica.linear %x, %wqkv : tensor<3x6xf32>, tensor<16x6xf32> -> tensor<3x16xf32>
  %q1, %k1, %v1 = mica.split %qkv : tensor<3x16xf32> -> tensor<3x8xf32>, tensor<3x4xf32>, tensor<3x4xf32>
  return %q, %q1, %k, %k1, %v, %v1 : tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>
}

// Split, rope, append = one op.
func.func @qkv_append(%k: !mica.kv_cache<2 x 1 x 4 x f32>, %v: !mica.kv_cache<2 x 1 x 4 x f32>, %kk: !mica.kv_cache<2 x 1 x 4 x f32>, %vv: !mica.kv_cache<2 x 1 x 4 x f32>)
    -> (tensor<3x2x4xf32>, tensor<3x2x4xf32>, !mica.kv_cache<2 x 1 x 4 x f32>, !mica.kv_cache<2 x 1 x 4 x f32>, !mica.kv_cache<2 x 1 x 4 x f32>, !mica.kv_cache<2 x 1 x 4 x f32>) attributes {mica.expect_pairs, mica.tolerance = 1.0e-06} {
  %layer = arith.constant 1 : index
  %s = arith.constant dense<[0, 0, 1]> : tensor<3xi32>
  %p = arith.constant dense<[0, 1, 3]> : tensor<3xi32>
  %x = mica.get_weight @x : tensor<3x6xf32>
  %w = mica.get_weight @qkv : tensor<16x6xf32>
  %qkv = mica.linear %x, %w : tensor<3x6xf32>, tensor<16x6xf32> -> tensor<3x16xf32>
  %qr, %kr, %vr = mica.split %qkv : tensor<3x16xf32> -> tensor<3x8xf32>, tensor<3x4xf32>, tensor<3x4xf32>
  %qh = mica.split_heads %qr : tensor<3x8xf32> to tensor<3x2x4xf32>
  %kh = mica.split_heads %kr : tensor<3x4xf32> to tensor<3x1x4xf32>
  %vh = mica.split_heads %vr : tensor<3x4xf32> to tensor<3x1x4xf32>
  %qt = mica.rope %qh, %p half theta(1.0e+04) : tensor<3x2x4xf32>, tensor<3xi32>
  %kt = mica.rope %kh, %p half theta(1.0e+04) : tensor<3x1x4xf32>, tensor<3xi32>
  %k1 = mica.kv_append %kt, %k[%layer] at(%s, %p : tensor<3xi32>, tensor<3xi32>) : tensor<3x1x4xf32>, !mica.kv_cache<2 x 1 x 4 x f32>
  %v1 = mica.kv_append %vh, %v[%layer] at(%s, %p : tensor<3xi32>, tensor<3xi32>) : tensor<3x1x4xf32>, !mica.kv_cache<2 x 1 x 4 x f32>
  %table = mica.rope_table %p rotary_dim(4) theta(1.0e+04) : tensor<3xi32> -> tensor<3x2x2xf32>
  %q2, %k2, %v2 = mica.qkv_append %qkv, %table, %kk, %vv[%layer] at(%s, %p : tensor<3xi32>, tensor<3xi32>) half
      : tensor<3x16xf32>, tensor<3x2x2xf32>, !mica.kv_cache<2 x 1 x 4 x f32>, !mica.kv_cache<2 x 1 x 4 x f32> -> tensor<3x2x4xf32>
  return %q2, %qt, %k2, %k1, %v2, %v1 : tensor<3x2x4xf32>, tensor<3x2x4xf32>, !mica.kv_cache<2 x 1 x 4 x f32>, !mica.kv_cache<2 x 1 x 4 x f32>, !mica.kv_cache<2 x 1 x 4 x f32>, !mica.kv_cache<2 x 1 x 4 x f32>
}

// With norms of queries and keys before rope.
func.func @qkv_append_norms(%k: !mica.kv_cache<2 x 1 x 4 x f32>, %v: !mica.kv_cache<2 x 1 x 4 x f32>, %kk: !mica.kv_cache<2 x 1 x 4 x f32>, %vv: !mica.kv_cache<2 x 1 x 4 x f32>)
    -> (tensor<3x2x4xf32>, tensor<3x2x4xf32>, !mica.kv_cache<2 x 1 x 4 x f32>, !mica.kv_cache<2 x 1 x 4 x f32>, !mica.kv_cache<2 x 1 x 4 x f32>, !mica.kv_cache<2 x 1 x 4 x f32>) attributes {mica.expect_pairs, mica.tolerance = 1.0e-06} {
  %layer = arith.constant 1 : index
  %s = arith.constant dense<[0, 0, 1]> : tensor<3xi32>
  %p = arith.constant dense<[0, 1, 3]> : tensor<3xi32>
  %x = mica.get_weight @x : tensor<3x6xf32>
  %w = mica.get_weight @qkv : tensor<16x6xf32>
  %qkv = mica.linear %x, %w : tensor<3x6xf32>, tensor<16x6xf32> -> tensor<3x16xf32>
  %qr, %kr, %vr = mica.split %qkv : tensor<3x16xf32> -> tensor<3x8xf32>, tensor<3x4xf32>, tensor<3x4xf32>
  %qh = mica.split_heads %qr : tensor<3x8xf32> to tensor<3x2x4xf32>
  %kh = mica.split_heads %kr : tensor<3x4xf32> to tensor<3x1x4xf32>
  %vh = mica.split_heads %vr : tensor<3x4xf32> to tensor<3x1x4xf32>
  %wqn = mica.get_weight @q_norm : tensor<4xf32>
  %wkn = mica.get_weight @k_norm : tensor<4xf32>
  %qn = mica.rmsnorm %qh, %wqn eps(1.0e-02) : tensor<3x2x4xf32>, tensor<4xf32> -> tensor<3x2x4xf32>
  %kn = mica.rmsnorm %kh, %wkn eps(1.0e-02) : tensor<3x1x4xf32>, tensor<4xf32> -> tensor<3x1x4xf32>
  %qt = mica.rope %qn, %p interleaved theta(1.0e+04) : tensor<3x2x4xf32>, tensor<3xi32>
  %kt = mica.rope %kn, %p interleaved theta(1.0e+04) : tensor<3x1x4xf32>, tensor<3xi32>
  %k1 = mica.kv_append %kt, %k[%layer] at(%s, %p : tensor<3xi32>, tensor<3xi32>) : tensor<3x1x4xf32>, !mica.kv_cache<2 x 1 x 4 x f32>
  %v1 = mica.kv_append %vh, %v[%layer] at(%s, %p : tensor<3xi32>, tensor<3xi32>) : tensor<3x1x4xf32>, !mica.kv_cache<2 x 1 x 4 x f32>
  %table = mica.rope_table %p rotary_dim(4) theta(1.0e+04) : tensor<3xi32> -> tensor<3x2x2xf32>
  %q2, %k2, %v2 = mica.qkv_append %qkv, %table, %kk, %vv[%layer] at(%s, %p : tensor<3xi32>, tensor<3xi32>) norms(%wqn, %wkn : tensor<4xf32>, tensor<4xf32>) interleaved eps(1.0e-02)
      : tensor<3x16xf32>, tensor<3x2x2xf32>, !mica.kv_cache<2 x 1 x 4 x f32>, !mica.kv_cache<2 x 1 x 4 x f32> -> tensor<3x2x4xf32>
  return %q2, %qt, %k2, %k1, %v2, %v1 : tensor<3x2x4xf32>, tensor<3x2x4xf32>, !mica.kv_cache<2 x 1 x 4 x f32>, !mica.kv_cache<2 x 1 x 4 x f32>, !mica.kv_cache<2 x 1 x 4 x f32>, !mica.kv_cache<2 x 1 x 4 x f32>
}

// Only a prefix of each head is rotated; the caches are narrower.
func.func @qkv_append_partial(%k: !mica.kv_cache<2 x 1 x 4 x bf16>, %v: !mica.kv_cache<2 x 1 x 4 x bf16>, %kk: !mica.kv_cache<2 x 1 x 4 x bf16>, %vv: !mica.kv_cache<2 x 1 x 4 x bf16>)
    -> (tensor<3x2x4xf32>, tensor<3x2x4xf32>, !mica.kv_cache<2 x 1 x 4 x bf16>, !mica.kv_cache<2 x 1 x 4 x bf16>, !mica.kv_cache<2 x 1 x 4 x bf16>, !mica.kv_cache<2 x 1 x 4 x bf16>) attributes {mica.expect_pairs, mica.tolerance = 1.0e-06} {
  %layer = arith.constant 1 : index
  %s = arith.constant dense<[0, 0, 1]> : tensor<3xi32>
  %p = arith.constant dense<[0, 1, 3]> : tensor<3xi32>
  %x = mica.get_weight @x : tensor<3x6xf32>
  %w = mica.get_weight @qkv : tensor<16x6xf32>
  %qkv = mica.linear %x, %w : tensor<3x6xf32>, tensor<16x6xf32> -> tensor<3x16xf32>
  %qr, %kr, %vr = mica.split %qkv : tensor<3x16xf32> -> tensor<3x8xf32>, tensor<3x4xf32>, tensor<3x4xf32>
  %qh = mica.split_heads %qr : tensor<3x8xf32> to tensor<3x2x4xf32>
  %kh = mica.split_heads %kr : tensor<3x4xf32> to tensor<3x1x4xf32>
  %vh = mica.split_heads %vr : tensor<3x4xf32> to tensor<3x1x4xf32>
  %qt = mica.rope %qh, %p half theta(1.0e+04) rotary_dim(2) : tensor<3x2x4xf32>, tensor<3xi32>
  %kt = mica.rope %kh, %p half theta(1.0e+04) rotary_dim(2) : tensor<3x1x4xf32>, tensor<3xi32>
  %k1 = mica.kv_append %kt, %k[%layer] at(%s, %p : tensor<3xi32>, tensor<3xi32>) : tensor<3x1x4xf32>, !mica.kv_cache<2 x 1 x 4 x bf16>
  %v1 = mica.kv_append %vh, %v[%layer] at(%s, %p : tensor<3xi32>, tensor<3xi32>) : tensor<3x1x4xf32>, !mica.kv_cache<2 x 1 x 4 x bf16>
  %table = mica.rope_table %p rotary_dim(2) theta(1.0e+04) : tensor<3xi32> -> tensor<3x2x1xf32>
  %q2, %k2, %v2 = mica.qkv_append %qkv, %table, %kk, %vv[%layer] at(%s, %p : tensor<3xi32>, tensor<3xi32>) half
      : tensor<3x16xf32>, tensor<3x2x1xf32>, !mica.kv_cache<2 x 1 x 4 x bf16>, !mica.kv_cache<2 x 1 x 4 x bf16> -> tensor<3x2x4xf32>
  return %q2, %qt, %k2, %k1, %v2, %v1 : tensor<3x2x4xf32>, tensor<3x2x4xf32>, !mica.kv_cache<2 x 1 x 4 x bf16>, !mica.kv_cache<2 x 1 x 4 x bf16>, !mica.kv_cache<2 x 1 x 4 x bf16>, !mica.kv_cache<2 x 1 x 4 x bf16>
}

// gate and up in alternating blocks of 64 rows; 70 rows are padded to 128, and the padding is removed again.
func.func @gated_linear() -> (tensor<3x70xf32>, tensor<3x70xf32>) attributes {mica.expect_pairs} {
  %x = mica.get_weight @x : tensor<3x6xf32>
  %gate = mica.get_weight @gate : tensor<70x6xf32>
  %up = mica.get_weight @up : tensor<70x6xf32>
  %gate_up = mica.get_weight @gate_up : tensor<256x6xf32>
  %g = mica.linear %x, %gate : tensor<3x6xf32>, tensor<70x6xf32> -> tensor<3x70xf32>
  %u = mica.linear %x, %up : tensor<3x6xf32>, tensor<70x6xf32> -> tensor<3x70xf32>
  %s = mica.silu %g : tensor<3x70xf32>
  %y = mica.mul %s, %u : tensor<3x70xf32>
  %z = mica.gated_linear %x, %gate_up silu : tensor<3x6xf32>, tensor<256x6xf32> -> tensor<3x70xf32>
  return %z, %y : tensor<3x70xf32>, tensor<3x70xf32>
}

func.func @gated_gelu() -> (tensor<3x70xf32>, tensor<3x70xf32>) attributes {mica.expect_pairs} {
  %x = mica.get_weight @x : tensor<3x6xf32>
  %gate = mica.get_weight @gate : tensor<70x6xf32>
  %up = mica.get_weight @up : tensor<70x6xf32>
  %gate_up = mica.get_weight @gate_up : tensor<256x6xf32>
  %g = mica.linear %x, %gate : tensor<3x6xf32>, tensor<70x6xf32> -> tensor<3x70xf32>
  %u = mica.linear %x, %up : tensor<3x6xf32>, tensor<70x6xf32> -> tensor<3x70xf32>
  %s = mica.gelu_tanh %g : tensor<3x70xf32>
  %y = mica.mul %s, %u : tensor<3x70xf32>
  %z = mica.gated_linear %x, %gate_up gelu_tanh : tensor<3x6xf32>, tensor<256x6xf32> -> tensor<3x70xf32>
  return %z, %y : tensor<3x70xf32>, tensor<3x70xf32>
}
