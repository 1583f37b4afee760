// RUN: mica-opt %s --split-input-file --verify-diagnostics --mica-verify-fused

// A layer index is within its cache, for all paths of calls.

// A function without callers is not checked.
!cache = !mica.kv_cache<2 x 2 x 8 x f32>
mica.weight @table : tensor<16x16xf32>
func.func private @unused(%c: !cache, %layer: index) {
  %k = mica.kv_read %c[%layer] : !cache -> tensor<?x?x2x8xf32>
  return
}
func.func private @layer(%h: tensor<?x2x8xf32>, %c: !cache, %layer: index, %s: tensor<?xi32>, %p: tensor<?xi32>) -> !cache {
  %k = mica.kv_read %c[%layer] : !cache -> tensor<?x?x2x8xf32>
  %next = mica.kv_append %h, %c[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !cache
  return %next : !cache
}
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"},
    %c: !cache {mica.role = "cache"}) -> (tensor<?x16xf32> {mica.role = "logits"}, !cache {mica.role = "cache"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %h = mica.split_heads %x : tensor<?x16xf32> to tensor<?x2x8xf32>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %c0 = call @layer(%h, %c, %zero, %s, %p) : (tensor<?x2x8xf32>, !cache, index, tensor<?xi32>, tensor<?xi32>) -> !cache
  %c1 = call @layer(%h, %c0, %one, %s, %p) : (tensor<?x2x8xf32>, !cache, index, tensor<?xi32>, tensor<?xi32>) -> !cache
  %chosen = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %chosen, %c1 : tensor<?x16xf32>, !cache
}

// -----

// One of several calls is wrong.
!cache = !mica.kv_cache<2 x 2 x 8 x f32>
mica.weight @table : tensor<16x16xf32>
func.func private @layer(%h: tensor<?x2x8xf32>, %c: !cache, %layer: index, %s: tensor<?xi32>, %p: tensor<?xi32>) -> !cache {
  // expected-error @+1 {{'mica.kv_append' op uses layers 0 to 900000000, but there are 2; valid indices are constants from 0 to 1}}
  %next = mica.kv_append %h, %c[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !cache
  return %next : !cache
}
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"},
    %c: !cache {mica.role = "cache"}) -> (tensor<?x16xf32> {mica.role = "logits"}, !cache {mica.role = "cache"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %h = mica.split_heads %x : tensor<?x16xf32> to tensor<?x2x8xf32>
  %zero = arith.constant 0 : index
  %one = arith.constant 900000000 : index
  %c0 = call @layer(%h, %c, %zero, %s, %p) : (tensor<?x2x8xf32>, !cache, index, tensor<?xi32>, tensor<?xi32>) -> !cache
  %c1 = call @layer(%h, %c0, %one, %s, %p) : (tensor<?x2x8xf32>, !cache, index, tensor<?xi32>, tensor<?xi32>) -> !cache
  %chosen = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %chosen, %c1 : tensor<?x16xf32>, !cache
}

// -----

!cache = !mica.kv_cache<2 x 2 x 8 x f32>
mica.weight @table : tensor<16x16xf32>
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"},
    %c: !cache {mica.role = "cache"}) -> (tensor<?x16xf32> {mica.role = "logits"}, !cache {mica.role = "cache"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %below = arith.constant -1 : index
  // expected-error @+1 {{'mica.kv_read' op uses layer -1, but there are 2; valid indices are constants from 0 to 1}}
  %k = mica.kv_read %c[%below] : !cache -> tensor<?x?x2x8xf32>
  %chosen = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %chosen, %c : tensor<?x16xf32>, !cache
}

// -----

!cache = !mica.kv_cache<2 x 2 x 8 x f32>
mica.weight @table : tensor<16x64xf32>
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"},
    %k: !cache {mica.role = "cache"}, %v: !cache {mica.role = "cache"})
    -> (tensor<?x64xf32> {mica.role = "logits"}, !cache {mica.role = "cache"}, !cache {mica.role = "cache"}) {
  %two = arith.constant 2 : index
  %table = mica.get_weight @table : tensor<16x64xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x64xf32> -> tensor<?x64xf32>
  %r = mica.rope_table %p rotary_dim(8) theta(1.0e+04) : tensor<?xi32> -> tensor<?x2x4xf32>
  // expected-error @+1 {{'mica.qkv_append' op uses layer 2, but there are 2}}
  %q, %k1, %v1 = mica.qkv_append %x, %r, %k, %v[%two] at(%s, %p : tensor<?xi32>, tensor<?xi32>) half
      : tensor<?x64xf32>, tensor<?x2x4xf32>, !cache, !cache -> tensor<?x4x8xf32>
  %chosen = mica.select_rows %x, %o : tensor<?x64xf32>, tensor<?xi32> -> tensor<?x64xf32>
  return %chosen, %k1, %v1 : tensor<?x64xf32>, !cache, !cache
}

// -----

mica.weight @table : tensor<16x16xf32>
mica.weight @other : tensor<16x16xf32>
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"})
    -> (tensor<?x16xf32> {mica.role = "logits"}) {
  %two = arith.constant 2 : index
  // expected-error @+1 {{'mica.select_weight' op uses weight 2, but there are 2}}
  %table = mica.select_weight [@table, @other][%two] : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %chosen = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %chosen : tensor<?x16xf32>
}

// -----

// Index tables: the entries that the index can select.
!cache = !mica.kv_cache<2 x 2 x 8 x f32>
mica.weight @table : tensor<16x16xf32>
func.func private @of_two(%c: !cache, %i: index) -> !cache {
  %layer = mica.index_table [1, 0, 7][%i]
  %k = mica.kv_read %c[%layer] : !cache -> tensor<?x?x2x8xf32>
  return %c : !cache
}
func.func private @of_three(%c: !cache, %i: index) -> !cache {
  %layer = mica.index_table [1, 0, 7][%i]
  // expected-error @+1 {{'mica.kv_read' op uses layers 0 to 7, but there are 2; valid indices are constants from 0 to 1}}
  %k = mica.kv_read %c[%layer] : !cache -> tensor<?x?x2x8xf32>
  return %c : !cache
}
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"},
    %c: !cache {mica.role = "cache"}) -> (tensor<?x16xf32> {mica.role = "logits"}, !cache {mica.role = "cache"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %c1 = call @of_two(%c, %zero) : (!cache, index) -> !cache
  %c2 = call @of_two(%c1, %one) : (!cache, index) -> !cache
  %c3 = call @of_three(%c2, %zero) : (!cache, index) -> !cache
  %c4 = call @of_three(%c3, %two) : (!cache, index) -> !cache
  %chosen = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %chosen, %c4 : tensor<?x16xf32>, !cache
}

// -----

mica.weight @table : tensor<16x16xf32>
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"})
    -> (tensor<?x16xf32> {mica.role = "logits"}) {
  %two = arith.constant 2 : index
  // expected-error @+1 {{'mica.index_table' op uses number 2, but there are 2; valid indices are constants from 0 to 1}}
  %number = mica.index_table [0, 1][%two]
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %chosen = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %chosen : tensor<?x16xf32>
}

// -----

// An index that is computed from an unknown value.
!cache = !mica.kv_cache<2 x 2 x 8 x f32>
mica.weight @table : tensor<16x16xf32>
func.func private @from_outside(%c: !cache, %layer: index) -> !cache {
  // expected-error @+1 {{'mica.kv_read' op uses a layer index that is not known at compile time, but there are 2; valid indices are constants from 0 to 1}}
  %k = mica.kv_read %c[%layer] : !cache -> tensor<?x?x2x8xf32>
  return %c : !cache
}
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"},
    %c: !cache {mica.role = "cache"}) -> (tensor<?x16xf32> {mica.role = "logits"}, !cache {mica.role = "cache"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %some = arith.constant 7 : index
  %pi = arith.constant 3.14 : f32
  %int = arith.fptosi %pi : f32 to i64
  %layer = arith.index_cast %int : i64 to index
  %c0 = call @from_outside(%c, %layer) : (!cache, index) -> !cache
  %chosen = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %chosen, %c0 : tensor<?x16xf32>, !cache
}

// -----

// The gate determines the range of expert indices.
mica.weight @table : tensor<16x16xf32>
mica.weight @gate : tensor<5x16xf32>
mica.weight @up : tensor<4x32x16xf32>
mica.weight @down : tensor<4x16x32xf32>
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"})
    -> (tensor<?x16xf32> {mica.role = "logits"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %gate = mica.get_weight @gate : tensor<5x16xf32>
  %up = mica.get_weight @up : tensor<4x32x16xf32>
  %down = mica.get_weight @down : tensor<4x16x32xf32>
  %w, %e = mica.moe_gate %x, %gate softmax k(2) : tensor<?x16xf32>, tensor<5x16xf32> -> tensor<?x2xf32>, tensor<?x2xi32>
  %w1, %e1 = mica.moe_gate %x, %gate sigmoid k(2) : tensor<?x16xf32>, tensor<5x16xf32> -> tensor<?x2xf32>, tensor<?x2xi32>
  // expected-error @+1 {{'mica.moe_experts' op has 4 experts, but mica.moe_gate chooses among 5}}
  %z = mica.moe_experts %x, %w, %e, %up, %down up(%up : tensor<4x32x16xf32>) silu inner(32)
      : tensor<?x16xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<4x32x16xf32>, tensor<4x16x32xf32> -> tensor<?x16xf32>
  %y = mica.select_rows %z, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}

// -----

// The weights are from one gate, the indices from another one.
mica.weight @table : tensor<16x16xf32>
mica.weight @gate : tensor<4x16xf32>
mica.weight @up : tensor<4x32x16xf32>
mica.weight @down : tensor<4x16x32xf32>
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"})
    -> (tensor<?x16xf32> {mica.role = "logits"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %gate = mica.get_weight @gate : tensor<4x16xf32>
  %up = mica.get_weight @up : tensor<4x32x16xf32>
  %down = mica.get_weight @down : tensor<4x16x32xf32>
  %w, %e = mica.moe_gate %x, %gate softmax k(2) : tensor<?x16xf32>, tensor<4x16xf32> -> tensor<?x2xf32>, tensor<?x2xi32>
  %w1, %e1 = mica.moe_gate %x, %gate sigmoid k(2) : tensor<?x16xf32>, tensor<4x16xf32> -> tensor<?x2xf32>, tensor<?x2xi32>
  // expected-error @+1 {{'mica.moe_experts' op takes weights and indices of experts that are not results of the same mica.moe_gate: use its results, so that the indices are in range}}
  %z = mica.moe_experts %x, %w, %e1, %up, %down up(%up : tensor<4x32x16xf32>) silu inner(32)
      : tensor<?x16xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<4x32x16xf32>, tensor<4x16x32xf32> -> tensor<?x16xf32>
  %y = mica.select_rows %z, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}

// -----

mica.weight @table : tensor<16x16xf32>
func.func private @layer(%h: tensor<?x2x8xf32>, %layer: index) -> tensor<?x8xf32> {
  // expected-error @+1 {{'mica.select_head' op uses heads 0 to 2, but there are 2; valid indices are constants from 0 to 1}}
  %own = mica.select_head %h[%layer] : tensor<?x2x8xf32> -> tensor<?x8xf32>
  return %own : tensor<?x8xf32>
}
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"})
    -> (tensor<?x16xf32> {mica.role = "logits"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %h = mica.split_heads %x : tensor<?x16xf32> to tensor<?x2x8xf32>
  %zero = arith.constant 0 : index
  %two = arith.constant 2 : index
  %a = call @layer(%h, %zero) : (tensor<?x2x8xf32>, index) -> tensor<?x8xf32>
  %b = call @layer(%h, %two) : (tensor<?x2x8xf32>, index) -> tensor<?x8xf32>
  %chosen = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %chosen : tensor<?x16xf32>
}
