func.func @main(%arg0: tensor<?x16xf32>, %arg1: tensor<16xf32>) -> tensor<?x16xbf16> {
  %y = mica.rmsnorm %arg0, %arg1 eps(1.000000e-05) : tensor<?x16xf32>, tensor<16xf32> -> tensor<?x16xbf16>
  return %y : tensor<?x16xbf16>
}
