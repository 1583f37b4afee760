func.func @main(%arg0: tensor<?x64xbf16>, %arg1: tensor<64xbf16>) -> tensor<?x64xbf16> {
  %y = mica.rmsnorm %arg0, %arg1 eps(1.000000e-05) : tensor<?x64xbf16>, tensor<64xbf16> -> tensor<?x64xbf16>
  return %y : tensor<?x64xbf16>
}
