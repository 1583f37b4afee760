func.func @main(%arg0: tensor<?x8xf32>) -> tensor<?x8xbf16> {
  %y = mica.cast %arg0 : tensor<?x8xf32> to tensor<?x8xbf16>
  return %y : tensor<?x8xbf16>
}
