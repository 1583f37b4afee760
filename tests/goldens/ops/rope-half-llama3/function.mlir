func.func @main(%arg0: tensor<?x2x16xf32>, %arg1: tensor<?xi32>) -> tensor<?x2x16xf32> {
  %y = mica.rope %arg0, %arg1 half theta(1.000000e+04) scaling(#mica.llama3_scaling<factor = 8.0, low_freq_factor = 1.0, high_freq_factor = 4.0, original_context = 128>) : tensor<?x2x16xf32>, tensor<?xi32>
  return %y : tensor<?x2x16xf32>
}
