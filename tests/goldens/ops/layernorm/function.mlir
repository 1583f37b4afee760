func.func @main(%arg0: tensor<?x16xf32>, %arg1: tensor<16xf32>) -> tensor<?x16xf32> {
  %y = mica.layernorm %arg0, %arg1 eps(1.000000e-05) : tensor<?x16xf32>, tensor<16xf32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
