// RUN: mica-interpret %s | FileCheck %s
// CHECK: 13 of 13 functions checked, all as expected

func.func @half() -> tensor<1x1x4xf32> attributes {mica.expect = [dense<[[[-0.198411, 0.195990, 0.246238, 0.401980]]]> : tensor<1x1x4xf32>], mica.tolerance = 2.0e-06} {
  %q = arith.constant dense<[[[0.1, 0.2, 0.3, 0.4]]]> : tensor<1x1x4xf32>
  %p = arith.constant dense<1> : tensor<1xi32>
  %y = mica.rope %q, %p half theta(1.0e+04) : tensor<1x1x4xf32>, tensor<1xi32>
  return %y : tensor<1x1x4xf32>
}

func.func @interleaved() -> tensor<1x1x4xf32> attributes {mica.expect = [dense<[[[-0.114264, 0.192208, 0.295985, 0.402980]]]> : tensor<1x1x4xf32>], mica.tolerance = 2.0e-06} {
  %q = arith.constant dense<[[[0.1, 0.2, 0.3, 0.4]]]> : tensor<1x1x4xf32>
  %p = arith.constant dense<1> : tensor<1xi32>
  %y = mica.rope %q, %p interleaved theta(1.0e+04) : tensor<1x1x4xf32>, tensor<1xi32>
  return %y : tensor<1x1x4xf32>
}

// Position 0 is not rotated; a partial rope rotates only the first elements, like a head of that size.
func.func @partial() -> (tensor<2x1x6xf32>) attributes {mica.expect = [dense<[[[0.1, 0.2, 0.3, 0.4, 5.0, 6.0]], [[-0.198411, 0.195990, 0.246238, 0.401980, 5.0, 6.0]]]> : tensor<2x1x6xf32>]} {
  %q = arith.constant dense<[[[0.1, 0.2, 0.3, 0.4, 5.0, 6.0]], [[0.1, 0.2, 0.3, 0.4, 5.0, 6.0]]]> : tensor<2x1x6xf32>
  %p = arith.constant dense<[0, 1]> : tensor<2xi32>
  %y = mica.rope %q, %p half theta(1.0e+04) rotary_dim(4) : tensor<2x1x6xf32>, tensor<2xi32>
  return %y : tensor<2x1x6xf32>
}

// The first of two pairs is rotated, elements 0 and 2: the last one is not.
func.func @proportional() -> (tensor<1x1x4xf32>) attributes {mica.expect = [dense<[[[-0.198411, 0.2, 0.246238, 0.4]]]> : tensor<1x1x4xf32>], mica.tolerance = 2.0e-06} {
  %q = arith.constant dense<[[[0.1, 0.2, 0.3, 0.4]]]> : tensor<1x1x4xf32>
  %p = arith.constant dense<2> : tensor<1xi32>
  %y = mica.rope %q, %p half theta(1.0e+04) scaling(#mica.proportional_scaling<pairs = 1, factor = 2.0>) : tensor<1x1x4xf32>, tensor<1xi32>
  return %y : tensor<1x1x4xf32>
}

// The dot product of q at m and k at n only depends on m - n.
func.func private @dot(%m: tensor<1xi32>, %n: tensor<1xi32>) -> tensor<1x1xf32> {
  %q = arith.constant dense<[[[0.1, 0.2, 0.3, 0.4]]]> : tensor<1x1x4xf32>
  %k = arith.constant dense<[[[0.9, -0.7, 0.5, 0.3]]]> : tensor<1x1x4xf32>
  %ones = arith.constant dense<1.0> : tensor<1x4xf32>
  %qr = mica.rope %q, %m half theta(1.0e+04) : tensor<1x1x4xf32>, tensor<1xi32>
  %kr = mica.rope %k, %n half theta(1.0e+04) : tensor<1x1x4xf32>, tensor<1xi32>
  %qk = mica.mul %qr, %kr : tensor<1x1x4xf32>
  %row = mica.merge_heads %qk : tensor<1x1x4xf32> to tensor<1x4xf32>
  %y = mica.linear %row, %ones : tensor<1x4xf32>, tensor<1x4xf32> -> tensor<1x1xf32>
  return %y : tensor<1x1xf32>
}

func.func @depends_on_the_difference_only() -> (tensor<1x1xf32>, tensor<1x1xf32>) attributes {mica.expect_pairs} {
  %m = arith.constant dense<5> : tensor<1xi32>
  %n = arith.constant dense<2> : tensor<1xi32>
  %m1 = arith.constant dense<105> : tensor<1xi32>
  %n1 = arith.constant dense<102> : tensor<1xi32>
  %a = func.call @dot(%m, %n) : (tensor<1xi32>, tensor<1xi32>) -> tensor<1x1xf32>
  %b = func.call @dot(%m1, %n1) : (tensor<1xi32>, tensor<1xi32>) -> tensor<1x1xf32>
  return %a, %b : tensor<1x1xf32>, tensor<1x1xf32>
}

// Interleaved checkpoints are converted to half by permuting the rows of wq per head: view(D/2, 2) with the axes swapped.
func.func @permuted_rows_turn_interleaved_into_half() -> (tensor<2x4xf32>, tensor<2x4xf32>) attributes {mica.expect_pairs} {
  %x = arith.constant dense<[[0.1, 0.2, 0.3, 0.4], [1.0, -2.0, 3.0, -4.0]]> : tensor<2x4xf32>
  %p = arith.constant dense<[3, 7]> : tensor<2xi32>
  %permute = arith.constant dense<[[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]]> : tensor<4x4xf32>
  %heads = mica.split_heads %x : tensor<2x4xf32> to tensor<2x1x4xf32>
  %rotated = mica.rope %heads, %p interleaved theta(1.0e+04) : tensor<2x1x4xf32>, tensor<2xi32>
  %rows = mica.merge_heads %rotated : tensor<2x1x4xf32> to tensor<2x4xf32>
  %a = mica.linear %rows, %permute : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  %y = mica.linear %x, %permute : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  %yheads = mica.split_heads %y : tensor<2x4xf32> to tensor<2x1x4xf32>
  %yrotated = mica.rope %yheads, %p half theta(1.0e+04) : tensor<2x1x4xf32>, tensor<2xi32>
  %b = mica.merge_heads %yrotated : tensor<2x1x4xf32> to tensor<2x4xf32>
  return %a, %b : tensor<2x4xf32>, tensor<2x4xf32>
}

// Linear scaling by 4 at position 8 equals position 2.
func.func @linear_scaling() -> (tensor<1x1x4xf32>, tensor<1x1x4xf32>) attributes {mica.expect_pairs} {
  %q = arith.constant dense<[[[0.1, 0.2, 0.3, 0.4]]]> : tensor<1x1x4xf32>
  %p8 = arith.constant dense<8> : tensor<1xi32>
  %p2 = arith.constant dense<2> : tensor<1xi32>
  %a = mica.rope %q, %p8 half theta(1.0e+04) scaling(#mica.linear_scaling<factor = 4.0>) : tensor<1x1x4xf32>, tensor<1xi32>
  %b = mica.rope %q, %p2 half theta(1.0e+04) : tensor<1x1x4xf32>, tensor<1xi32>
  return %a, %b : tensor<1x1x4xf32>, tensor<1x1x4xf32>
}

// YaRN's attention factor multiplies cosine and sine: at position 0 it is the only effect.
func.func @yarn_attention_factor() -> tensor<1x1x4xf32> attributes {mica.expect = [dense<[[[0.125, 0.25, 0.375, 0.5]]]> : tensor<1x1x4xf32>]} {
  %q = arith.constant dense<[[[0.1, 0.2, 0.3, 0.4]]]> : tensor<1x1x4xf32>
  %p = arith.constant dense<0> : tensor<1xi32>
  %y = mica.rope %q, %p half theta(1.0e+06) scaling(#mica.yarn_scaling<factor = 16.0, beta_fast = 32.0, beta_slow = 1.0, attention_factor = 1.25, original_context = 2048, high_limit = 1>) : tensor<1x1x4xf32>, tensor<1xi32>
  return %y : tensor<1x1x4xf32>
}

// cos and sin of position * [1, 0.01]; RopeFrequenciesTest tests the frequencies of scalings.
func.func @table() -> tensor<2x2x2xf32> attributes {mica.expect = [dense<[[[1.0, 1.0], [0.0, 0.0]], [[-0.416146837, 0.999800007], [0.909297427, 0.0199986667]]]> : tensor<2x2x2xf32>]} {
  %p = arith.constant dense<[0, 2]> : tensor<2xi32>
  %y = mica.rope_table %p rotary_dim(4) theta(1.0e+04) : tensor<2xi32> -> tensor<2x2x2xf32>
  return %y : tensor<2x2x2xf32>
}

// Sines, then cosines, of positions plus the offset.
func.func @sinusoid() -> tensor<1x4xf32> attributes {mica.expect = [dense<[[0.141120008, 0.000300000, -0.989992497, 0.999999955]]> : tensor<1x4xf32>]} {
  %p = arith.constant dense<1> : tensor<1xi32>
  %y = mica.sinusoid %p offset(2) : tensor<1xi32> -> tensor<1x4xf32>
  return %y : tensor<1x4xf32>
}

// The row of the padding position is zero.
func.func @padded_sinusoid() -> tensor<2x4xf32> attributes {mica.expect = [dense<[[0.0, 0.0, 0.0, 0.0], [0.141120008, 0.000300000, -0.989992497, 0.999999955]]> : tensor<2x4xf32>]} {
  %p = arith.constant dense<[0, 1]> : tensor<2xi32>
  %y = mica.sinusoid %p offset(2) padding_idx(2) : tensor<2xi32> -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// A factor per pair and an amplitude: the results are doubled, at half the position. The length selects the factors.
func.func @longrope() -> (tensor<2x1x4xf32>, tensor<2x1x4xf32>) attributes {mica.expect_pairs} {
  %x = arith.constant dense<[[[0.1, 0.2, 0.3, 0.4]], [[0.1, 0.2, 0.3, 0.4]]]> : tensor<2x1x4xf32>
  %four = arith.constant dense<4> : tensor<2xi32>
  %n = arith.constant dense<[8, 9]> : tensor<2xi32>
  %halves = arith.constant dense<[2, 1]> : tensor<2xi32>
  %y = mica.rope %x, %four lengths(%n : tensor<2xi32>) half theta(1.0e+04)
      scaling(#mica.longrope_scaling<short_factors = [2.0, 2.0], long_factors = [4.0, 4.0], attention_factor = 2.0, original_context = 8>)
      : tensor<2x1x4xf32>, tensor<2xi32>
  %z = mica.rope %x, %halves half theta(1.0e+04) : tensor<2x1x4xf32>, tensor<2xi32>
  %doubled = mica.scale %z by(2.0) : tensor<2x1x4xf32>
  return %y, %doubled : tensor<2x1x4xf32>, tensor<2x1x4xf32>
}

// At twice the length s = 3 * 2 - 2 = 4, and theta = 100 becomes 100 * 4^2 = 1600: inv_freq[1] = 1/40 instead of 1/10.
func.func @dynamic() -> (tensor<2x2x2xf32>, tensor<2x2x2xf32>) attributes {mica.expect_pairs} {
  %p = arith.constant dense<[5, 5]> : tensor<2xi32>
  %n = arith.constant dense<[6, 16]> : tensor<2xi32>
  %y = mica.rope_table %p lengths(%n : tensor<2xi32>) rotary_dim(4) theta(1.0e+02) scaling(#mica.dynamic_scaling<factor = 3.0, original_context = 8>)
      : tensor<2xi32> -> tensor<2x2x2xf32>
  %z = arith.constant dense<[[[0.283662185, 0.877582562], [-0.958924275, 0.479425539]], [[0.283662185, 0.992197667], [-0.958924275, 0.124674733]]]> : tensor<2x2x2xf32>
  return %y, %z : tensor<2x2x2xf32>, tensor<2x2x2xf32>
}
