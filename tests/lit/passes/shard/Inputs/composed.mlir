mica.weight @composed from ["a", "b"] concat : tensor<8x8xf32>
mica.weight @other : tensor<8x8xf32>
func.func @main(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %w = mica.get_weight @composed : tensor<8x8xf32>
  %v = mica.get_weight @other : tensor<8x8xf32>
  %0 = mica.linear %x, %w : tensor<?x8xf32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %1 = mica.linear %0, %v : tensor<?x8xf32>, tensor<8x8xf32> -> tensor<?x8xf32>
  return %1 : tensor<?x8xf32>
}
