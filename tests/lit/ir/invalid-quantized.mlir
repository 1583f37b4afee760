// RUN: mica-opt %s --split-input-file --verify-diagnostics

// Types of quantized activations.

// expected-error @+1 {{!mica.int4 is a type of an earlier version; use !mica.block<int4_g32> for weights}}
func.func private @earlier_int4(%x: tensor<4x64x!mica.int4<group = 32>>)

// -----

// expected-error @+1 {{'mica.weight' op has elements of type !mica.int8, which is for caches; use !mica.block<int8_g32> for weights}}
mica.weight @w : tensor<4x64x!mica.int8>

// -----

// Activations cannot be !mica.int8 either.
func.func private @rows_of_int8(%x: tensor<?x32xf32>) -> tensor<?x32x!mica.int8> {
  // expected-error @+1 {{'mica.cast' op result #0 must be rows [T, C] or heads [T, H, D] of f32 or bf16 or !mica.int_rows values}}
  %y = mica.cast %x : tensor<?x32xf32> to tensor<?x32x!mica.int8>
  return %y : tensor<?x32x!mica.int8>
}

// -----

// expected-error @+1 {{'mica.weight' op holds f32, bf16, f16 or !mica.block, got 'f64'}}
mica.weight @w : tensor<4x64xf64>

// -----

// expected-error @+1 {{bits must be 8 or 16, got 24}}
func.func private @bits(%x: tensor<4x64x!mica.int_rows<bits = 24, group = 32>>)

// -----

// expected-error @+1 {{bits must be 8 or 16, got 0}}
func.func private @no_bits(%x: tensor<4x64x!mica.int_rows<bits = 0, group = 32>>)

// -----

// expected-error @+1 {{group must be 32, got 64}}
func.func private @group_of_rows(%x: tensor<4x64x!mica.int_rows<bits = 8, group = 64>>)

// -----

// expected-error @+1 {{'q9_0' is not a block format, expected one of q4_0, q4_1, q5_0, }}
func.func private @unknown_format(%x: tensor<4x64x!mica.block<q9_0>>)

// -----

// expected-error @+1 {{!mica.block_int is a type of an earlier version; use !mica.block<q8_0> or !mica.block<q4_0> for weights, and !mica.int_rows<bits = 8, group = 32> for activations}}
func.func private @earlier_type(%x: tensor<4x64x!mica.block_int<bits = 8, group = 32>>)

// -----

// expected-error @+1 {{'mica.weight' op is stored in blocks of 32 elements, but its rows are not a multiple of that}}
mica.weight @w : tensor<4x48x!mica.block<q8_0>>

// -----

// expected-error @+1 {{'mica.weight' op is stored in blocks of 256 elements, but its rows are not a multiple of that}}
mica.weight @w : tensor<4x384x!mica.block<q6_k>>

// -----

// The last block of Mica's own formats may be incomplete.
mica.weight @int8 : tensor<4x96x!mica.block<int8_g32>>
mica.weight @int4 : tensor<4x48x!mica.block<int4_g32>>

// -----

// expected-error @+1 {{'mica.weight' op holds blocks along rows, but is a vector: vectors stay f32}}
mica.weight @w : tensor<256x!mica.block<q4_k>>

// -----

// expected-error @+1 {{'mica.weight' op says that its sources are stored as '!mica.int8', expected !mica.block}}
mica.weight @w {stored = !mica.int8} : tensor<4x32xf32>

// -----

// Activations are not blocks, ...
func.func private @rows(%x: tensor<?x32xf32>) -> tensor<?x32x!mica.block<q8_0>> {
  // expected-error @+1 {{'mica.cast' op result #0 must be rows [T, C] or heads [T, H, D]}}
  %y = mica.cast %x : tensor<?x32xf32> to tensor<?x32x!mica.block<q8_0>>
  return %y : tensor<?x32x!mica.block<q8_0>>
}

// -----

// ... and weights are not integer rows.
func.func private @weight_of_rows(%x: tensor<?x32xf32>, %w: tensor<8x32x!mica.int_rows<bits = 8, group = 32>>) -> tensor<?x8xf32> {
  // expected-error @+1 {{'mica.linear' op operand #1 must be a weight matrix [N, K] of f32, bf16, f16 or !mica.block values}}
  %y = mica.linear %x, %w : tensor<?x32xf32>, tensor<8x32x!mica.int_rows<bits = 8, group = 32>> -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// -----

// expected-error @+1 {{unknown type `int7` in dialect `mica`}}
func.func private @no_type(%x: tensor<4x64x!mica.int7>)
