// RUN: mica-opt %s --split-input-file --verify-diagnostics --mica-verify-model

// Queries and keys have the same rope; a rotary_dim of the whole head is the default.
!cache = !mica.kv_cache<1 x 2 x 8 x f32>
mica.weight @table : tensor<32x32xf32>
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"},
    %k: !cache {mica.role = "cache"}, %v: !cache {mica.role = "cache"})
    -> (tensor<?x32xf32> {mica.role = "logits"}, !cache {mica.role = "cache"}, !cache {mica.role = "cache"}) {
  %table = mica.get_weight @table : tensor<32x32xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<32x32xf32> -> tensor<?x32xf32>
  %layer = arith.constant 0 : index
  %q = mica.split_heads %x : tensor<?x32xf32> to tensor<?x4x8xf32>
  %wk = mica.get_weight @k_proj : tensor<16x32xf32>
  %kx = mica.linear %x, %wk : tensor<?x32xf32>, tensor<16x32xf32> -> tensor<?x16xf32>
  %kh = mica.split_heads %kx : tensor<?x16xf32> to tensor<?x2x8xf32>
  %qr = mica.rope %q, %p half theta(1.0e+04) : tensor<?x4x8xf32>, tensor<?xi32>
  %kr = mica.rope %kh, %p half theta(1.0e+04) rotary_dim(8) : tensor<?x2x8xf32>, tensor<?xi32>
  %k1 = mica.kv_append %kr, %k[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !cache
  %v1 = mica.kv_append %kh, %v[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !cache
  %ks = mica.kv_read %k1[%layer] : !cache -> tensor<?x?x2x8xf32>
  %vs = mica.kv_read %v1[%layer] : !cache -> tensor<?x?x2x8xf32>
  %k4 = mica.repeat_kv %ks times 2 : tensor<?x?x2x8xf32> -> tensor<?x?x4x8xf32>
  %v4 = mica.repeat_kv %vs times 2 : tensor<?x?x2x8xf32> -> tensor<?x?x4x8xf32>
  %a = mica.attention %qr, %k4, %v4 at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.35)
      : tensor<?x4x8xf32>, tensor<?x?x4x8xf32>, tensor<?x?x4x8xf32> -> tensor<?x4x8xf32>
  %m = mica.merge_heads %a : tensor<?x4x8xf32> to tensor<?x32xf32>
  %y = mica.select_rows %m, %o : tensor<?x32xf32>, tensor<?xi32> -> tensor<?x32xf32>
  return %y, %k1, %v1 : tensor<?x32xf32>, !cache, !cache
}
mica.weight @k_proj : tensor<16x32xf32>

// -----

!cache = !mica.kv_cache<1 x 2 x 8 x f32>
mica.weight @table : tensor<32x32xf32>
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"},
    %k: !cache {mica.role = "cache"}, %v: !cache {mica.role = "cache"})
    -> (tensor<?x32xf32> {mica.role = "logits"}, !cache {mica.role = "cache"}, !cache {mica.role = "cache"}) {
  %table = mica.get_weight @table : tensor<32x32xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<32x32xf32> -> tensor<?x32xf32>
  %layer = arith.constant 0 : index
  %q = mica.split_heads %x : tensor<?x32xf32> to tensor<?x4x8xf32>
  %wk = mica.get_weight @k_proj : tensor<16x32xf32>
  %kx = mica.linear %x, %wk : tensor<?x32xf32>, tensor<16x32xf32> -> tensor<?x16xf32>
  %kh = mica.split_heads %kx : tensor<?x16xf32> to tensor<?x2x8xf32>
  // expected-note @+1 {{the queries are rotated here}}
  %qr = mica.rope %q, %p interleaved theta(1.0e+04) : tensor<?x4x8xf32>, tensor<?xi32>
  // expected-note @+1 {{the keys are rotated here}}
  %kr = mica.rope %kh, %p half theta(1.0e+04) : tensor<?x2x8xf32>, tensor<?xi32>
  %k1 = mica.kv_append %kr, %k[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !cache
  %v1 = mica.kv_append %kh, %v[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !cache
  %ks = mica.kv_read %k1[%layer] : !cache -> tensor<?x?x2x8xf32>
  %vs = mica.kv_read %v1[%layer] : !cache -> tensor<?x?x2x8xf32>
  %k4 = mica.repeat_kv %ks times 2 : tensor<?x?x2x8xf32> -> tensor<?x?x4x8xf32>
  %v4 = mica.repeat_kv %vs times 2 : tensor<?x?x2x8xf32> -> tensor<?x?x4x8xf32>
  // expected-error @+1 {{'mica.attention' op compares queries and keys that mica.rope rotates differently: use the same pairing, theta, rotary_dim, scaling and lengths for both}}
  %a = mica.attention %qr, %k4, %v4 at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.35)
      : tensor<?x4x8xf32>, tensor<?x?x4x8xf32>, tensor<?x?x4x8xf32> -> tensor<?x4x8xf32>
  %m = mica.merge_heads %a : tensor<?x4x8xf32> to tensor<?x32xf32>
  %y = mica.select_rows %m, %o : tensor<?x32xf32>, tensor<?xi32> -> tensor<?x32xf32>
  return %y, %k1, %v1 : tensor<?x32xf32>, !cache, !cache
}
mica.weight @k_proj : tensor<16x32xf32>

// -----

!cache = !mica.kv_cache<1 x 2 x 8 x f32>
mica.weight @table : tensor<32x32xf32>
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"},
    %k: !cache {mica.role = "cache"}, %v: !cache {mica.role = "cache"})
    -> (tensor<?x32xf32> {mica.role = "logits"}, !cache {mica.role = "cache"}, !cache {mica.role = "cache"}) {
  %table = mica.get_weight @table : tensor<32x32xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<32x32xf32> -> tensor<?x32xf32>
  %layer = arith.constant 0 : index
  %q = mica.split_heads %x : tensor<?x32xf32> to tensor<?x4x8xf32>
  %wk = mica.get_weight @k_proj : tensor<16x32xf32>
  %kx = mica.linear %x, %wk : tensor<?x32xf32>, tensor<16x32xf32> -> tensor<?x16xf32>
  %kh = mica.split_heads %kx : tensor<?x16xf32> to tensor<?x2x8xf32>
  // expected-note @+1 {{the queries are rotated here}}
  %qr = mica.rope %q, %p half theta(1.0e+04) : tensor<?x4x8xf32>, tensor<?xi32>
  // expected-note @+1 {{the keys are rotated here}}
  %kr = mica.rope %kh, %p half theta(1.0e+05) : tensor<?x2x8xf32>, tensor<?xi32>
  %k1 = mica.kv_append %kr, %k[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !cache
  %v1 = mica.kv_append %kh, %v[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !cache
  %ks = mica.kv_read %k1[%layer] : !cache -> tensor<?x?x2x8xf32>
  %vs = mica.kv_read %v1[%layer] : !cache -> tensor<?x?x2x8xf32>
  %k4 = mica.repeat_kv %ks times 2 : tensor<?x?x2x8xf32> -> tensor<?x?x4x8xf32>
  %v4 = mica.repeat_kv %vs times 2 : tensor<?x?x2x8xf32> -> tensor<?x?x4x8xf32>
  // expected-error @+1 {{'mica.attention' op compares queries and keys that mica.rope rotates differently: use the same pairing, theta, rotary_dim, scaling and lengths for both}}
  %a = mica.attention %qr, %k4, %v4 at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.35)
      : tensor<?x4x8xf32>, tensor<?x?x4x8xf32>, tensor<?x?x4x8xf32> -> tensor<?x4x8xf32>
  %m = mica.merge_heads %a : tensor<?x4x8xf32> to tensor<?x32xf32>
  %y = mica.select_rows %m, %o : tensor<?x32xf32>, tensor<?xi32> -> tensor<?x32xf32>
  return %y, %k1, %v1 : tensor<?x32xf32>, !cache, !cache
}
mica.weight @k_proj : tensor<16x32xf32>

// -----

!cache = !mica.kv_cache<1 x 2 x 8 x f32>
mica.weight @table : tensor<32x32xf32>
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"},
    %k: !cache {mica.role = "cache"}, %v: !cache {mica.role = "cache"})
    -> (tensor<?x32xf32> {mica.role = "logits"}, !cache {mica.role = "cache"}, !cache {mica.role = "cache"}) {
  %table = mica.get_weight @table : tensor<32x32xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<32x32xf32> -> tensor<?x32xf32>
  %layer = arith.constant 0 : index
  %q = mica.split_heads %x : tensor<?x32xf32> to tensor<?x4x8xf32>
  %wk = mica.get_weight @k_proj : tensor<16x32xf32>
  %kx = mica.linear %x, %wk : tensor<?x32xf32>, tensor<16x32xf32> -> tensor<?x16xf32>
  %kh = mica.split_heads %kx : tensor<?x16xf32> to tensor<?x2x8xf32>
  // expected-note @+1 {{the queries are rotated here}}
  %qr = mica.rope %q, %p half theta(1.0e+04) rotary_dim(4) : tensor<?x4x8xf32>, tensor<?xi32>
  // expected-note @+1 {{the keys are rotated here}}
  %kr = mica.rope %kh, %p half theta(1.0e+04) : tensor<?x2x8xf32>, tensor<?xi32>
  %k1 = mica.kv_append %kr, %k[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !cache
  %v1 = mica.kv_append %kh, %v[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !cache
  %ks = mica.kv_read %k1[%layer] : !cache -> tensor<?x?x2x8xf32>
  %vs = mica.kv_read %v1[%layer] : !cache -> tensor<?x?x2x8xf32>
  %k4 = mica.repeat_kv %ks times 2 : tensor<?x?x2x8xf32> -> tensor<?x?x4x8xf32>
  %v4 = mica.repeat_kv %vs times 2 : tensor<?x?x2x8xf32> -> tensor<?x?x4x8xf32>
  // expected-error @+1 {{'mica.attention' op compares queries and keys that mica.rope rotates differently: use the same pairing, theta, rotary_dim, scaling and lengths for both}}
  %a = mica.attention %qr, %k4, %v4 at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.35)
      : tensor<?x4x8xf32>, tensor<?x?x4x8xf32>, tensor<?x?x4x8xf32> -> tensor<?x4x8xf32>
  %m = mica.merge_heads %a : tensor<?x4x8xf32> to tensor<?x32xf32>
  %y = mica.select_rows %m, %o : tensor<?x32xf32>, tensor<?xi32> -> tensor<?x32xf32>
  return %y, %k1, %v1 : tensor<?x32xf32>, !cache, !cache
}
mica.weight @k_proj : tensor<16x32xf32>

// -----

!cache = !mica.kv_cache<1 x 2 x 8 x f32>
mica.weight @table : tensor<32x32xf32>
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"},
    %k: !cache {mica.role = "cache"}, %v: !cache {mica.role = "cache"})
    -> (tensor<?x32xf32> {mica.role = "logits"}, !cache {mica.role = "cache"}, !cache {mica.role = "cache"}) {
  %table = mica.get_weight @table : tensor<32x32xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<32x32xf32> -> tensor<?x32xf32>
  %layer = arith.constant 0 : index
  %q = mica.split_heads %x : tensor<?x32xf32> to tensor<?x4x8xf32>
  %wk = mica.get_weight @k_proj : tensor<16x32xf32>
  %kx = mica.linear %x, %wk : tensor<?x32xf32>, tensor<16x32xf32> -> tensor<?x16xf32>
  %kh = mica.split_heads %kx : tensor<?x16xf32> to tensor<?x2x8xf32>
  // expected-note @+1 {{the queries are rotated here}}
  %qr = mica.rope %q, %p half theta(1.0e+04) scaling(#mica.linear_scaling<factor = 2.0>) : tensor<?x4x8xf32>, tensor<?xi32>
  // expected-note @+1 {{the keys are rotated here}}
  %kr = mica.rope %kh, %p half theta(1.0e+04) : tensor<?x2x8xf32>, tensor<?xi32>
  %k1 = mica.kv_append %kr, %k[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !cache
  %v1 = mica.kv_append %kh, %v[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !cache
  %ks = mica.kv_read %k1[%layer] : !cache -> tensor<?x?x2x8xf32>
  %vs = mica.kv_read %v1[%layer] : !cache -> tensor<?x?x2x8xf32>
  %k4 = mica.repeat_kv %ks times 2 : tensor<?x?x2x8xf32> -> tensor<?x?x4x8xf32>
  %v4 = mica.repeat_kv %vs times 2 : tensor<?x?x2x8xf32> -> tensor<?x?x4x8xf32>
  // expected-error @+1 {{'mica.attention' op compares queries and keys that mica.rope rotates differently: use the same pairing, theta, rotary_dim, scaling and lengths for both}}
  %a = mica.attention %qr, %k4, %v4 at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.35)
      : tensor<?x4x8xf32>, tensor<?x?x4x8xf32>, tensor<?x?x4x8xf32> -> tensor<?x4x8xf32>
  %m = mica.merge_heads %a : tensor<?x4x8xf32> to tensor<?x32xf32>
  %y = mica.select_rows %m, %o : tensor<?x32xf32>, tensor<?xi32> -> tensor<?x32xf32>
  return %y, %k1, %v1 : tensor<?x32xf32>, !cache, !cache
}
mica.weight @k_proj : tensor<16x32xf32>

// -----

!cache = !mica.kv_cache<1 x 2 x 8 x f32>
mica.weight @table : tensor<32x32xf32>
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"},
    %n: tensor<?xi32> {mica.role = "lengths"}, %k: !cache {mica.role = "cache"}, %v: !cache {mica.role = "cache"})
    -> (tensor<?x32xf32> {mica.role = "logits"}, !cache {mica.role = "cache"}, !cache {mica.role = "cache"}) {
  %table = mica.get_weight @table : tensor<32x32xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<32x32xf32> -> tensor<?x32xf32>
  %layer = arith.constant 0 : index
  %q = mica.split_heads %x : tensor<?x32xf32> to tensor<?x4x8xf32>
  %wk = mica.get_weight @k_proj : tensor<16x32xf32>
  %kx = mica.linear %x, %wk : tensor<?x32xf32>, tensor<16x32xf32> -> tensor<?x16xf32>
  %kh = mica.split_heads %kx : tensor<?x16xf32> to tensor<?x2x8xf32>
  // expected-note @+1 {{the queries are rotated here}}
  %qr = mica.rope %q, %p lengths(%n : tensor<?xi32>) half theta(1.0e+04) scaling(#mica.dynamic_scaling<factor = 2.0, original_context = 8>) : tensor<?x4x8xf32>, tensor<?xi32>
  // expected-note @+1 {{the keys are rotated here}}
  %kr = mica.rope %kh, %p lengths(%p : tensor<?xi32>) half theta(1.0e+04) scaling(#mica.dynamic_scaling<factor = 2.0, original_context = 8>) : tensor<?x2x8xf32>, tensor<?xi32>
  %k1 = mica.kv_append %kr, %k[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !cache
  %v1 = mica.kv_append %kh, %v[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !cache
  %ks = mica.kv_read %k1[%layer] : !cache -> tensor<?x?x2x8xf32>
  %vs = mica.kv_read %v1[%layer] : !cache -> tensor<?x?x2x8xf32>
  %k4 = mica.repeat_kv %ks times 2 : tensor<?x?x2x8xf32> -> tensor<?x?x4x8xf32>
  %v4 = mica.repeat_kv %vs times 2 : tensor<?x?x2x8xf32> -> tensor<?x?x4x8xf32>
  // expected-error @+1 {{'mica.attention' op compares queries and keys that mica.rope rotates differently: use the same pairing, theta, rotary_dim, scaling and lengths for both}}
  %a = mica.attention %qr, %k4, %v4 at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.35)
      : tensor<?x4x8xf32>, tensor<?x?x4x8xf32>, tensor<?x?x4x8xf32> -> tensor<?x4x8xf32>
  %m = mica.merge_heads %a : tensor<?x4x8xf32> to tensor<?x32xf32>
  %y = mica.select_rows %m, %o : tensor<?x32xf32>, tensor<?xi32> -> tensor<?x32xf32>
  return %y, %k1, %v1 : tensor<?x32xf32>, !cache, !cache
}
mica.weight @k_proj : tensor<16x32xf32>
