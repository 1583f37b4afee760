// RUN: mica-interpret %s | FileCheck %s
// CHECK: 7 of 7 functions checked, all as expected

func.func @embedding() -> tensor<3x2xf32> attributes {mica.expect = [dense<[[5.0, 6.0], [1.0, 2.0], [5.0, 6.0]]> : tensor<3x2xf32>]} {
  %tokens = arith.constant dense<[2, 0, 2]> : tensor<3xi32>
  %table = arith.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xbf16>
  %y = mica.embedding %tokens, %table : tensor<3xi32>, tensor<3x2xbf16> -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

func.func @embedding_beyond_the_vocabulary() -> tensor<1x2xf32> attributes {mica.expect_error = "'mica.embedding' token 3 is outside of [0, 3)"} {
  %tokens = arith.constant dense<3> : tensor<1xi32>
  %table = arith.constant dense<1.0> : tensor<3x2xf32>
  %y = mica.embedding %tokens, %table : tensor<1xi32>, tensor<3x2xf32> -> tensor<1x2xf32>
  return %y : tensor<1x2xf32>
}

// y = x W^T: row n of the weight results in column n of the result.
func.func @linear() -> tensor<2x3xf32> attributes {mica.expect = [dense<[[1.0, 2.0, -1.0], [3.0, 4.0, -1.0]]> : tensor<2x3xf32>]} {
  %x = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %w = arith.constant dense<[[1.0, 0.0], [0.0, 1.0], [1.0, -1.0]]> : tensor<3x2xf32>
  %y = mica.linear %x, %w : tensor<2x2xf32>, tensor<3x2xf32> -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

func.func @linear_bias_residual() -> tensor<1x2xf32> attributes {mica.expect = [dense<[[111.0, 222.0]]> : tensor<1x2xf32>]} {
  %x = arith.constant dense<[[1.0, 2.0]]> : tensor<1x2xf32>
  %w = arith.constant dense<[[1.0, 0.0], [0.0, 1.0]]> : tensor<2x2xf32>
  %b = arith.constant dense<[10.0, 20.0]> : tensor<2xf32>
  %r = arith.constant dense<[[100.0, 200.0]]> : tensor<1x2xf32>
  %y = mica.linear %x, %w bias(%b : tensor<2xf32>) residual(%r : tensor<1x2xf32>) : tensor<1x2xf32>, tensor<2x2xf32> -> tensor<1x2xf32>
  return %y : tensor<1x2xf32>
}

// Sums are exact where f32 would lose the small number: 1e8 + 1 - 1e8 = 1.
func.func @linear_accumulates_exactly() -> tensor<1x1xf32> attributes {mica.expect = [dense<1.0> : tensor<1x1xf32>]} {
  %x = arith.constant dense<[[1.0e+08, 1.0, -1.0e+08]]> : tensor<1x3xf32>
  %w = arith.constant dense<1.0> : tensor<1x3xf32>
  %y = mica.linear %x, %w : tensor<1x3xf32>, tensor<1x3xf32> -> tensor<1x1xf32>
  return %y : tensor<1x1xf32>
}

func.func @lm_head() -> tensor<1x3xf32> attributes {mica.expect = [dense<[[1.0, 2.0, -1.0]]> : tensor<1x3xf32>]} {
  %x = arith.constant dense<[[1.0, 2.0]]> : tensor<1x2xf32>
  %w = arith.constant dense<[[1.0, 0.0], [0.0, 1.0], [1.0, -1.0]]> : tensor<3x2xf32>
  %y = mica.lm_head %x, %w : tensor<1x2xf32>, tensor<3x2xf32> -> tensor<1x3xf32>
  return %y : tensor<1x3xf32>
}

// y[t, h] = W[h] x[t, h].
func.func @head_linear() -> tensor<2x2x1xf32> attributes {mica.expect = [dense<[[[3.0], [-1.0]], [[11.0], [-1.0]]]> : tensor<2x2x1xf32>]} {
  %x = arith.constant dense<[[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]]> : tensor<2x2x2xf32>
  %w = arith.constant dense<[[[1.0, 1.0]], [[1.0, -1.0]]]> : tensor<2x1x2xf32>
  %y = mica.head_linear %x, %w : tensor<2x2x2xf32>, tensor<2x1x2xf32> -> tensor<2x2x1xf32>
  return %y : tensor<2x2x1xf32>
}
