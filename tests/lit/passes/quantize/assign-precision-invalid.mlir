// RUN: mica-opt %s --split-input-file --verify-diagnostics --mica-assign-precision="weights=bf16"

mica.weight @w : tensor<4x32xf32>
func.func @no_gate_that_is_a_matrix(%x: tensor<?x32xf32>) -> (tensor<?x4xf32>, tensor<?x1xf32>, tensor<?x1xi32>) {
  %w = mica.get_weight @w : tensor<4x32xf32>
  %y = mica.linear %x, %w : tensor<?x32xf32>, tensor<4x32xf32> -> tensor<?x4xf32>
  // expected-error @+1 {{needs elements of f32 in a weight, but another use of it needs bf16}}
  %v, %e = mica.moe_gate %x, %w softmax k(1) : tensor<?x32xf32>, tensor<4x32xf32> -> tensor<?x1xf32>, tensor<?x1xi32>
  return %y, %v, %e : tensor<?x4xf32>, tensor<?x1xf32>, tensor<?x1xi32>
}

// -----

mica.weight @w : tensor<64x32xf32, #mica.packed<columns = 64, depth = 1, k_block = 32>>
func.func @no_packed_weight(%x: tensor<?x32xf32>) -> tensor<?x64xf32> {
  %w = mica.get_weight @w : tensor<64x32xf32, #mica.packed<columns = 64, depth = 1, k_block = 32>>
  // expected-error @+1 {{has a weight with a layout: assign precisions before layouts}}
  %y = mica.linear %x, %w : tensor<?x32xf32>, tensor<64x32xf32, #mica.packed<columns = 64, depth = 1, k_block = 32>> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}
