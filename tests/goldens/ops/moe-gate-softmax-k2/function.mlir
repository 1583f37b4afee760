func.func @main(%arg0: tensor<?x16xf32>, %arg1: tensor<5x16xf32>) -> (tensor<?x2xf32>, tensor<?x2xi32>) {
  %y:2 = mica.moe_gate %arg0, %arg1 softmax k(2) normalize : tensor<?x16xf32>, tensor<5x16xf32> -> tensor<?x2xf32>, tensor<?x2xi32>
  return %y#0, %y#1 : tensor<?x2xf32>, tensor<?x2xi32>
}
