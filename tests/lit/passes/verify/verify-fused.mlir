// RUN: mica-opt %s --split-input-file --verify-diagnostics --mica-verify-fused

!cache = !mica.kv_cache<2 x 2 x 8 x f32>
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"},
    %c: !cache {mica.role = "cache"}) -> (tensor<?x32xf32> {mica.role = "logits"}, !cache {mica.role = "cache"}) {
  %layer = arith.constant 0 : index
  %keys = mica.kv_read %c[%layer] : !cache -> tensor<?x?x2x8xf32>
  // expected-error @+1 {{of a cache is left and would copy it; attention must read the same number of repeated keys and values}}
  %keys4 = mica.repeat_kv %keys times 2 : tensor<?x?x2x8xf32> -> tensor<?x?x4x8xf32>
  %table = mica.get_weight @table : tensor<16x32xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x32xf32> -> tensor<?x32xf32>
  %chosen = mica.select_rows %x, %o : tensor<?x32xf32>, tensor<?xi32> -> tensor<?x32xf32>
  return %chosen, %c : tensor<?x32xf32>, !cache
}
mica.weight @table : tensor<16x32xf32>

// -----

func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"})
    -> (tensor<?x16xf32> {mica.role = "logits"}) {
  %n = arith.constant 3 : index
  // expected-error @+1 {{is not allowed at stage `fused`}}
  %x = tensor.empty(%n) : tensor<?x16xf32>
  %chosen = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %chosen : tensor<?x16xf32>
}

// -----

!cache = !mica.kv_cache<2 x 2 x 8 x f32>
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"},
    %k: !cache {mica.role = "cache"}, %v: !cache {mica.role = "cache"})
    -> (tensor<?x64xf32> {mica.role = "logits"}, !cache {mica.role = "cache"}, !cache {mica.role = "cache"}) {
  %layer = arith.constant 0 : index
  %table = mica.get_weight @table : tensor<16x64xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x64xf32> -> tensor<?x64xf32>
  %r = mica.rope_table %p rotary_dim(8) theta(1.0e+04) : tensor<?xi32> -> tensor<?x2x4xf32>
  // expected-note @+1 {{the cache is consumed here}}
  %q, %k1, %v1 = mica.qkv_append %x, %r, %k, %v[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) half
      : tensor<?x64xf32>, tensor<?x2x4xf32>, !cache, !cache -> tensor<?x4x8xf32>
  // expected-error-re @+1 {{the cache is used after mica.qkv_append ({{.*}}verify-fused.mlir:{{[0-9:]+}}) consumed it}}
  %keys = mica.kv_read %k[%layer] : !cache -> tensor<?x?x2x8xf32>
  %chosen = mica.select_rows %x, %o : tensor<?x64xf32>, tensor<?xi32> -> tensor<?x64xf32>
  return %chosen, %k1, %v1 : tensor<?x64xf32>, !cache, !cache
}
mica.weight @table : tensor<16x64xf32>
