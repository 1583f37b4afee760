// RUN: mica-opt %s --split-input-file --verify-diagnostics

// Roles of arguments and results, at stage `model` and with buffers.
func.func @model(%p: tensor<?xi32> {mica.role = "positions"}, %k: !mica.kv_cache<2 x 2 x 8 x f32> {mica.role = "cache"},
    %v: !mica.kv_cache<2 x 2 x 8 x f32> {mica.role = "cache"}, %t: tensor<?xi32> {mica.role = "tokens"})
    -> (!mica.kv_cache<2 x 2 x 8 x f32> {mica.role = "cache"}, !mica.kv_cache<2 x 2 x 8 x f32> {mica.role = "cache"}) {
  return %k, %v : !mica.kv_cache<2 x 2 x 8 x f32>, !mica.kv_cache<2 x 2 x 8 x f32>
}
func.func @loops(%t: memref<?xi32> {mica.role = "tokens"}, %k: memref<2x?x2x?x512xf32> {mica.role = "cache"},
    %w: memref<?xi8> {mica.role = "weights"}, %s: memref<?xi8> {mica.role = "scratch"},
    %l: memref<?x96xf32> {mica.role = "logits"}) {
  return
}

// -----

// expected-error @+1 {{argument #0 has mica.role = "pages", expected one of tokens, sequences, positions, logit_indices, lengths, cache, weights, scratch, logits, hidden}}
func.func @unknown(%t: tensor<?xi32> {mica.role = "pages"}) { return }

// -----

// expected-error @+1 {{argument #0 has mica.role = 1 : i64, expected one of tokens}}
func.func @no_name(%t: tensor<?xi32> {mica.role = 1 : i64}) { return }

// -----

// expected-error @+1 {{result #0 has mica.role = "tokens", expected one of cache, logits, hidden}}
func.func @returned(%t: tensor<?xi32>) -> (tensor<?xi32> {mica.role = "tokens"}) { return %t : tensor<?xi32> }

// -----

// expected-error @+1 {{argument #2 has mica.role = "tokens", as has argument #0}}
func.func @twice(%t: tensor<?xi32> {mica.role = "tokens"}, %x: index, %u: tensor<?xi32> {mica.role = "tokens"}) { return }

// -----

// expected-error @+1 {{result #1 has mica.role = "logits", as has result #0}}
func.func @both(%x: tensor<?x8xf32>) -> (tensor<?x8xf32> {mica.role = "logits"}, tensor<?x8xf32> {mica.role = "logits"}) {
  return %x, %x : tensor<?x8xf32>, tensor<?x8xf32>
}

// -----

// expected-error @+1 {{argument #0 has mica.role = "tokens" and the type 'tensor<?x2xi32>', expected tensor<?xi32> or memref<?xi32>}}
func.func @pairs(%t: tensor<?x2xi32> {mica.role = "tokens"}) { return }

// -----

// expected-error @+1 {{argument #0 has mica.role = "logit_indices" and the type 'index', expected tensor<?xi32> or memref<?xi32>}}
func.func @scalar(%o: index {mica.role = "logit_indices"}) { return }

// -----

// expected-error @+1 {{argument #0 has mica.role = "cache" and the type 'tensor<?x8xf32>', expected a type of sequence state or a buffer with a static number of layers}}
func.func @rows(%k: tensor<?x8xf32> {mica.role = "cache"}) { return }

// -----

// expected-error @+1 {{argument #0 has mica.role = "scratch" and the type 'memref<?xf32>', expected memref<?xi8>}}
func.func @floats(%s: memref<?xf32> {mica.role = "scratch"}) { return }

// -----

// expected-error @+1 {{result #0 has mica.role = "logits" and the type '!mica.kv_cache<2 x 2 x 8 x f32>', expected rows, such as tensor<?xVxf32>}}
func.func @cache(%k: !mica.kv_cache<2 x 2 x 8 x f32>) -> (!mica.kv_cache<2 x 2 x 8 x f32> {mica.role = "logits"}) {
  return %k : !mica.kv_cache<2 x 2 x 8 x f32>
}

// -----

// expected-error @+1 {{argument #0 has mica.role, but only entry functions, which are public, have roles}}
func.func private @layer(%t: tensor<?xi32> {mica.role = "tokens"}) { return }

// -----

// The former name of the attribute of functions for prefill rows.
// expected-error @+1 {{has mica.role, which arguments and results of entry functions have; the role of the rows of a function is mica.row_role}}
func.func @main_prompt_large() attributes {mica.role = "prompt"} { return }

// -----

// expected-error @+1 {{argument #0 has mica.role = "hidden" and the type 'tensor<?x2x8xf32>', expected tensor<?xCxf32> or memref<?xCxf32>}}
func.func @heads(%h: tensor<?x2x8xf32> {mica.role = "hidden"}) { return }
