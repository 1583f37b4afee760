func.func @main(%arg0: tensor<?x16xbf16>, %arg1: tensor<10x16xbf16>) -> tensor<?x10xf32> {
  %y = mica.linear %arg0, %arg1 : tensor<?x16xbf16>, tensor<10x16xbf16> -> tensor<?x10xf32>
  return %y : tensor<?x10xf32>
}
