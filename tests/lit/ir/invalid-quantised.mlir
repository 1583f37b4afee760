// RUN: mica-opt %s --split-input-file --verify-diagnostics

// Types of quantised rows.

// expected-error @+1 {{group must be 32, got 16}}
func.func private @group(%x: tensor<4x64x!mica.int4<group = 16>>)

// -----

// expected-error @+1 {{'mica.weight' op holds f32, bf16, f16, !mica.int8, !mica.int4 or !mica.block_int, got 'f64'}}
mica.weight @w : tensor<4x64xf64>

// -----

// expected-error @+1 {{'mica.weight' op holds rows of integers, but is a vector: vectors stay f32}}
mica.weight @w : tensor<64x!mica.int8>

// -----

// expected-error @+1 {{bits must be 4 or 8, got 5}}
func.func private @bits(%x: tensor<4x64x!mica.block_int<bits = 5, group = 32>>)

// -----

// expected-error @+1 {{group must be 32, got 64}}
func.func private @group_of_blocks(%x: tensor<4x64x!mica.block_int<bits = 8, group = 64>>)

// -----

// expected-error @+1 {{'mica.weight' op keeps blocks of 32, but has no rows of a multiple of that}}
mica.weight @w : tensor<4x48x!mica.block_int<bits = 8, group = 32>>

// -----

// expected-error @+1 {{'mica.weight' op says that its sources are stored as '!mica.int8', expected !mica.block_int}}
mica.weight @w {stored = !mica.int8} : tensor<4x32xf32>

// -----

// Rows of activations have 8 bits.
func.func private @rows(%x: tensor<?x32xf32>) -> tensor<?x32x!mica.block_int<bits = 4, group = 32>> {
  // expected-error @+1 {{'mica.cast' op result #0 must be rows [T, C] or heads [T, H, D]}}
  %y = mica.cast %x : tensor<?x32xf32> to tensor<?x32x!mica.block_int<bits = 4, group = 32>>
  return %y : tensor<?x32x!mica.block_int<bits = 4, group = 32>>
}
