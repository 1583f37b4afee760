func.func @main(%arg0: tensor<?x16xf32>) -> tensor<?x16xf32> {
  %y = mica.quick_gelu %arg0 : tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
