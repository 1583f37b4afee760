func.func @main(%arg0: tensor<?x8xf32>, %arg1: tensor<?x2xf32>, %arg2: tensor<?x2xi32>, %arg3: tensor<4x6x8xf32>, %arg4: tensor<4x8x6xf32>, %arg5: tensor<4x6x8xf32>) -> tensor<?x8xf32> {
  %y = mica.moe_experts %arg0, %arg1, %arg2, %arg3, %arg4 up(%arg5 : tensor<4x6x8xf32>) silu inner(6) : tensor<?x8xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<4x6x8xf32>, tensor<4x8x6xf32> -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}
