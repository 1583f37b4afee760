// RUN: mica-opt %s --split-input-file --verify-diagnostics

// Types of quantised rows.

// expected-error @+1 {{group must be 32, got 16}}
func.func private @group(%x: tensor<4x64x!mica.int4<group = 16>>)

// -----

// expected-error @+1 {{'mica.weight' op holds f32, bf16, f16, !mica.int8 or !mica.int4, got 'f64'}}
mica.weight @w : tensor<4x64xf64>

// -----

// expected-error @+1 {{'mica.weight' op holds rows of integers, but is a vector: vectors stay f32}}
mica.weight @w : tensor<64x!mica.int8>
