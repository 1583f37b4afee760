func.func @main(%arg0: tensor<?xi32>, %arg1: tensor<10x16xf32>) -> tensor<?x16xf32> {
  %y = mica.embedding %arg0, %arg1 : tensor<?xi32>, tensor<10x16xf32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
