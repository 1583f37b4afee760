// RUN: mica-opt %s --split-input-file --verify-diagnostics --mica-verify-model

// A cache with a window is used by attention with an equal or smaller window.
!keys = !mica.kv_cache<1 x 2 x 8 x f32 window(128)>
!values = !mica.kv_cache<1 x 2 x 8 x f32 window(64)>
mica.weight @table : tensor<32x16xf32>
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"},
    %k: !keys {mica.role = "cache"}, %v: !values {mica.role = "cache"})
    -> (tensor<?x32xf32> {mica.role = "logits"}, !keys {mica.role = "cache"}, !values {mica.role = "cache"}) {
  %table = mica.get_weight @table : tensor<32x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<32x16xf32> -> tensor<?x16xf32>
  %layer = arith.constant 0 : index
  %h = mica.split_heads %x : tensor<?x16xf32> to tensor<?x2x8xf32>
  %q = mica.concat_heads %h, %h : tensor<?x2x8xf32>, tensor<?x2x8xf32> -> tensor<?x2x16xf32>
  %qm = mica.merge_heads %q : tensor<?x2x16xf32> to tensor<?x32xf32>
  %qh = mica.split_heads %qm : tensor<?x32xf32> to tensor<?x4x8xf32>
  %k1 = mica.kv_append %h, %k[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !keys
  %v1 = mica.kv_append %h, %v[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !values
  %ks = mica.kv_read %k1[%layer] : !keys -> tensor<?x?x2x8xf32>
  %vs = mica.kv_read %v1[%layer] : !values -> tensor<?x?x2x8xf32>
  %k4 = mica.repeat_kv %ks times 2 : tensor<?x?x2x8xf32> -> tensor<?x?x4x8xf32>
  %v4 = mica.repeat_kv %vs times 2 : tensor<?x?x2x8xf32> -> tensor<?x?x4x8xf32>
  %a = mica.attention %qh, %k4, %v4 at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.35) window(64)
      : tensor<?x4x8xf32>, tensor<?x?x4x8xf32>, tensor<?x?x4x8xf32> -> tensor<?x4x8xf32>
  %m = mica.merge_heads %a : tensor<?x4x8xf32> to tensor<?x32xf32>
  %y = mica.select_rows %m, %o : tensor<?x32xf32>, tensor<?xi32> -> tensor<?x32xf32>
  return %y, %k1, %v1 : tensor<?x32xf32>, !keys, !values
}

// -----

!keys = !mica.kv_cache<1 x 2 x 8 x f32 window(128)>
!values = !mica.kv_cache<1 x 2 x 8 x f32>
mica.weight @table : tensor<32x16xf32>
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"},
    %k: !keys {mica.role = "cache"}, %v: !values {mica.role = "cache"})
    -> (tensor<?x32xf32> {mica.role = "logits"}, !keys {mica.role = "cache"}, !values {mica.role = "cache"}) {
  %table = mica.get_weight @table : tensor<32x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<32x16xf32> -> tensor<?x16xf32>
  %layer = arith.constant 0 : index
  %h = mica.split_heads %x : tensor<?x16xf32> to tensor<?x2x8xf32>
  %q = mica.concat_heads %h, %h : tensor<?x2x8xf32>, tensor<?x2x8xf32> -> tensor<?x2x16xf32>
  %qm = mica.merge_heads %q : tensor<?x2x16xf32> to tensor<?x32xf32>
  %qh = mica.split_heads %qm : tensor<?x32xf32> to tensor<?x4x8xf32>
  %k1 = mica.kv_append %h, %k[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !keys
  %v1 = mica.kv_append %h, %v[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !values
  %ks = mica.kv_read %k1[%layer] : !keys -> tensor<?x?x2x8xf32>
  %vs = mica.kv_read %v1[%layer] : !values -> tensor<?x?x2x8xf32>
  %k4 = mica.repeat_kv %ks times 2 : tensor<?x?x2x8xf32> -> tensor<?x?x4x8xf32>
  %v4 = mica.repeat_kv %vs times 2 : tensor<?x?x2x8xf32> -> tensor<?x?x4x8xf32>
  // expected-error @+1 {{looks back to the first position, but its cache has window(128): use the largest window of its layers, or none}}
  %a = mica.attention %qh, %k4, %v4 at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.35)
      : tensor<?x4x8xf32>, tensor<?x?x4x8xf32>, tensor<?x?x4x8xf32> -> tensor<?x4x8xf32>
  %m = mica.merge_heads %a : tensor<?x4x8xf32> to tensor<?x32xf32>
  %y = mica.select_rows %m, %o : tensor<?x32xf32>, tensor<?xi32> -> tensor<?x32xf32>
  return %y, %k1, %v1 : tensor<?x32xf32>, !keys, !values
}

// -----

!keys = !mica.kv_cache<1 x 2 x 8 x f32 window(128)>
!values = !mica.kv_cache<1 x 2 x 8 x f32 window(64)>
mica.weight @table : tensor<32x16xf32>
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"},
    %k: !keys {mica.role = "cache"}, %v: !values {mica.role = "cache"})
    -> (tensor<?x32xf32> {mica.role = "logits"}, !keys {mica.role = "cache"}, !values {mica.role = "cache"}) {
  %table = mica.get_weight @table : tensor<32x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<32x16xf32> -> tensor<?x16xf32>
  %layer = arith.constant 0 : index
  %h = mica.split_heads %x : tensor<?x16xf32> to tensor<?x2x8xf32>
  %q = mica.concat_heads %h, %h : tensor<?x2x8xf32>, tensor<?x2x8xf32> -> tensor<?x2x16xf32>
  %qm = mica.merge_heads %q : tensor<?x2x16xf32> to tensor<?x32xf32>
  %qh = mica.split_heads %qm : tensor<?x32xf32> to tensor<?x4x8xf32>
  %k1 = mica.kv_append %h, %k[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !keys
  %v1 = mica.kv_append %h, %v[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !values
  %ks = mica.kv_read %k1[%layer] : !keys -> tensor<?x?x2x8xf32>
  %vs = mica.kv_read %v1[%layer] : !values -> tensor<?x?x2x8xf32>
  %k4 = mica.repeat_kv %ks times 2 : tensor<?x?x2x8xf32> -> tensor<?x?x4x8xf32>
  %v4 = mica.repeat_kv %vs times 2 : tensor<?x?x2x8xf32> -> tensor<?x?x4x8xf32>
  // expected-error @+1 {{looks back 65 positions, but its cache has window(64)}}
  %a = mica.attention %qh, %k4, %v4 at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.35) window(65)
      : tensor<?x4x8xf32>, tensor<?x?x4x8xf32>, tensor<?x?x4x8xf32> -> tensor<?x4x8xf32>
  %m = mica.merge_heads %a : tensor<?x4x8xf32> to tensor<?x32xf32>
  %y = mica.select_rows %m, %o : tensor<?x32xf32>, tensor<?xi32> -> tensor<?x32xf32>
  return %y, %k1, %v1 : tensor<?x32xf32>, !keys, !values
}
