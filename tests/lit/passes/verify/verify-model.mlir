// RUN: mica-opt %s --split-input-file --verify-diagnostics --mica-verify-model

// A read before the append reads the old contents; it is not a use after the append.
!cache = !mica.kv_cache<2 x 2 x 8 x f32>
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"},
    %c: !cache {mica.role = "cache"}) -> (tensor<?x16xf32> {mica.role = "logits"}, !cache {mica.role = "cache"}) {
  %layer = arith.constant 0 : index
  %old = mica.kv_read %c[%layer] : !cache -> tensor<?x?x2x8xf32>
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %h = mica.split_heads %x : tensor<?x16xf32> to tensor<?x2x8xf32>
  %c1 = mica.kv_append %h, %c[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !cache
  %chosen = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %chosen, %c1 : tensor<?x16xf32>, !cache
}
mica.weight @table : tensor<16x16xf32>

// -----

!cache = !mica.kv_cache<2 x 2 x 8 x f32>
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"},
    %c: !cache {mica.role = "cache"}) -> (tensor<?x16xf32> {mica.role = "logits"}, !cache {mica.role = "cache"}) {
  %layer = arith.constant 0 : index
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %h = mica.split_heads %x : tensor<?x16xf32> to tensor<?x2x8xf32>
  // expected-note @+1 {{the cache is consumed here}}
  %c1 = mica.kv_append %h, %c[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !cache
  // expected-error-re @+1 {{the cache is used after mica.kv_append ({{.*}}verify-model.mlir:{{[0-9:]+}}) consumed it}}
  %old = mica.kv_read %c[%layer] : !cache -> tensor<?x?x2x8xf32>
  %chosen = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %chosen, %c1 : tensor<?x16xf32>, !cache
}
mica.weight @table : tensor<16x16xf32>

// -----

// Returning the old cache is a use as well.
!cache = !mica.kv_cache<2 x 2 x 8 x f32>
func.func private @append(%h: tensor<?x2x8xf32>, %c: !cache, %s: tensor<?xi32>, %p: tensor<?xi32>) -> !cache {
  %layer = arith.constant 0 : index
  // expected-note @+1 {{the cache is consumed here}}
  %c1 = mica.kv_append %h, %c[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !cache
  // expected-error-re @+1 {{the cache is used after mica.kv_append ({{.*}}verify-model.mlir:{{[0-9:]+}}) consumed it}}
  return %c : !cache
}
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"},
    %c: !cache {mica.role = "cache"}) -> (tensor<?x16xf32> {mica.role = "logits"}, !cache {mica.role = "cache"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %chosen = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %chosen, %c : tensor<?x16xf32>, !cache
}
mica.weight @table : tensor<16x16xf32>

// -----

// A call consumes its caches; two layers must not get the same one.
!cache = !mica.kv_cache<2 x 2 x 8 x f32>
func.func private @layer(%x: tensor<?x16xf32>, %c: !cache) -> (tensor<?x16xf32>, !cache) {
  return %x, %c : tensor<?x16xf32>, !cache
}
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"},
    %c: !cache {mica.role = "cache"}) -> (tensor<?x16xf32> {mica.role = "logits"}, !cache {mica.role = "cache"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  // expected-note @+1 {{the cache is consumed here}}
  %a:2 = call @layer(%x, %c) : (tensor<?x16xf32>, !cache) -> (tensor<?x16xf32>, !cache)
  // expected-error-re @+1 {{the cache is used after func.call ({{.*}}verify-model.mlir:{{[0-9:]+}}) consumed it}}
  %b:2 = call @layer(%a#0, %c) : (tensor<?x16xf32>, !cache) -> (tensor<?x16xf32>, !cache)
  %chosen = mica.select_rows %b#0, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %chosen, %b#1 : tensor<?x16xf32>, !cache
}
mica.weight @table : tensor<16x16xf32>

// -----

// A call must not get one cache twice.
!cache = !mica.kv_cache<2 x 2 x 8 x f32>
func.func private @layer(%x: tensor<?x16xf32>, %c: !cache, %d: !cache) -> (tensor<?x16xf32>, !cache) {
  return %x, %c : tensor<?x16xf32>, !cache
}
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"},
    %c: !cache {mica.role = "cache"}) -> (tensor<?x16xf32> {mica.role = "logits"}, !cache {mica.role = "cache"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  // expected-note @+2 {{the cache is consumed here}}
  // expected-error @+1 {{the cache is used after func.call}}
  %a:2 = call @layer(%x, %c, %c) : (tensor<?x16xf32>, !cache, !cache) -> (tensor<?x16xf32>, !cache)
  %chosen = mica.select_rows %a#0, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %chosen, %a#1 : tensor<?x16xf32>, !cache
}
mica.weight @table : tensor<16x16xf32>

// -----

// expected-error @+1 {{has no public function @main, which is where a step of the model starts}}
module @no_main {
  func.func private @layer(%x: tensor<?x16xf32>) -> tensor<?x16xf32> {
    return %x : tensor<?x16xf32>
  }
}

// -----

// A model of an earlier version, which identified arguments by their order.
// expected-error @+1 {{@main has no mica.role on argument #0, which says what it is: write {mica.role = "ROLE"} after its type, where ROLE is one of tokens, sequences, positions, logit_indices, lengths, cache, weights, scratch, logits, hidden}}
func.func @main(%t: tensor<?xi32>, %s: tensor<?xi32>, %p: tensor<?xi32>, %o: tensor<?xi32>) -> tensor<?x16xf32> {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  return %x : tensor<?x16xf32>
}
mica.weight @table : tensor<16x16xf32>

// -----

// expected-error @+1 {{@main has no mica.role on result #0, which says what it is: write {mica.role = "ROLE"} after its type, where ROLE is one of cache, logits, hidden}}
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}) -> tensor<?x16xf32> {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  return %x : tensor<?x16xf32>
}
mica.weight @table : tensor<16x16xf32>

// -----

// expected-error @+1 {{@main has no argument with mica.role = "logit_indices"}}
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}) -> (tensor<?x16xf32> {mica.role = "logits"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  return %x : tensor<?x16xf32>
}
mica.weight @table : tensor<16x16xf32>

// -----

// expected-error @+1 {{@main has no result with mica.role = "logits"}}
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"}) {
  return
}

// -----

// expected-error @+1 {{@main returns logits of the type 'tensor<?x2x8xf32>', expected tensor<?xVxf32>}}
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"})
    -> (tensor<?x2x8xf32> {mica.role = "logits"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %y = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  %h = mica.split_heads %y : tensor<?x16xf32> to tensor<?x2x8xf32>
  return %h : tensor<?x2x8xf32>
}
mica.weight @table : tensor<16x16xf32>

// -----

// Hidden rows are overwritten.
// expected-error @+1 {{@main must take and return rows with mica.role = "hidden", of one type}}
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"},
    %h: tensor<?x16xf32> {mica.role = "hidden"}) -> (tensor<?x16xf32> {mica.role = "logits"}) {
  %y = mica.select_rows %h, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}

// -----

// Hidden rows are rows of tokens.
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"},
    %h: tensor<?x16xf32> {mica.role = "hidden"})
    -> (tensor<?x16xf32> {mica.role = "logits"}, tensor<?x16xf32> {mica.role = "hidden"}) {
  %y = mica.select_rows %h, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  // expected-error @+1 {{expects an operand with role token rows, got logit rows}}
  return %y, %y : tensor<?x16xf32>, tensor<?x16xf32>
}

// -----

// Scratch memory is an argument of code, not of models.
// expected-error @+1 {{@main takes argument #4, scratch, as 'memref<?xi8>', which is of stage `loops`}}
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"},
    %m: memref<?xi8> {mica.role = "scratch"}) -> (tensor<?x16xf32> {mica.role = "logits"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %y = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
mica.weight @table : tensor<16x16xf32>

// -----

// A rope depends on the sequence length.
// expected-error @+1 {{@main has no argument with mica.role = "lengths", which its RoPE scaling requires}}
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"})
    -> (tensor<?x16xf32> {mica.role = "logits"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %h = mica.split_heads %x : tensor<?x16xf32> to tensor<?x2x8xf32>
  %r = mica.rope %h, %p lengths(%p : tensor<?xi32>) half theta(1.0e+04) scaling(#mica.dynamic_scaling<factor = 2.0, original_context = 8>)
      : tensor<?x2x8xf32>, tensor<?xi32>
  %y = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
mica.weight @table : tensor<16x16xf32>

// -----

// Caches are returned in the order of the arguments.
!a = !mica.kv_cache<2 x 2 x 8 x f32>
!b = !mica.kv_cache<2 x 1 x 8 x f32>
// expected-error @+1 {{@main must return the caches that it takes, in their order}}
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"},
    %c: !a {mica.role = "cache"}, %d: !b {mica.role = "cache"})
    -> (tensor<?x16xf32> {mica.role = "logits"}, !b {mica.role = "cache"}, !a {mica.role = "cache"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %chosen = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %chosen, %d, %c : tensor<?x16xf32>, !b, !a
}
mica.weight @table : tensor<16x16xf32>

// -----

// expected-error @+1 {{@layer has no body}}
func.func private @layer(%x: tensor<?x16xf32>) -> tensor<?x16xf32>

// -----

func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"})
    -> (tensor<?x16xf32> {mica.role = "logits"}) {
  %n = arith.constant 3 : index
  // expected-error @+1 {{is not allowed at stage `model`}}
  %x = tensor.empty(%n) : tensor<?x16xf32>
  %chosen = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %chosen : tensor<?x16xf32>
}

// -----

func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"})
    -> (tensor<?x16xf32> {mica.role = "logits"}) {
  // expected-error @+1 {{is created by fusion and not allowed at stage `model`}}
  %r = mica.rope_table %p rotary_dim(8) theta(1.0e+04) : tensor<?xi32> -> tensor<?x2x4xf32>
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %chosen = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %chosen : tensor<?x16xf32>
}
mica.weight @table : tensor<16x16xf32>

// -----

// The model must not be recursive.
mica.weight @table : tensor<16x16xf32>
func.func private @even(%x: tensor<?x16xf32>) -> tensor<?x16xf32> {
  %y = call @odd(%x) : (tensor<?x16xf32>) -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
func.func private @odd(%x: tensor<?x16xf32>) -> tensor<?x16xf32> {
  // expected-error @+1 {{'func.call' op calls @even, which leads back to this call: a step of the model would not terminate; call one layer after another}}
  %y = call @even(%x) : (tensor<?x16xf32>) -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"})
    -> (tensor<?x16xf32> {mica.role = "logits"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %chosen = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %chosen : tensor<?x16xf32>
}
