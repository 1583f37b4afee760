func.func @main(%arg0: tensor<?x4x4xf32>, %arg1: tensor<?x?x4x4xf32>, %arg2: tensor<?x?x4x4xf32>, %arg3: tensor<?xi32>, %arg4: tensor<?xi32>) -> tensor<?x4x4xf32> {
  %y = mica.attention %arg0, %arg1, %arg2 at(%arg3, %arg4 : tensor<?xi32>, tensor<?xi32>) causal scale(0.5) : tensor<?x4x4xf32>, tensor<?x?x4x4xf32>, tensor<?x?x4x4xf32> -> tensor<?x4x4xf32>
  return %y : tensor<?x4x4xf32>
}
