func.func @square(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %y = mica.mul %x, %x : tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
