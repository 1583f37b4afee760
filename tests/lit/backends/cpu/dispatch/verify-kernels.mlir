// RUN: mica-opt %s --split-input-file --verify-diagnostics --cpu-verify-kernels

#packed = #mica.packed<columns = 64, depth = 1, k_block = 16>
mica.weight @w at 0 bytes 4096 : tensor<16x16xf32, #packed>
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"})
    -> (tensor<?x16xf32> {mica.role = "logits"}) {
  %w = mica.get_weight @w : tensor<16x16xf32, #packed>
  %x = mica.embedding %t, %w : tensor<?xi32>, tensor<16x16xf32, #packed> -> tensor<?x16xf32>
  // expected-error @+1 {{has no kernel: run cpu-select-kernels}}
  %y = mica.linear %x, %w : tensor<?x16xf32>, tensor<16x16xf32, #packed> -> tensor<?x16xf32>
  %chosen = mica.select_rows %y, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %chosen : tensor<?x16xf32>
}

// -----

mica.weight @w at 0 bytes 4096 : tensor<16x16xf32>
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"})
    -> (tensor<?x16xf32> {mica.role = "logits"}) {
  %w = mica.get_weight @w : tensor<16x16xf32>
  %x = mica.embedding %t, %w : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  // expected-error @+1 {{has a weight without layout: run cpu-assign-layouts}}
  %y = mica.linear %x, %w kernel(generated) : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %chosen = mica.select_rows %y, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %chosen : tensor<?x16xf32>
}

// -----

!keys = !mica.kv_cache<1 x 2 x 8 x f32, <keys, block = 64, depth = 1>>
!values = !mica.kv_cache<1 x 2 x 8 x f32, <values, block = 64, depth = 1>>
mica.weight @w at 0 bytes 1024 : tensor<16x16xf32>
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"},
    %k: !keys {mica.role = "cache"}, %v: !values {mica.role = "cache"})
    -> (tensor<?x16xf32> {mica.role = "logits"}, !keys {mica.role = "cache"}, !values {mica.role = "cache"}) {
  %w = mica.get_weight @w : tensor<16x16xf32>
  %x = mica.embedding %t, %w : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %q = mica.split_heads %x : tensor<?x16xf32> to tensor<?x2x8xf32>
  %zero = arith.constant 0 : index
  %keys = mica.kv_read %k[%zero] : !keys -> tensor<?x?x2x8xf32>
  %values = mica.kv_read %v[%zero] : !values -> tensor<?x?x2x8xf32>
  // expected-error @+1 {{has no tiling: run cpu-select-kernels}}
  %a = mica.attention %q, %keys, %values at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.5)
      : tensor<?x2x8xf32>, tensor<?x?x2x8xf32>, tensor<?x?x2x8xf32> -> tensor<?x2x8xf32>
  %y = mica.merge_heads %a : tensor<?x2x8xf32> to tensor<?x16xf32>
  return %y, %k, %v : tensor<?x16xf32>, !keys, !values
}

// -----

// expected-error @+1 {{has no offset: run cpu-assign-layouts}}
mica.weight @w : tensor<16x16xf32>
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"})
    -> (tensor<?x16xf32> {mica.role = "logits"}) {
  %w = mica.get_weight @w : tensor<16x16xf32>
  %x = mica.embedding %t, %w : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %chosen = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %chosen : tensor<?x16xf32>
}

// -----

mica.weight @w at 0 bytes 1024 : tensor<16x16xf32>
!cache = !mica.kv_cache<2 x 2 x 8 x f32>
// expected-error @+1 {{has a cache without layout: run cpu-assign-layouts}}
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"},
    %c: !cache {mica.role = "cache"}) -> (tensor<?x16xf32> {mica.role = "logits"}, !cache {mica.role = "cache"}) {
  %w = mica.get_weight @w : tensor<16x16xf32>
  %x = mica.embedding %t, %w : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %chosen = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %chosen, %c : tensor<?x16xf32>, !cache
}

// -----

// A loop consumes its caches like a call; its body uses the iteration argument instead.
mica.weight @w at 0 bytes 1024 : tensor<16x16xf32>
!cache = !mica.kv_cache<2 x 2 x 8 x f32, <keys, block = 64, depth = 1>>
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"},
    %c: !cache {mica.role = "cache"}) -> (tensor<?x16xf32> {mica.role = "logits"}, !cache {mica.role = "cache"}) {
  %w = mica.get_weight @w : tensor<16x16xf32>
  %x = mica.embedding %t, %w : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %h = mica.split_heads %x : tensor<?x16xf32> to tensor<?x2x8xf32>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %r = scf.for %i = %zero to %two step %one iter_args(%d = %c) -> (!cache) {
    %next = mica.kv_append %h, %d[%i] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !cache
    scf.yield %next : !cache
  }
  %chosen = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %chosen, %r : tensor<?x16xf32>, !cache
}

// -----

mica.weight @w at 0 bytes 1024 : tensor<16x16xf32>
!cache = !mica.kv_cache<2 x 2 x 8 x f32, <keys, block = 64, depth = 1>>
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"},
    %c: !cache {mica.role = "cache"}) -> (tensor<?x16xf32> {mica.role = "logits"}, !cache {mica.role = "cache"}) {
  %w = mica.get_weight @w : tensor<16x16xf32>
  %x = mica.embedding %t, %w : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %h = mica.split_heads %x : tensor<?x16xf32> to tensor<?x2x8xf32>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  scf.for %i = %zero to %two step %one {
    // expected-note @+2 {{the cache is consumed here}}
    // expected-error-re @+1 {{the cache is used after mica.kv_append ({{.*}}verify-kernels.mlir:{{[0-9:]+}}) consumed it in an earlier iteration of the loop}}
    %next = mica.kv_append %h, %c[%i] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !cache
  }
  %chosen = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %chosen, %c : tensor<?x16xf32>, !cache
}

// -----

func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"})
    -> (tensor<?x16xf32> {mica.role = "logits"}) {
  %n = arith.constant 3 : index
  // expected-error @+1 {{is not allowed at stage `kernels`}}
  %x = tensor.empty(%n) : tensor<?x16xf32>
  %chosen = mica.select_rows %x, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %chosen : tensor<?x16xf32>
}

// -----

func.func private @layer(%x: tensor<?x2x16xf32>, %w: tensor<2x16x16xf32>) -> tensor<?x2x16xf32> {
  // expected-error @+1 {{'mica.head_linear' op has a weight without layout: run cpu-assign-layouts}}
  %y = mica.head_linear %x, %w : tensor<?x2x16xf32>, tensor<2x16x16xf32> -> tensor<?x2x16xf32>
  return %y : tensor<?x2x16xf32>
}

// -----

// The second matrix of experts is checked like the first.
#packed = #mica.packed<columns = 64, depth = 1, k_block = 16>
func.func private @layer(%x: tensor<?x16xf32>, %weights: tensor<?x2xf32>, %experts: tensor<?x2xi32>,
    %gate: tensor<4x128x16xf32, #packed>, %down: tensor<4x16x64xf32>) -> tensor<?x16xf32> {
  // expected-error @+1 {{'mica.moe_experts' op has a weight without layout: run cpu-assign-layouts}}
  %y = mica.moe_experts %x, %weights, %experts, %gate, %down silu inner(64)
      : tensor<?x16xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<4x128x16xf32, #packed>, tensor<4x16x64xf32>
      -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
