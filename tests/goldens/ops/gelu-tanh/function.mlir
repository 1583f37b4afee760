func.func @main(%arg0: tensor<?x16xf32>) -> tensor<?x16xf32> {
  %y = mica.gelu_tanh %arg0 : tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
