func.func @main(%arg0: tensor<?x16xf32>, %arg1: tensor<16xf32>) -> tensor<?x16xf32> {
  %y = mica.rmsnorm %arg0, %arg1 eps(1.000000e-06) rounding(after_weight) weight_offset(1.000000e+00) : tensor<?x16xf32>, tensor<16xf32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
