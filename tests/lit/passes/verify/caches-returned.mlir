// RUN: mica-opt %s --split-input-file --verify-diagnostics --cpu-verify-kernels

// Entries return every cache at the index of its argument. Types do not ensure that: the two pairs here have equal types.

#p = #mica.packed<columns = 64, depth = 1, k_block = 16>
!kc = !mica.kv_cache<2 x 2 x 8 x f32, <keys, block = 64, depth = 1>>
mica.weight @w at 0 bytes 4096 : tensor<16x16xf32, #p>

// Through appends, calls and loops; a layer may return its caches in another order if the entry does not.
func.func private @layer(%x: tensor<?x16xf32>, %a: !kc, %b: !kc, %layer: index, %s: tensor<?xi32>, %p: tensor<?xi32>) -> (!kc, !kc) {
  %h = mica.split_heads %x : tensor<?x16xf32> to tensor<?x2x8xf32>
  %a1 = mica.kv_append %h, %a[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !kc
  return %b, %a1 : !kc, !kc
}
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"},
    %a: !kc {mica.role = "cache"}, %b: !kc {mica.role = "cache"})
    -> (tensor<?x16xf32> {mica.role = "logits"}, !kc {mica.role = "cache"}, !kc {mica.role = "cache"}) {
  %w = mica.get_weight @w : tensor<16x16xf32, #p>
  %x = mica.embedding %t, %w : tensor<?xi32>, tensor<16x16xf32, #p> -> tensor<?x16xf32>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %r:2 = scf.for %i = %zero to %two step %one iter_args(%c = %a, %d = %b) -> (!kc, !kc) {
    %e:2 = func.call @layer(%x, %c, %d, %i, %s, %p) : (tensor<?x16xf32>, !kc, !kc, index, tensor<?xi32>, tensor<?xi32>) -> (!kc, !kc)
    scf.yield %e#1, %e#0 : !kc, !kc
  }
  %chosen = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %chosen, %r#0, %r#1 : tensor<?x16xf32>, !kc, !kc
}

// -----

#p = #mica.packed<columns = 64, depth = 1, k_block = 16>
!kc = !mica.kv_cache<2 x 2 x 8 x f32, <keys, block = 64, depth = 1>>
mica.weight @w at 0 bytes 4096 : tensor<16x16xf32, #p>
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"},
    %a: !kc {mica.role = "cache"}, %b: !kc {mica.role = "cache"})
    -> (tensor<?x16xf32> {mica.role = "logits"}, !kc {mica.role = "cache"}, !kc {mica.role = "cache"}) {
  %w = mica.get_weight @w : tensor<16x16xf32, #p>
  %x = mica.embedding %t, %w : tensor<?xi32>, tensor<16x16xf32, #p> -> tensor<?x16xf32>
  %chosen = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  // expected-error @+1 {{'func.return' op returns as cache 0 another one than it received there: return every cache, appended to, in its own place}}
  return %chosen, %b, %a : tensor<?x16xf32>, !kc, !kc
}

// -----

// Swapped once in every iteration of a loop.
#p = #mica.packed<columns = 64, depth = 1, k_block = 16>
!kc = !mica.kv_cache<2 x 2 x 8 x f32, <keys, block = 64, depth = 1>>
mica.weight @w at 0 bytes 4096 : tensor<16x16xf32, #p>
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"},
    %a: !kc {mica.role = "cache"}, %b: !kc {mica.role = "cache"})
    -> (tensor<?x16xf32> {mica.role = "logits"}, !kc {mica.role = "cache"}, !kc {mica.role = "cache"}) {
  %w = mica.get_weight @w : tensor<16x16xf32, #p>
  %x = mica.embedding %t, %w : tensor<?xi32>, tensor<16x16xf32, #p> -> tensor<?x16xf32>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %r:2 = scf.for %i = %zero to %two step %one iter_args(%c = %a, %d = %b) -> (!kc, !kc) {
    scf.yield %d, %c : !kc, !kc
  }
  %chosen = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  // expected-error @+1 {{returns as cache 0 another one than it received there}}
  return %chosen, %r#0, %r#1 : tensor<?x16xf32>, !kc, !kc
}

// -----

// Swapped by a layer.
#p = #mica.packed<columns = 64, depth = 1, k_block = 16>
!kc = !mica.kv_cache<2 x 2 x 8 x f32, <keys, block = 64, depth = 1>>
mica.weight @w at 0 bytes 4096 : tensor<16x16xf32, #p>
func.func private @layer(%a: !kc, %b: !kc) -> (!kc, !kc) {
  return %b, %a : !kc, !kc
}
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"},
    %a: !kc {mica.role = "cache"}, %b: !kc {mica.role = "cache"})
    -> (tensor<?x16xf32> {mica.role = "logits"}, !kc {mica.role = "cache"}, !kc {mica.role = "cache"}) {
  %w = mica.get_weight @w : tensor<16x16xf32, #p>
  %x = mica.embedding %t, %w : tensor<?xi32>, tensor<16x16xf32, #p> -> tensor<?x16xf32>
  %r:2 = call @layer(%a, %b) : (!kc, !kc) -> (!kc, !kc)
  %chosen = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  // expected-error @+1 {{returns as cache 0 another one than it received there}}
  return %chosen, %r#0, %r#1 : tensor<?x16xf32>, !kc, !kc
}
