func.func @main(%arg0: tensor<?x?x2x4xf32>) -> tensor<?x?x6x4xf32> {
  %y = mica.repeat_kv %arg0 times 3 : tensor<?x?x2x4xf32> -> tensor<?x?x6x4xf32>
  return %y : tensor<?x?x6x4xf32>
}
