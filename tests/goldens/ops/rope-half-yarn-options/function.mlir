func.func @main(%arg0: tensor<?x2x16xf32>, %arg1: tensor<?xi32>) -> tensor<?x2x16xf32> {
  %y = mica.rope %arg0, %arg1 half theta(1.000000e+04) scaling(#mica.yarn_scaling<factor = 8.0, beta_fast = 8.0, beta_slow = 0.5, attention_factor = 1.25, original_context = 128, high_limit = 15>) : tensor<?x2x16xf32>, tensor<?xi32>
  return %y : tensor<?x2x16xf32>
}
