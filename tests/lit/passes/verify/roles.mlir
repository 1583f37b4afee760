// RUN: mica-opt %s --split-input-file --verify-diagnostics --cpu-verify-kernels

// Tokens, sequences, positions and logit_indices have the same type: their roles are tracked from the entry to the ops.

// Through calls and loops; an embedding of positions has a row for each of them.
!cache = !mica.kv_cache<2 x 2 x 8 x f32, <keys, block = 64, depth = 1>>
module attributes {mica.model = {max_positions = 16 : i64}} {
mica.weight @table at 0 bytes 16384 : tensor<16x16xf32>
mica.weight @places at 0 bytes 16384 : tensor<16x16xf32>
func.func private @layer(%x: tensor<?x16xf32>, %c: !cache, %layer: index, %s: tensor<?xi32>, %p: tensor<?xi32>) -> (tensor<?x16xf32>, !cache) {
  %h = mica.split_heads %x : tensor<?x16xf32> to tensor<?x2x8xf32>
  %r = mica.rope %h, %p half theta(1.0e+04) : tensor<?x2x8xf32>, tensor<?xi32>
  %c1 = mica.kv_append %r, %c[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !cache
  %k = mica.kv_read %c1[%layer] : !cache -> tensor<?x?x2x8xf32>
  %a = mica.attention %r, %k, %k at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.35) tiling(<rows = 1, chunk = 64, split = false>)
      : tensor<?x2x8xf32>, tensor<?x?x2x8xf32>, tensor<?x?x2x8xf32> -> tensor<?x2x8xf32>
  %m = mica.merge_heads %a : tensor<?x2x8xf32> to tensor<?x16xf32>
  %y = mica.add %x, %m : tensor<?x16xf32>
  return %y, %c1 : tensor<?x16xf32>, !cache
}
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"},
    %c: !cache {mica.role = "cache"}) -> (tensor<?x16xf32> {mica.role = "logits"}, !cache {mica.role = "cache"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %places = mica.get_weight @places : tensor<16x16xf32>
  %e = mica.embedding %p, %places : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %x0 = mica.add %x, %e : tensor<?x16xf32>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %l:2 = scf.for %i = %zero to %two step %one iter_args(%r = %x0, %d = %c) -> (tensor<?x16xf32>, !cache) {
    %n:2 = func.call @layer(%r, %d, %i, %s, %p) : (tensor<?x16xf32>, !cache, index, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x16xf32>, !cache)
    scf.yield %n#0, %n#1 : tensor<?x16xf32>, !cache
  }
  %y = mica.select_rows %l#0, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %y, %l#1 : tensor<?x16xf32>, !cache
}
}

// -----

mica.weight @table at 0 bytes 16384 : tensor<16x16xf32>
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"})
    -> (tensor<?x16xf32> {mica.role = "logits"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  // expected-error @+1 {{'mica.embedding' op expects an operand with role tokens, got logit_indices; mica.role of the arguments of @main defines roles, and mica.select_rows turns token rows into logit rows}}
  %x = mica.embedding %o, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %y = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}

// -----

mica.weight @table at 0 bytes 16384 : tensor<16x16xf32>
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"})
    -> (tensor<?x16xf32> {mica.role = "logits"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %h = mica.split_heads %x : tensor<?x16xf32> to tensor<?x2x8xf32>
  // expected-error @+1 {{'mica.rope' op expects an operand with role positions, got sequences}}
  %r = mica.rope %h, %s half theta(1.0e+04) : tensor<?x2x8xf32>, tensor<?xi32>
  %y = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}

// -----

mica.weight @table at 0 bytes 16384 : tensor<16x16xf32>
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"})
    -> (tensor<?x16xf32> {mica.role = "logits"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  // expected-error @+1 {{'mica.rope_table' op expects an operand with role positions, got tokens}}
  %r = mica.rope_table %t rotary_dim(8) theta(1.0e+04) : tensor<?xi32> -> tensor<?x2x4xf32>
  %y = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}

// -----

!cache = !mica.kv_cache<2 x 2 x 8 x f32, <keys, block = 64, depth = 1>>
mica.weight @table at 0 bytes 16384 : tensor<16x16xf32>
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"},
    %c: !cache {mica.role = "cache"}) -> (tensor<?x16xf32> {mica.role = "logits"}, !cache {mica.role = "cache"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %zero = arith.constant 0 : index
  %h = mica.split_heads %x : tensor<?x16xf32> to tensor<?x2x8xf32>
  // expected-error @+1 {{'mica.kv_append' op expects an operand with role sequences, got positions}}
  %c1 = mica.kv_append %h, %c[%zero] at(%p, %s : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !cache
  %y = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %y, %c1 : tensor<?x16xf32>, !cache
}

// -----

!cache = !mica.kv_cache<2 x 2 x 8 x f32, <keys, block = 64, depth = 1>>
mica.weight @table at 0 bytes 16384 : tensor<16x16xf32>
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"},
    %c: !cache {mica.role = "cache"}) -> (tensor<?x16xf32> {mica.role = "logits"}, !cache {mica.role = "cache"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %zero = arith.constant 0 : index
  %h = mica.split_heads %x : tensor<?x16xf32> to tensor<?x2x8xf32>
  %c1 = mica.kv_append %h, %c[%zero] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !cache
  %k = mica.kv_read %c1[%zero] : !cache -> tensor<?x?x2x8xf32>
  // expected-error @+1 {{'mica.attention' op expects an operand with role sequences, got tokens}}
  %a = mica.attention %h, %k, %k at(%t, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.35) tiling(<rows = 1, chunk = 64, split = false>)
      : tensor<?x2x8xf32>, tensor<?x?x2x8xf32>, tensor<?x?x2x8xf32> -> tensor<?x2x8xf32>
  %y = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %y, %c1 : tensor<?x16xf32>, !cache
}

// -----

!cache = !mica.kv_cache<2 x 2 x 8 x f32, <keys, block = 64, depth = 1>>
mica.weight @table at 0 bytes 16384 : tensor<16x16xf32>
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"},
    %c: !cache {mica.role = "cache"}) -> (tensor<?x16xf32> {mica.role = "logits"}, !cache {mica.role = "cache"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %zero = arith.constant 0 : index
  %h = mica.split_heads %x : tensor<?x16xf32> to tensor<?x2x8xf32>
  %c1 = mica.kv_append %h, %c[%zero] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !cache
  %k = mica.kv_read %c1[%zero] : !cache -> tensor<?x?x2x8xf32>
  // expected-error @+1 {{'mica.attention' op expects an operand with role positions, got logit_indices}}
  %a = mica.attention %h, %k, %k at(%s, %o : tensor<?xi32>, tensor<?xi32>) causal scale(0.35) tiling(<rows = 1, chunk = 64, split = false>)
      : tensor<?x2x8xf32>, tensor<?x?x2x8xf32>, tensor<?x?x2x8xf32> -> tensor<?x2x8xf32>
  %y = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %y, %c1 : tensor<?x16xf32>, !cache
}

// -----

!cache = !mica.kv_cache<2 x 2 x 8 x f32, <keys, block = 64, depth = 1>>
mica.weight @table at 0 bytes 16384 : tensor<64x64xf32>
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"},
    %k: !cache {mica.role = "cache"}, %v: !cache {mica.role = "cache"})
    -> (tensor<?x64xf32> {mica.role = "logits"}, !cache {mica.role = "cache"}, !cache {mica.role = "cache"}) {
  %zero = arith.constant 0 : index
  %table = mica.get_weight @table : tensor<64x64xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<64x64xf32> -> tensor<?x64xf32>
  %r = mica.rope_table %p rotary_dim(8) theta(1.0e+04) : tensor<?xi32> -> tensor<?x2x4xf32>
  // expected-error @+1 {{'mica.qkv_append' op expects an operand with role positions, got logit_indices}}
  %q, %k1, %v1 = mica.qkv_append %x, %r, %k, %v[%zero] at(%s, %o : tensor<?xi32>, tensor<?xi32>) half
      : tensor<?x64xf32>, tensor<?x2x4xf32>, !cache, !cache -> tensor<?x4x8xf32>
  %y = mica.select_rows %x, %o : tensor<?x64xf32>, tensor<?xi32> -> tensor<?x64xf32>
  return %y, %k1, %v1 : tensor<?x64xf32>, !cache, !cache
}

// -----

mica.weight @table at 0 bytes 16384 : tensor<16x16xf32>
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"})
    -> (tensor<?x16xf32> {mica.role = "logits"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  // expected-error @+1 {{'mica.select_rows' op expects an operand with role logit_indices, got tokens}}
  %y = mica.select_rows %x, %t : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}

// -----

// There are fewer rows of logits than of tokens: indices of tokens do not apply to them.
mica.weight @table at 0 bytes 16384 : tensor<16x16xf32>
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"})
    -> (tensor<?x16xf32> {mica.role = "logits"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %y = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  // expected-error @+1 {{'mica.select_rows' op expects an operand with role token rows, got logit rows}}
  %z = mica.select_rows %y, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}

// -----

mica.weight @table at 0 bytes 16384 : tensor<16x16xf32>
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"})
    -> (tensor<?x16xf32> {mica.role = "logits"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %y = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  // expected-error @+1 {{'mica.add' op expects an operand with role token rows, got logit rows}}
  %z = mica.add %x, %y : tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}

// -----

mica.weight @table at 0 bytes 16384 : tensor<16x16xf32>
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"})
    -> (tensor<?x16xf32> {mica.role = "logits"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  // expected-error @+1 {{'func.return' op expects an operand with role logit rows, got token rows}}
  return %x : tensor<?x16xf32>
}

// -----

// Through a call's argument.
func.func private @turn(%h: tensor<?x2x8xf32>, %p: tensor<?xi32>) -> tensor<?x2x8xf32> {
  // expected-error @+1 {{'mica.rope' op expects an operand with role positions, got logit_indices}}
  %r = mica.rope %h, %p half theta(1.0e+04) : tensor<?x2x8xf32>, tensor<?xi32>
  return %r : tensor<?x2x8xf32>
}
mica.weight @table at 0 bytes 16384 : tensor<16x16xf32>
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"})
    -> (tensor<?x16xf32> {mica.role = "logits"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %h = mica.split_heads %x : tensor<?x16xf32> to tensor<?x2x8xf32>
  %a = call @turn(%h, %o) : (tensor<?x2x8xf32>, tensor<?xi32>) -> tensor<?x2x8xf32>
  %y = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}

// -----

// One of two calls is wrong.
func.func private @turn(%h: tensor<?x2x8xf32>, %p: tensor<?xi32>) -> tensor<?x2x8xf32> {
  // expected-error @+1 {{'mica.rope' op expects an operand with role positions, got no single role}}
  %r = mica.rope %h, %p half theta(1.0e+04) : tensor<?x2x8xf32>, tensor<?xi32>
  return %r : tensor<?x2x8xf32>
}
mica.weight @table at 0 bytes 16384 : tensor<16x16xf32>
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"})
    -> (tensor<?x16xf32> {mica.role = "logits"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %h = mica.split_heads %x : tensor<?x16xf32> to tensor<?x2x8xf32>
  %a = call @turn(%h, %p) : (tensor<?x2x8xf32>, tensor<?xi32>) -> tensor<?x2x8xf32>
  %b = call @turn(%h, %s) : (tensor<?x2x8xf32>, tensor<?xi32>) -> tensor<?x2x8xf32>
  %y = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}

// -----

// A function without callers is not checked.
func.func private @turn(%h: tensor<?x2x8xf32>, %p: tensor<?xi32>) -> tensor<?x2x8xf32> {
  %r = mica.rope %h, %p half theta(1.0e+04) : tensor<?x2x8xf32>, tensor<?xi32>
  return %r : tensor<?x2x8xf32>
}
mica.weight @table at 0 bytes 16384 : tensor<16x16xf32>
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"})
    -> (tensor<?x16xf32> {mica.role = "logits"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %y = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}

// -----

mica.weight @table at 0 bytes 16384 : tensor<15x16xf32>
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"})
    -> (tensor<?x16xf32> {mica.role = "logits"}) {
  %table = mica.get_weight @table : tensor<15x16xf32>
  // expected-error @+1 {{'mica.embedding' op has a table with 15 rows, expected at least 16, one per token}}
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<15x16xf32> -> tensor<?x16xf32>
  %y = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}

// -----

module attributes {mica.model = {max_positions = 17 : i64}} {
mica.weight @table at 0 bytes 16384 : tensor<16x16xf32>
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"})
    -> (tensor<?x16xf32> {mica.role = "logits"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  // expected-error @+1 {{'mica.embedding' op has a table with 16 rows, expected at least 17, one per position}}
  %e = mica.embedding %p, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %y = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
}

// -----

// Layers of two types, in sequence.
#p = #mica.packed<columns = 64, depth = 1, k_block = 16>
mica.weight @table at 0 bytes 16384 : tensor<16x16xf32, #p>
func.func private @second(%x: tensor<?x16xf32>, %p: tensor<?xi32>, %table: tensor<16x16xf32, #p>) -> tensor<?x16xf32> {
  %y = mica.linear %x, %table kernel(generated) : tensor<?x16xf32>, tensor<16x16xf32, #p> -> tensor<?x16xf32>
  %h = mica.split_heads %y : tensor<?x16xf32> to tensor<?x2x8xf32>
  %r = mica.rope %h, %p half theta(1.0e+04) : tensor<?x2x8xf32>, tensor<?xi32>
  %m = mica.merge_heads %r : tensor<?x2x8xf32> to tensor<?x16xf32>
  return %m : tensor<?x16xf32>
}
func.func private @first(%x: tensor<?x16xf32>, %p: tensor<?xi32>, %table: tensor<16x16xf32, #p>) -> tensor<?x16xf32> {
  %y = mica.silu %x : tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"})
    -> (tensor<?x16xf32> {mica.role = "logits"}) {
  %table = mica.get_weight @table : tensor<16x16xf32, #p>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32, #p> -> tensor<?x16xf32>
  %a = call @first(%x, %p, %table) : (tensor<?x16xf32>, tensor<?xi32>, tensor<16x16xf32, #p>) -> tensor<?x16xf32>
  %b = call @second(%a, %p, %table) : (tensor<?x16xf32>, tensor<?xi32>, tensor<16x16xf32, #p>) -> tensor<?x16xf32>
  %y = mica.select_rows %b, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}

// -----

// Lengths follow logit_indices.
mica.weight @table at 0 bytes 16384 : tensor<16x16xf32>
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"},
    %n: tensor<?xi32> {mica.role = "lengths"}) -> (tensor<?x16xf32> {mica.role = "logits"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %h = mica.split_heads %x : tensor<?x16xf32> to tensor<?x2x8xf32>
  %r = mica.rope %h, %p lengths(%n : tensor<?xi32>) half theta(1.0e+04) scaling(#mica.dynamic_scaling<factor = 2.0, original_context = 8>)
      : tensor<?x2x8xf32>, tensor<?xi32>
  // expected-error @+1 {{'mica.rope_table' op expects an operand with role lengths, got positions}}
  %q = mica.rope_table %p lengths(%p : tensor<?xi32>) rotary_dim(8) theta(1.0e+04) scaling(#mica.dynamic_scaling<factor = 2.0, original_context = 8>)
      : tensor<?xi32> -> tensor<?x2x4xf32>
  %y = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}

// -----

mica.weight @table at 0 bytes 16384 : tensor<16x16xf32>
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"},
    %n: tensor<?xi32> {mica.role = "lengths"}) -> (tensor<?x16xf32> {mica.role = "logits"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  // expected-error @+1 {{'mica.embedding' op expects an operand with role tokens, got lengths}}
  %x = mica.embedding %n, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %y = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
