// RUN: mica-interpret %s | FileCheck %s
// CHECK: 12 of 12 functions checked, all as expected

func.func @rmsnorm() -> tensor<1x4xf32> attributes {mica.expect = [dense<[[0.534522, -1.603565, 0.0, 1.924278]]> : tensor<1x4xf32>]} {
  %x = arith.constant dense<[[1.0, -2.0, 0.0, 3.0]]> : tensor<1x4xf32>
  %w = arith.constant dense<[1.0, 1.5, 0.5, 1.2]> : tensor<4xf32>
  %y = mica.rmsnorm %x, %w eps(1.0e-05) : tensor<1x4xf32>, tensor<4xf32> -> tensor<1x4xf32>
  return %y : tensor<1x4xf32>
}

// eps is inside the root: 1e-3 / sqrt(1e-6 + 1e-6); outside, the result would be 1e-3 / (1e-3 + 1e-6).
func.func @rmsnorm_eps_is_within_the_root() -> tensor<1x2xf32> attributes {mica.expect = [dense<[[0.70710678, -0.70710678]]> : tensor<1x2xf32>]} {
  %x = arith.constant dense<[[1.0e-03, -1.0e-03]]> : tensor<1x2xf32>
  %w = arith.constant dense<1.0> : tensor<2xf32>
  %y = mica.rmsnorm %x, %w eps(1.0e-06) : tensor<1x2xf32>, tensor<2xf32> -> tensor<1x2xf32>
  return %y : tensor<1x2xf32>
}

// The two conventions, which only differ in low precision.
func.func @rmsnorm_rounds_before_the_weight() -> tensor<1x4xbf16> attributes {mica.expect = [dense<[[0.53125, -1.59375, 0.11181640625, 1.9296875]]> : tensor<1x4xbf16>], mica.tolerance = 0.0} {
  %x = arith.constant dense<[[1.0, -2.0, 0.30078125, 3.0]]> : tensor<1x4xbf16>
  %w = arith.constant dense<[1.0, 1.5, 0.69921875, 1.203125]> : tensor<4xbf16>
  %y = mica.rmsnorm %x, %w eps(1.0e-05) : tensor<1x4xbf16>, tensor<4xbf16> -> tensor<1x4xbf16>
  return %y : tensor<1x4xbf16>
}

func.func @rmsnorm_rounds_after_the_weight() -> tensor<1x4xbf16> attributes {mica.expect = [dense<[[0.53125, -1.6015625, 0.11181640625, 1.921875]]> : tensor<1x4xbf16>], mica.tolerance = 0.0} {
  %x = arith.constant dense<[[1.0, -2.0, 0.30078125, 3.0]]> : tensor<1x4xbf16>
  %w = arith.constant dense<[1.0, 1.5, 0.69921875, 1.203125]> : tensor<4xbf16>
  %y = mica.rmsnorm %x, %w eps(1.0e-05) rounding(after_weight) : tensor<1x4xbf16>, tensor<4xbf16> -> tensor<1x4xbf16>
  return %y : tensor<1x4xbf16>
}

// Gemma stores weights as offsets from 1.
func.func @rmsnorm_weight_offset() -> (tensor<1x4xf32>, tensor<1x4xf32>) attributes {mica.expect_pairs} {
  %x = arith.constant dense<[[1.0, -2.0, 0.0, 3.0]]> : tensor<1x4xf32>
  %w = arith.constant dense<[0.0, 0.5, -0.5, 0.25]> : tensor<4xf32>
  %w1 = arith.constant dense<[1.0, 1.5, 0.5, 1.25]> : tensor<4xf32>
  %y = mica.rmsnorm %x, %w eps(1.0e-05) weight_offset(1.0) : tensor<1x4xf32>, tensor<4xf32> -> tensor<1x4xf32>
  %z = mica.rmsnorm %x, %w1 eps(1.0e-05) : tensor<1x4xf32>, tensor<4xf32> -> tensor<1x4xf32>
  return %y, %z : tensor<1x4xf32>, tensor<1x4xf32>
}

// Heads are normalized separately.
func.func @rmsnorm_of_heads() -> (tensor<1x2x2xf32>, tensor<1x2x2xf32>) attributes {mica.expect_pairs} {
  %x = arith.constant dense<[[[3.0, 4.0], [0.0, -20.0]]]> : tensor<1x2x2xf32>
  %expected = arith.constant dense<[[[0.848528137, 1.131370850], [0.0, -1.414213562]]]> : tensor<1x2x2xf32>
  %w = arith.constant dense<1.0> : tensor<2xf32>
  %y = mica.rmsnorm %x, %w eps(1.0e-20) : tensor<1x2x2xf32>, tensor<2xf32> -> tensor<1x2x2xf32>
  return %y, %expected : tensor<1x2x2xf32>, tensor<1x2x2xf32>
}

func.func @layernorm() -> (tensor<1x4xf32>, tensor<1x4xf32>)
    attributes {mica.expect = [dense<[[0.2773, -1.3867, -0.2773, 1.3867]]> : tensor<1x4xf32>,
                               dense<[[1.2773, -2.7734, -0.13865, 1.3867]]> : tensor<1x4xf32>], mica.tolerance = 5.0e-05} {
  %x = arith.constant dense<[[1.0, -2.0, 0.0, 3.0]]> : tensor<1x4xf32>
  %ones = arith.constant dense<1.0> : tensor<4xf32>
  %w = arith.constant dense<[1.0, 2.0, 0.5, 1.0]> : tensor<4xf32>
  %b = arith.constant dense<[1.0, 0.0, 0.0, 0.0]> : tensor<4xf32>
  %y = mica.layernorm %x, %ones eps(1.0e-05) : tensor<1x4xf32>, tensor<4xf32> -> tensor<1x4xf32>
  %z = mica.layernorm %x, %w bias(%b : tensor<4xf32>) eps(1.0e-05) : tensor<1x4xf32>, tensor<4xf32> -> tensor<1x4xf32>
  return %y, %z : tensor<1x4xf32>, tensor<1x4xf32>
}

// A weight [H, D] has a row for each head.
func.func @rmsnorm_with_a_weight_for_each_head() -> (tensor<1x2x2xf32>, tensor<1x2x2xf32>) attributes {mica.expect_pairs} {
  %x = arith.constant dense<[[[3.0, 4.0], [0.0, -20.0]]]> : tensor<1x2x2xf32>
  %expected = arith.constant dense<[[[0.848528137, 2.262741700], [0.0, -4.242640687]]]> : tensor<1x2x2xf32>
  %w = arith.constant dense<[[1.0, 2.0], [5.0, 3.0]]> : tensor<2x2xf32>
  %y = mica.rmsnorm %x, %w eps(1.0e-20) : tensor<1x2x2xf32>, tensor<2x2xf32> -> tensor<1x2x2xf32>
  return %y, %expected : tensor<1x2x2xf32>, tensor<1x2x2xf32>
}

func.func @layernorm_with_a_weight_for_each_head() -> (tensor<1x2x2xf32>, tensor<1x2x2xf32>) attributes {mica.expect_pairs} {
  %x = arith.constant dense<[[[3.0, 5.0], [0.0, -20.0]]]> : tensor<1x2x2xf32>
  %expected = arith.constant dense<[[[-1.0, 2.5], [5.0, -4.0]]]> : tensor<1x2x2xf32>
  %w = arith.constant dense<[[1.0, 2.0], [5.0, 3.0]]> : tensor<2x2xf32>
  %b = arith.constant dense<[[0.0, 0.5], [0.0, -1.0]]> : tensor<2x2xf32>
  %y = mica.layernorm %x, %w bias(%b : tensor<2x2xf32>) eps(1.0e-20) : tensor<1x2x2xf32>, tensor<2x2xf32> -> tensor<1x2x2xf32>
  return %y, %expected : tensor<1x2x2xf32>, tensor<1x2x2xf32>
}

// Heads are normalized separately: lengths of 5 and of 13.
func.func @l2norm() -> tensor<1x2x2xf32> attributes {mica.expect = [dense<[[[0.6, -0.8], [0.384615385, 0.923076923]]]> : tensor<1x2x2xf32>]} {
  %x = arith.constant dense<[[[3.0, -4.0], [5.0, 12.0]]]> : tensor<1x2x2xf32>
  %y = mica.l2norm %x eps(1.0e-12) : tensor<1x2x2xf32>
  return %y : tensor<1x2x2xf32>
}

// eps is added to the sum of squares, not to their mean: 3 / sqrt(25 + 11).
func.func @l2norm_eps() -> tensor<1x2xf32> attributes {mica.expect = [dense<[[0.5, -0.666666667]]> : tensor<1x2xf32>]} {
  %x = arith.constant dense<[[3.0, -4.0]]> : tensor<1x2xf32>
  %y = mica.l2norm %x eps(11.0) : tensor<1x2xf32>
  return %y : tensor<1x2xf32>
}

// A row of zeros stays zero.
func.func @l2norm_of_zeros() -> tensor<1x2xf32> attributes {mica.expect = [dense<0.0> : tensor<1x2xf32>], mica.tolerance = 0.0} {
  %x = arith.constant dense<0.0> : tensor<1x2xf32>
  %y = mica.l2norm %x eps(1.0e-06) : tensor<1x2xf32>
  return %y : tensor<1x2xf32>
}
