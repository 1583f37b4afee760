func.func @main(%arg0: tensor<?x16xf32>, %arg1: tensor<10x16xf32>) -> tensor<?x10xf32> {
  %y = mica.lm_head %arg0, %arg1 : tensor<?x16xf32>, tensor<10x16xf32> -> tensor<?x10xf32>
  return %y : tensor<?x10xf32>
}
