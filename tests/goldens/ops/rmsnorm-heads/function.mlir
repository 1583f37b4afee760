func.func @main(%arg0: tensor<?x2x8xf32>, %arg1: tensor<8xf32>) -> tensor<?x2x8xf32> {
  %y = mica.rmsnorm %arg0, %arg1 eps(1.000000e-06) : tensor<?x2x8xf32>, tensor<8xf32> -> tensor<?x2x8xf32>
  return %y : tensor<?x2x8xf32>
}
