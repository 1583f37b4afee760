func.func @main(%arg0: tensor<?x16xf32>, %arg1: tensor<5x16xf32>) -> (tensor<?x3xf32>, tensor<?x3xi32>) {
  %y:2 = mica.moe_gate %arg0, %arg1 sigmoid k(3) normalize : tensor<?x16xf32>, tensor<5x16xf32> -> tensor<?x3xf32>, tensor<?x3xi32>
  return %y#0, %y#1 : tensor<?x3xf32>, tensor<?x3xi32>
}
