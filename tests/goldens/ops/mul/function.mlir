func.func @main(%arg0: tensor<?x16xf32>, %arg1: tensor<?x16xf32>) -> tensor<?x16xf32> {
  %y = mica.mul %arg0, %arg1 : tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
