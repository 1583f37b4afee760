// RUN: mica-opt %s --verify-diagnostics --mica-assign-precision="weights=bf16"

mica.weight @w : tensor<4x32xf32>
func.func @no_gate_that_is_a_matrix(%x: tensor<?x32xf32>) -> (tensor<?x4xf32>, tensor<?x1xf32>, tensor<?x1xi32>) {
  %w = mica.get_weight @w : tensor<4x32xf32>
  %y = mica.linear %x, %w : tensor<?x32xf32>, tensor<4x32xf32> -> tensor<?x4xf32>
  // expected-error @+1 {{needs elements of f32 in a weight, but another use of it needs bf16}}
  %v, %e = mica.moe_gate %x, %w softmax k(1) : tensor<?x32xf32>, tensor<4x32xf32> -> tensor<?x1xf32>, tensor<?x1xi32>
  return %y, %v, %e : tensor<?x4xf32>, tensor<?x1xf32>, tensor<?x1xi32>
}
