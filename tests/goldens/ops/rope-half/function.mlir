func.func @main(%arg0: tensor<?x2x8xf32>, %arg1: tensor<?xi32>) -> tensor<?x2x8xf32> {
  %y = mica.rope %arg0, %arg1 half theta(1.000000e+04) : tensor<?x2x8xf32>, tensor<?xi32>
  return %y : tensor<?x2x8xf32>
}
