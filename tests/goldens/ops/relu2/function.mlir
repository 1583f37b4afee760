func.func @main(%arg0: tensor<?x16xf32>) -> tensor<?x16xf32> {
  %y = mica.relu2 %arg0 : tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
