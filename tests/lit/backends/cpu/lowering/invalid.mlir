// RUN: mica-opt %s --cpu-lower-to-exec --split-input-file --verify-diagnostics

func.func private @product_without_layout(%x: tensor<?x32xf32>, %w: tensor<64x32xf32>) -> tensor<?x64xf32> {
  // expected-error @+2 {{'mica.linear' op multiplies by a weight without a packed layout}}
  // expected-error @+1 {{failed to legalize operation 'mica.linear' that was explicitly marked illegal}}
  %y = mica.linear %x, %w kernel(generated) : tensor<?x32xf32>, tensor<64x32xf32> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// -----

#pairs = #mica.packed<columns = 64, depth = 2, k_block = 2>
func.func private @product_without_padding(%x: tensor<?x40xbf16>, %w: tensor<64x40xbf16, #pairs>) -> tensor<?x64xf32> {
  // expected-error @+2 {{multiplies by a weight whose layout kernels cannot read, expected columns = 64, depth = 2, k_block a multiple of 32}}
  // expected-error @+1 {{failed to legalize operation 'mica.linear'}}
  %y = mica.linear %x, %w kernel(generated) : tensor<?x40xbf16>, tensor<64x40xbf16, #pairs> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// -----

#f32 = #mica.packed<columns = 64, depth = 1, k_block = 16>
func.func private @product_without_kernel(%x: tensor<?x32xf32>, %w: tensor<64x32xf32, #f32>) -> tensor<?x64xf32> {
  // expected-error @+2 {{'mica.linear' op has no kernel chosen}}
  // expected-error @+1 {{failed to legalize operation 'mica.linear'}}
  %y = mica.linear %x, %w : tensor<?x32xf32>, tensor<64x32xf32, #f32> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// -----

func.func private @append_without_layout(%x: tensor<?x2x8xf32>, %k: !mica.kv_cache<1 x 2 x 8 x f32>, %l: index, %s: tensor<?xi32>, %p: tensor<?xi32>)
    -> !mica.kv_cache<1 x 2 x 8 x f32> {
  // expected-error @+2 {{appends to a cache without a layout}}
  // expected-error @+1 {{failed to legalize operation 'mica.kv_append'}}
  %n = mica.kv_append %x, %k[%l] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !mica.kv_cache<1 x 2 x 8 x f32>
  return %n : !mica.kv_cache<1 x 2 x 8 x f32>
}

// -----

func.func private @attention_over_no_cache(%q: tensor<?x2x8xf32>, %k: tensor<?x?x2x8xf32>, %s: tensor<?xi32>, %p: tensor<?xi32>) -> tensor<?x2x8xf32> {
  // expected-error @+2 {{attends to keys and values that are not read from one layer of the caches}}
  // expected-error @+1 {{failed to legalize operation 'mica.attention'}}
  %y = mica.attention %q, %k, %k at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.5)
      : tensor<?x2x8xf32>, tensor<?x?x2x8xf32>, tensor<?x?x2x8xf32> -> tensor<?x2x8xf32>
  return %y : tensor<?x2x8xf32>
}

// -----

!keys = !mica.kv_cache<2 x 2 x 8 x f32, #mica.kv_layout<keys, block = 64, depth = 1>>
func.func private @attention_with_padding(%q: tensor<?x2x8xf32>, %c: !keys, %l: index, %s: tensor<?xi32>, %p: tensor<?xi32>, %m: tensor<?x?xi1>) -> tensor<?x2x8xf32> {
  %k = mica.kv_read %c[%l] : !keys -> tensor<?x?x2x8xf32>
  // expected-error @+2 {{has a key_mask: programs run ragged batches, which need no padding}}
  // expected-error @+1 {{failed to legalize operation 'mica.attention'}}
  %y = mica.attention %q, %k, %k at(%s, %p : tensor<?xi32>, tensor<?xi32>) key_mask(%m : tensor<?x?xi1>) causal scale(0.5)
      : tensor<?x2x8xf32>, tensor<?x?x2x8xf32>, tensor<?x?x2x8xf32> -> tensor<?x2x8xf32>
  return %y : tensor<?x2x8xf32>
}

// -----

!keys = !mica.kv_cache<2 x 2 x 8 x f32, #mica.kv_layout<keys, block = 64, depth = 1>>
func.func private @attention_without_mask(%q: tensor<?x2x8xf32>, %c: !keys, %l: index, %s: tensor<?xi32>, %p: tensor<?xi32>) -> tensor<?x2x8xf32> {
  %k = mica.kv_read %c[%l] : !keys -> tensor<?x?x2x8xf32>
  // expected-error @+2 {{has mask full: programs decode causally}}
  // expected-error @+1 {{failed to legalize operation 'mica.attention'}}
  %y = mica.attention %q, %k, %k at(%s, %p : tensor<?xi32>, tensor<?xi32>) full scale(0.5)
      : tensor<?x2x8xf32>, tensor<?x?x2x8xf32>, tensor<?x?x2x8xf32> -> tensor<?x2x8xf32>
  return %y : tensor<?x2x8xf32>
}

// -----

!keys = !mica.kv_cache<2 x 2 x 8 x f32, #mica.kv_layout<keys, block = 64, depth = 1>>
func.func private @attention_without_tiling(%q: tensor<?x2x8xf32>, %c: !keys, %l: index, %s: tensor<?xi32>, %p: tensor<?xi32>) -> tensor<?x2x8xf32> {
  %k = mica.kv_read %c[%l] : !keys -> tensor<?x?x2x8xf32>
  // expected-error @+2 {{'mica.attention' op has no tiling chosen}}
  // expected-error @+1 {{failed to legalize operation 'mica.attention'}}
  %y = mica.attention %q, %k, %k at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.5)
      : tensor<?x2x8xf32>, tensor<?x?x2x8xf32>, tensor<?x?x2x8xf32> -> tensor<?x2x8xf32>
  return %y : tensor<?x2x8xf32>
}

// -----

!keys = !mica.kv_cache<2 x 2 x 8 x f32>
func.func private @attention_without_layout(%q: tensor<?x2x8xf32>, %c: !keys, %l: index, %s: tensor<?xi32>, %p: tensor<?xi32>) -> tensor<?x2x8xf32> {
  %k = mica.kv_read %c[%l] : !keys -> tensor<?x?x2x8xf32>
  // expected-error @+2 {{attends to caches without a layout}}
  // expected-error @+1 {{failed to legalize operation 'mica.attention'}}
  %y = mica.attention %q, %k, %k at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.5) tiling(<rows = 1, chunk = 512, split = true>)
      : tensor<?x2x8xf32>, tensor<?x?x2x8xf32>, tensor<?x?x2x8xf32> -> tensor<?x2x8xf32>
  return %y : tensor<?x2x8xf32>
}

// -----

!keys = !mica.kv_cache<2 x 2 x 8 x f32, #mica.kv_layout<keys, block = 64, depth = 1>>
!values = !mica.kv_cache<2 x 2 x 8 x f32, #mica.kv_layout<values, block = 32, depth = 1>>
func.func private @attention_over_different_blocks(%q: tensor<?x2x8xf32>, %c: !keys, %d: !values, %l: index, %s: tensor<?xi32>, %p: tensor<?xi32>)
    -> tensor<?x2x8xf32> {
  %k = mica.kv_read %c[%l] : !keys -> tensor<?x?x2x8xf32>
  %v = mica.kv_read %d[%l] : !values -> tensor<?x?x2x8xf32>
  // expected-error @+2 {{needs caches with the same blocks of a multiple of 16 positions}}
  // expected-error @+1 {{failed to legalize operation 'mica.attention'}}
  %y = mica.attention %q, %k, %v at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.5) tiling(<rows = 1, chunk = 512, split = true>)
      : tensor<?x2x8xf32>, tensor<?x?x2x8xf32>, tensor<?x?x2x8xf32> -> tensor<?x2x8xf32>
  return %y : tensor<?x2x8xf32>
}

// -----

!keys = !mica.kv_cache<2 x 2 x 8 x !mica.int8, #mica.kv_layout<keys, block = 64, depth = 2>>
func.func private @attention_to_pairs_of_integers(%q: tensor<?x2x8xf32>, %c: !keys, %l: index, %s: tensor<?xi32>, %p: tensor<?xi32>) -> tensor<?x2x8xf32> {
  %k = mica.kv_read %c[%l] : !keys -> tensor<?x?x2x8x!mica.int8>
  // expected-error @+2 {{needs int8 caches of depth 4, got 2}}
  // expected-error @+1 {{failed to legalize operation 'mica.attention'}}
  %y = mica.attention %q, %k, %k at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.5) tiling(<rows = 1, chunk = 512, split = true>)
      : tensor<?x2x8xf32>, tensor<?x?x2x8x!mica.int8>, tensor<?x?x2x8x!mica.int8> -> tensor<?x2x8xf32>
  return %y : tensor<?x2x8xf32>
}

// -----

!keys = !mica.kv_cache<2 x 2 x 8 x f32, #mica.kv_layout<keys, block = 64, depth = 1>>
func.func private @attention_in_parts_of_blocks(%q: tensor<?x2x8xf32>, %c: !keys, %l: index, %s: tensor<?xi32>, %p: tensor<?xi32>) -> tensor<?x2x8xf32> {
  %k = mica.kv_read %c[%l] : !keys -> tensor<?x?x2x8xf32>
  // expected-error @+2 {{has chunks of 100 positions, not a multiple of the caches' blocks of 64}}
  // expected-error @+1 {{failed to legalize operation 'mica.attention'}}
  %y = mica.attention %q, %k, %k at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.5) tiling(<rows = 1, chunk = 100, split = true>)
      : tensor<?x2x8xf32>, tensor<?x?x2x8xf32>, tensor<?x?x2x8xf32> -> tensor<?x2x8xf32>
  return %y : tensor<?x2x8xf32>
}

// -----

func.func private @gate_without_layout(%x: tensor<?x32xf32>, %g: tensor<4x32xf32>) -> tensor<?x1xf32> {
  // expected-error @+2 {{has a gate without a packed layout}}
  // expected-error @+1 {{failed to legalize operation 'mica.moe_gate'}}
  %w, %e = mica.moe_gate %x, %g softmax k(1) : tensor<?x32xf32>, tensor<4x32xf32> -> tensor<?x1xf32>, tensor<?x1xi32>
  return %w : tensor<?x1xf32>
}

// -----

func.func private @experts_unmerged(%x: tensor<?x32xf32>, %w: tensor<?x1xf32>, %e: tensor<?x1xi32>, %g: tensor<4x64x32xf32>, %d: tensor<4x32x64xf32>) -> tensor<?x32xf32> {
  // expected-error @+2 {{has a matrix without a packed layout}}
  // expected-error @+1 {{failed to legalize operation 'mica.moe_experts'}}
  %y = mica.moe_experts %x, %w, %e, %g, %d up(%g : tensor<4x64x32xf32>) silu inner(64)
      : tensor<?x32xf32>, tensor<?x1xf32>, tensor<?x1xi32>, tensor<4x64x32xf32>, tensor<4x32x64xf32> -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}

// -----

mica.weight @w at 0 bytes 128 : tensor<32xf32>
func.func private @weight_in_a_layer() -> tensor<32xf32> {
  // expected-error @+2 {{fetches a weight outside of an entry function: pass it as an argument}}
  // expected-error @+1 {{failed to legalize operation 'mica.get_weight'}}
  %w = mica.get_weight @w : tensor<32xf32>
  return %w : tensor<32xf32>
}

// -----

// A kv_read with a use other than attention, even in a function without callers.
!keys = !mica.kv_cache<2 x 2 x 8 x f32, #mica.kv_layout<keys, block = 64, depth = 1>>
func.func private @leak(%c: !keys, %l: index) -> tensor<?x?x2x8xf32> {
  // expected-error @+1 {{'mica.kv_read' op is used by something other than mica.attention, and caches are never copied: pass keys and values to attention only}}
  %k = mica.kv_read %c[%l] : !keys -> tensor<?x?x2x8xf32>
  return %k : tensor<?x?x2x8xf32>
}

// -----

mica.weight @w : tensor<32xf32>
func.func @weight_without_place(%t: tensor<?xi32>) -> (tensor<?x32xf32> {mica.role = "logits"}) {
  // expected-error @+2 {{fetches @w, which has no offset: run cpu-assign-layouts}}
  // expected-error @+1 {{failed to legalize operation 'mica.get_weight'}}
  %w = mica.get_weight @w : tensor<32xf32>
  %n = arith.constant 1 : index
  %y = tensor.empty(%n) : tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}

// -----

func.func private @quantized_table(%t: tensor<?xi32>, %w: tensor<96x64x!mica.block<q8_0>>) -> tensor<?x64xf32> {
  // expected-error @+2 {{gathers from a quantized table without a packed layout}}
  // expected-error @+1 {{failed to legalize operation 'mica.embedding'}}
  %x = mica.embedding %t, %w : tensor<?xi32>, tensor<96x64x!mica.block<q8_0>> -> tensor<?x64xf32>
  return %x : tensor<?x64xf32>
}

// -----

#f32 = #mica.packed<columns = 64, depth = 1, k_block = 16>
!rows = !mica.int_rows<bits = 16, group = 32>
func.func private @integer_rows_by_floats(%x: tensor<?x32x!rows>, %w: tensor<64x32xf32, #f32>) -> tensor<?x64xf32> {
  // expected-error @+2 {{multiplies rows of '!mica.int_rows<bits = 16, group = 32>' by a weight of 'f32', expected one of !mica.block}}
  // expected-error @+1 {{failed to legalize operation 'mica.linear'}}
  %y = mica.linear %x, %w kernel(generated) : tensor<?x32x!rows>, tensor<64x32xf32, #f32> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// -----

#blocks = #mica.packed<columns = 64, depth = 4, k_block = 64>
!rows = !mica.int_rows<bits = 16, group = 32>
func.func private @gated_product_of_integers(%x: tensor<?x32x!rows>, %w: tensor<128x32x!mica.block<q8_0>, #blocks>) -> tensor<?x64x!rows> {
  // expected-error @+2 {{cannot quantize its own result: use mica.cast}}
  // expected-error @+1 {{failed to legalize operation 'mica.gated_linear'}}
  %y = mica.gated_linear %x, %w silu : tensor<?x32x!rows>, tensor<128x32x!mica.block<q8_0>, #blocks> -> tensor<?x64x!rows>
  return %y : tensor<?x64x!rows>
}

// -----

// Stage `loops`, in which entries have no results.
// expected-error @+1 {{'func.func' op @main has no result with mica.role = "logits": this is not stage `kernels`, from which this pass starts}}
func.func @main(%tokens: memref<?xi32>, %weights: memref<?xi8>, %scratch: memref<?xi8>, %logits: memref<?x8xf32>) {
  return
}

// -----

!keys = !mica.kv_cache<2 x 2 x 8 x f32, #mica.kv_layout<keys, block = 64, depth = 1>>
func.func private @attention_to_parts_of_keys(%q: tensor<?x2x6xf32>, %c: !keys, %l: index, %s: tensor<?xi32>, %p: tensor<?xi32>) -> tensor<?x2x6xf32> {
  %k = mica.kv_read %c[%l] : !keys -> tensor<?x?x2x6xf32>
  // expected-error @+2 {{attends to parts of its keys}}
  // expected-error @+1 {{failed to legalize operation 'mica.attention'}}
  %y = mica.attention %q, %k, %k at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.5) tiling(<rows = 1, chunk = 64, split = true>)
      : tensor<?x2x6xf32>, tensor<?x?x2x6xf32>, tensor<?x?x2x6xf32> -> tensor<?x2x6xf32>
  return %y : tensor<?x2x6xf32>
}

// -----

!keys = !mica.kv_cache<2 x 2 x 8 x f32, #mica.kv_layout<keys, block = 64, depth = 1>>
!values = !mica.kv_cache<2 x 2 x 8 x f32, #mica.kv_layout<values, block = 64, depth = 1>>
func.func private @attention_to_parts_of_values(%q: tensor<?x2x8xf32>, %c: !keys, %d: !values, %l: index, %s: tensor<?xi32>, %p: tensor<?xi32>)
    -> tensor<?x2x6xf32> {
  %k = mica.kv_read %c[%l] : !keys -> tensor<?x?x2x8xf32>
  %v = mica.kv_read %d[%l] : !values -> tensor<?x?x2x6xf32>
  // expected-error @+2 {{attends to part of its values, which is supported only for values in the cache of the keys}}
  // expected-error @+1 {{failed to legalize operation 'mica.attention'}}
  %y = mica.attention %q, %k, %v at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.5) tiling(<rows = 1, chunk = 64, split = true>)
      : tensor<?x2x8xf32>, tensor<?x?x2x8xf32>, tensor<?x?x2x6xf32> -> tensor<?x2x6xf32>
  return %y : tensor<?x2x6xf32>
}

// -----

!values = !mica.kv_cache<2 x 2 x 8 x f32, #mica.kv_layout<values, block = 64, depth = 1>>
func.func private @attention_to_keys_among_values(%q: tensor<?x2x8xf32>, %d: !values, %l: index, %s: tensor<?xi32>, %p: tensor<?xi32>) -> tensor<?x2x6xf32> {
  %k = mica.kv_read %d[%l] : !values -> tensor<?x?x2x8xf32>
  %v = mica.kv_read %d[%l] : !values -> tensor<?x?x2x6xf32>
  // expected-error @+2 {{reads keys from a cache that is stored as values}}
  // expected-error @+1 {{failed to legalize operation 'mica.attention'}}
  %y = mica.attention %q, %k, %v at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.5) tiling(<rows = 1, chunk = 64, split = true>)
      : tensor<?x2x8xf32>, tensor<?x?x2x8xf32>, tensor<?x?x2x6xf32> -> tensor<?x2x6xf32>
  return %y : tensor<?x2x6xf32>
}

// -----

func.func private @head_linear_without_layout(%x: tensor<?x2x8xf32>, %w: tensor<2x16x8xf32>) -> tensor<?x2x16xf32> {
  // expected-error @+2 {{'mica.head_linear' op multiplies by a weight without a packed layout}}
  // expected-error @+1 {{failed to legalize operation 'mica.head_linear'}}
  %y = mica.head_linear %x, %w : tensor<?x2x8xf32>, tensor<2x16x8xf32> -> tensor<?x2x16xf32>
  return %y : tensor<?x2x16xf32>
}

// -----

#blocks = #mica.packed<columns = 64, depth = 4, k_block = 64>
!rows = !mica.int_rows<bits = 8, group = 32>
func.func private @blocks_by_a_library(%x: tensor<?x32x!rows>, %w: tensor<64x32x!mica.block<q8_0>, #blocks>) -> tensor<?x64xf32> {
  // expected-error @+2 {{multiplies integer rows by blocks, which only generated kernels do}}
  // expected-error @+1 {{failed to legalize operation 'mica.linear'}}
  %y = mica.linear %x, %w kernel(onednn) : tensor<?x32x!rows>, tensor<64x32x!mica.block<q8_0>, #blocks> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}
