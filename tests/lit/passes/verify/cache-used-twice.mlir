// RUN: not mica-opt %s --mica-verify-model 2>&1 | FileCheck %s

// The error names the model's module with the append that consumed the cache.

// CHECK: error: the cache is used after mica.kv_append (model.layers.*.self_attn.k_cache) consumed it
!cache = !mica.kv_cache<2 x 2 x 8 x f32>
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"},
    %c: !cache {mica.role = "cache"}) -> (tensor<?x16xf32> {mica.role = "logits"}, !cache {mica.role = "cache"}) {
  %layer = arith.constant 0 : index
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %h = mica.split_heads %x : tensor<?x16xf32> to tensor<?x2x8xf32>
  %c1 = mica.kv_append %h, %c[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !cache
      loc("model.layers.*.self_attn.k_cache")
  %old = mica.kv_read %c[%layer] : !cache -> tensor<?x?x2x8xf32>
  %chosen = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %chosen, %c1 : tensor<?x16xf32>, !cache
}
mica.weight @table : tensor<16x16xf32>
