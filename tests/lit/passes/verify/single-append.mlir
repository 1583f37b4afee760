// RUN: mica-opt %s --split-input-file --verify-diagnostics --cpu-verify-kernels

// A step appends to each layer of a cache at most once. Two caches have the same layer indices.
!cache = !mica.kv_cache<3 x 2 x 8 x f32, <keys, block = 64, depth = 1>>
mica.weight @table at 0 bytes 16384 : tensor<16x16xf32>
func.func private @layer(%h: tensor<?x2x8xf32>, %c: !cache, %n: index, %s: tensor<?xi32>, %p: tensor<?xi32>) -> !cache {
  %d = mica.kv_append %h, %c[%n] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !cache
  return %d : !cache
}
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"},
    %c: !cache {mica.role = "cache"}, %e: !cache {mica.role = "cache"})
    -> (tensor<?x16xf32> {mica.role = "logits"}, !cache {mica.role = "cache"}, !cache {mica.role = "cache"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %h = mica.split_heads %x : tensor<?x16xf32> to tensor<?x2x8xf32>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %three = arith.constant 3 : index
  %c1 = func.call @layer(%h, %c, %zero, %s, %p) : (tensor<?x2x8xf32>, !cache, index, tensor<?xi32>, tensor<?xi32>) -> !cache
  %c2 = scf.for %i = %zero to %two step %one iter_args(%b = %c1) -> (!cache) {
    %n = arith.addi %i, %one : index
    %b1 = func.call @layer(%h, %b, %n, %s, %p) : (tensor<?x2x8xf32>, !cache, index, tensor<?xi32>, tensor<?xi32>) -> !cache
    scf.yield %b1 : !cache
  }
  // The maximum number of consecutive empty iterations, before an iteration that appends and after it.
  %idle = arith.constant 999 : index
  %end = arith.constant 1000 : index
  %iterations = arith.constant 2000 : index
  %g = scf.for %i = %zero to %iterations step %one iter_args(%b = %e) -> (!cache) {
    %first = arith.maxui %i, %idle : index
    %next = arith.addi %i, %one : index
    %last = arith.minui %next, %end : index
    %b1 = scf.for %j = %first to %last step %one iter_args(%w = %b) -> (!cache) {
      %w1 = func.call @layer(%h, %w, %zero, %s, %p) : (tensor<?x2x8xf32>, !cache, index, tensor<?xi32>, tensor<?xi32>) -> !cache
      scf.yield %w1 : !cache
    }
    scf.yield %b1 : !cache
  }
  %f = func.call @layer(%h, %g, %two, %s, %p) : (tensor<?x2x8xf32>, !cache, index, tensor<?xi32>, tensor<?xi32>) -> !cache
  %y = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %y, %c2, %f : tensor<?x16xf32>, !cache, !cache
}

// -----

!cache = !mica.kv_cache<3 x 2 x 8 x f32, <keys, block = 64, depth = 1>>
mica.weight @table at 0 bytes 16384 : tensor<16x16xf32>
func.func private @layer(%h: tensor<?x2x8xf32>, %c: !cache, %n: index, %s: tensor<?xi32>, %p: tensor<?xi32>) -> !cache {
  %d = mica.kv_append %h, %c[%n] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !cache
  return %d : !cache
}
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"},
    %c: !cache {mica.role = "cache"}) -> (tensor<?x16xf32> {mica.role = "logits"}, !cache {mica.role = "cache"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %h = mica.split_heads %x : tensor<?x16xf32> to tensor<?x2x8xf32>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %three = arith.constant 3 : index
  // expected-note @+1 {{the first append to it is here}}
  %c1 = func.call @layer(%h, %c, %one, %s, %p) : (tensor<?x2x8xf32>, !cache, index, tensor<?xi32>, tensor<?xi32>) -> !cache
  // expected-error-re @+1 {{'func.call' op appends to layer 1 of a cache that func.call ({{.*}}single-append.mlir:{{[0-9:]+}}) has appended to in the same step: use a different index for each layer}}
  %d = func.call @layer(%h, %c1, %one, %s, %p) : (tensor<?x2x8xf32>, !cache, index, tensor<?xi32>, tensor<?xi32>) -> !cache
  %y = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %y, %d : tensor<?x16xf32>, !cache
}

// -----

// Twice in one function, regardless of its callers.
!cache = !mica.kv_cache<3 x 2 x 8 x f32, <keys, block = 64, depth = 1>>
mica.weight @table at 0 bytes 16384 : tensor<16x16xf32>
func.func private @layer(%h: tensor<?x2x8xf32>, %c: !cache, %n: index, %s: tensor<?xi32>, %p: tensor<?xi32>) -> !cache {
  // expected-note @+1 {{the first append to it is here}}
  %d = mica.kv_append %h, %c[%n] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !cache
  // expected-error @+1 {{appends to layer 2 of a cache that mica.kv_append}}
  %e = mica.kv_append %h, %d[%n] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !cache
  return %e : !cache
}
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"},
    %c: !cache {mica.role = "cache"}) -> (tensor<?x16xf32> {mica.role = "logits"}, !cache {mica.role = "cache"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %h = mica.split_heads %x : tensor<?x16xf32> to tensor<?x2x8xf32>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %three = arith.constant 3 : index
  %d = func.call @layer(%h, %c, %two, %s, %p) : (tensor<?x2x8xf32>, !cache, index, tensor<?xi32>, tensor<?xi32>) -> !cache
  %y = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %y, %d : tensor<?x16xf32>, !cache
}

// -----

// A loop whose layer index does not depend on the iteration.
!cache = !mica.kv_cache<3 x 2 x 8 x f32, <keys, block = 64, depth = 1>>
mica.weight @table at 0 bytes 16384 : tensor<16x16xf32>
func.func private @layer(%h: tensor<?x2x8xf32>, %c: !cache, %n: index, %s: tensor<?xi32>, %p: tensor<?xi32>) -> !cache {
  %d = mica.kv_append %h, %c[%n] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !cache
  return %d : !cache
}
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"},
    %c: !cache {mica.role = "cache"}) -> (tensor<?x16xf32> {mica.role = "logits"}, !cache {mica.role = "cache"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %h = mica.split_heads %x : tensor<?x16xf32> to tensor<?x2x8xf32>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %three = arith.constant 3 : index
  %d = scf.for %i = %zero to %two step %one iter_args(%b = %c) -> (!cache) {
    // expected-note @+2 {{the first append to it is here}}
    // expected-error @+1 {{appends to layer 1 of a cache that func.call}}
    %b1 = func.call @layer(%h, %b, %one, %s, %p) : (tensor<?x2x8xf32>, !cache, index, tensor<?xi32>, tensor<?xi32>) -> !cache
    scf.yield %b1 : !cache
  }
  %y = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %y, %d : tensor<?x16xf32>, !cache
}

// -----

// Nested loops over two layer types, of which one has a cache: layers 2, then 0 and 1, then 2 again.
!cache = !mica.kv_cache<3 x 2 x 8 x f32, <keys, block = 64, depth = 1>>
mica.weight @table at 0 bytes 16384 : tensor<16x16xf32>
func.func private @layer(%h: tensor<?x2x8xf32>, %c: !cache, %n: index, %s: tensor<?xi32>, %p: tensor<?xi32>) -> !cache {
  %d = mica.kv_append %h, %c[%n] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !cache
  return %d : !cache
}
func.func private @without_cache(%x: tensor<?x16xf32>) -> tensor<?x16xf32> {
  return %x : tensor<?x16xf32>
}
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"},
    %c: !cache {mica.role = "cache"}) -> (tensor<?x16xf32> {mica.role = "logits"}, !cache {mica.role = "cache"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %h = mica.split_heads %x : tensor<?x16xf32> to tensor<?x2x8xf32>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %rounds = arith.constant 4 : index
  %z, %d = scf.for %i = %zero to %rounds step %one iter_args(%y = %x, %b = %c) -> (tensor<?x16xf32>, !cache) {
    %next = arith.addi %i, %one : index
    %from = mica.index_table [0, 2, 2, 3, 3][%i]
    %to = mica.index_table [0, 2, 2, 3, 3][%next]
    %y1 = scf.for %n = %from to %to step %one iter_args(%v = %y) -> (tensor<?x16xf32>) {
      %v1 = func.call @without_cache(%v) : (tensor<?x16xf32>) -> tensor<?x16xf32>
      scf.yield %v1 : tensor<?x16xf32>
    }
    %first = mica.index_table [0, 0, 1, 3, 4][%i]
    %end = mica.index_table [0, 0, 1, 3, 4][%next]
    %b1 = scf.for %n = %first to %end step %one iter_args(%w = %b) -> (!cache) {
      %layer = mica.index_table [2, 0, 1, 2][%n]
      // expected-note @+2 {{the first append to it is here}}
      // expected-error @+1 {{appends to layer 2 of a cache that func.call}}
      %w1 = func.call @layer(%h, %w, %layer, %s, %p) : (tensor<?x2x8xf32>, !cache, index, tensor<?xi32>, tensor<?xi32>) -> !cache
      scf.yield %w1 : !cache
    }
    scf.yield %y1, %b1 : tensor<?x16xf32>, !cache
  }
  %y = mica.select_rows %z, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %y, %d : tensor<?x16xf32>, !cache
}

// -----

// Iterations after too many empty ones are not analyzed; a loop without appends may have any number of iterations.
!cache = !mica.kv_cache<3 x 2 x 8 x f32, <keys, block = 64, depth = 1>>
mica.weight @table at 0 bytes 16384 : tensor<16x16xf32>
func.func private @layer(%h: tensor<?x2x8xf32>, %c: !cache, %n: index, %s: tensor<?xi32>, %p: tensor<?xi32>) -> !cache {
  %d = mica.kv_append %h, %c[%n] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !cache
  return %d : !cache
}
func.func private @without_cache(%x: tensor<?x16xf32>) -> tensor<?x16xf32> {
  return %x : tensor<?x16xf32>
}
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"},
    %c: !cache {mica.role = "cache"}) -> (tensor<?x16xf32> {mica.role = "logits"}, !cache {mica.role = "cache"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %h = mica.split_heads %x : tensor<?x16xf32> to tensor<?x2x8xf32>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %many = arith.constant 1000000000000 : index
  %last = arith.constant 999999999998 : index
  %z = scf.for %i = %zero to %many step %one iter_args(%v = %x) -> (tensor<?x16xf32>) {
    %v1 = func.call @without_cache(%v) : (tensor<?x16xf32>) -> tensor<?x16xf32>
    scf.yield %v1 : tensor<?x16xf32>
  }
  // expected-error @+1 {{'scf.for' op runs 1000 consecutive iterations that append to no cache; remove them}}
  %d = scf.for %i = %zero to %many step %one iter_args(%b = %c) -> (!cache) {
    %b1 = scf.for %j = %last to %i step %one iter_args(%w = %b) -> (!cache) {
      %w1 = func.call @layer(%h, %w, %zero, %s, %p) : (tensor<?x2x8xf32>, !cache, index, tensor<?xi32>, tensor<?xi32>) -> !cache
      scf.yield %w1 : !cache
    }
    scf.yield %b1 : !cache
  }
  %y = mica.select_rows %z, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %y, %d : tensor<?x16xf32>, !cache
}

// -----

// One empty iteration too many after the first one, which appends.
!cache = !mica.kv_cache<3 x 2 x 8 x f32, <keys, block = 64, depth = 1>>
mica.weight @table at 0 bytes 16384 : tensor<16x16xf32>
func.func private @layer(%h: tensor<?x2x8xf32>, %c: !cache, %n: index, %s: tensor<?xi32>, %p: tensor<?xi32>) -> !cache {
  %d = mica.kv_append %h, %c[%n] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !cache
  return %d : !cache
}
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"},
    %c: !cache {mica.role = "cache"}) -> (tensor<?x16xf32> {mica.role = "logits"}, !cache {mica.role = "cache"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %h = mica.split_heads %x : tensor<?x16xf32> to tensor<?x2x8xf32>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %iterations = arith.constant 1002 : index
  // expected-error @+1 {{'scf.for' op runs 1000 consecutive iterations that append to no cache; remove them}}
  %g = scf.for %i = %zero to %iterations step %one iter_args(%b = %c) -> (!cache) {
    %b1 = scf.for %j = %i to %one step %one iter_args(%w = %b) -> (!cache) {
      %w1 = func.call @layer(%h, %w, %zero, %s, %p) : (tensor<?x2x8xf32>, !cache, index, tensor<?xi32>, tensor<?xi32>) -> !cache
      scf.yield %w1 : !cache
    }
    scf.yield %b1 : !cache
  }
  %y = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %y, %g : tensor<?x16xf32>, !cache
}

// -----

// The value of the previous iteration is not known: layer 1 - %n * 1 is 0 here as well.
!cache = !mica.kv_cache<3 x 2 x 8 x f32, <keys, block = 64, depth = 1>>
mica.weight @table at 0 bytes 16384 : tensor<16x16xf32>
func.func private @layer(%h: tensor<?x2x8xf32>, %c: !cache, %n: index, %s: tensor<?xi32>, %p: tensor<?xi32>) -> !cache {
  // expected-error @+1 {{'mica.kv_append' op appends to a layer whose index is not a constant in every call, so the layers that a step writes are not known}}
  %d = mica.kv_append %h, %c[%n] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !cache
  return %d : !cache
}
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"},
    %c: !cache {mica.role = "cache"}) -> (tensor<?x16xf32> {mica.role = "logits"}, !cache {mica.role = "cache"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %h = mica.split_heads %x : tensor<?x16xf32> to tensor<?x2x8xf32>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %g, %m = scf.for %i = %zero to %two step %one iter_args(%b = %c, %n = %zero) -> (!cache, index) {
    %times = arith.muli %i, %n : index
    %minus = arith.subi %i, %times : index
    %layer = arith.maxsi %minus, %zero : index
    %b1 = func.call @layer(%h, %b, %layer, %s, %p) : (tensor<?x2x8xf32>, !cache, index, tensor<?xi32>, tensor<?xi32>) -> !cache
    scf.yield %b1, %one : !cache, index
  }
  %y = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %y, %g : tensor<?x16xf32>, !cache
}

// -----

// A loop with an unsigned comparison.
!cache = !mica.kv_cache<3 x 2 x 8 x f32, <keys, block = 64, depth = 1>>
mica.weight @table at 0 bytes 16384 : tensor<16x16xf32>
func.func private @layer(%h: tensor<?x2x8xf32>, %c: !cache, %n: index, %s: tensor<?xi32>, %p: tensor<?xi32>) -> !cache {
  // expected-error @+1 {{'mica.kv_append' op appends to a layer whose index is not a constant in every call, so the layers that a step writes are not known}}
  %d = mica.kv_append %h, %c[%n] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !cache
  return %d : !cache
}
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"},
    %c: !cache {mica.role = "cache"}) -> (tensor<?x16xf32> {mica.role = "logits"}, !cache {mica.role = "cache"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %h = mica.split_heads %x : tensor<?x16xf32> to tensor<?x2x8xf32>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %g = scf.for unsigned %i = %zero to %two step %one iter_args(%b = %c) -> (!cache) {
    %b1 = func.call @layer(%h, %b, %i, %s, %p) : (tensor<?x2x8xf32>, !cache, index, tensor<?xi32>, tensor<?xi32>) -> !cache
    scf.yield %b1 : !cache
  }
  %y = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %y, %g : tensor<?x16xf32>, !cache
}

// -----

// Keys and values in one cache.
!cache = !mica.kv_cache<3 x 2 x 8 x f32, <keys, block = 64, depth = 1>>
mica.weight @table at 0 bytes 16384 : tensor<16x16xf32>
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"},
    %c: !cache {mica.role = "cache"}) -> (tensor<?x16xf32> {mica.role = "logits"}, !cache {mica.role = "cache"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %h = mica.split_heads %x : tensor<?x16xf32> to tensor<?x2x8xf32>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %three = arith.constant 3 : index
  // expected-note @+1 {{the first append to it is here}}
  %c1 = mica.kv_append %h, %c[%zero] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !cache
  %d = scf.for %i = %zero to %three step %two iter_args(%b = %c1) -> (!cache) {
    // expected-error @+1 {{appends to layer 0 of a cache that mica.kv_append}}
    %b1 = mica.kv_append %h, %b[%i] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !cache
    scf.yield %b1 : !cache
  }
  %y = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %y, %d : tensor<?x16xf32>, !cache
}

// -----

!cache = !mica.kv_cache<3 x 2 x 8 x f32, <keys, block = 64, depth = 1>>
mica.weight @table at 0 bytes 16384 : tensor<16x16xf32>
func.func private @layer(%h: tensor<?x2x8xf32>, %c: !cache, %n: index, %s: tensor<?xi32>, %p: tensor<?xi32>) -> !cache {
  // expected-error @+1 {{'mica.kv_append' op appends to a layer whose index is not a constant in every call, so the layers that a step writes are not known}}
  %d = mica.kv_append %h, %c[%n] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !cache
  return %d : !cache
}
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"},
    %c: !cache {mica.role = "cache"}) -> (tensor<?x16xf32> {mica.role = "logits"}, !cache {mica.role = "cache"}) {
  %table = mica.get_weight @table : tensor<16x16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %h = mica.split_heads %x : tensor<?x16xf32> to tensor<?x2x8xf32>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %three = arith.constant 3 : index
  %d, %m = scf.for %i = %zero to %two step %one iter_args(%b = %c, %n = %zero) -> (!cache, index) {
    %b1 = func.call @layer(%h, %b, %n, %s, %p) : (tensor<?x2x8xf32>, !cache, index, tensor<?xi32>, tensor<?xi32>) -> !cache
    scf.yield %b1, %one : !cache, index
  }
  %y = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %y, %d : tensor<?x16xf32>, !cache
}
