// RUN: mica-interpret %s | FileCheck %s
// CHECK: 6 of 6 functions checked, all as expected

// softplus of a large sum is the sum, that of a small one nearly zero.
func.func @softplus() -> tensor<2x3xf32> attributes {mica.expect = [dense<[[0.693147181, 0.201413278, 100.5], [1.31326169, 0.126928011, 6.13336839e-44]]> : tensor<2x3xf32>], mica.tolerance = 1.0e-07} {
  %x = arith.constant dense<[[0.5, -1.0, 100.0], [1.5, -1.5, -100.0]]> : tensor<2x3xf32>
  %bias = arith.constant dense<[-0.5, -0.5, 0.5]> : tensor<3xf32>
  %y = mica.softplus %x bias(%bias) : tensor<2x3xf32>, tensor<3xf32>
  return %y : tensor<2x3xf32>
}

// The rates exp(a_log) are 1 and 1 / e.
func.func @decay() -> tensor<2x2xf32> attributes {mica.expect = [dense<[[0.60653066, 0.479141709], [1.0, 0.692200628]]> : tensor<2x2xf32>]} {
  %dt = arith.constant dense<[[0.5, 2.0], [0.0, 1.0]]> : tensor<2x2xf32>
  %a_log = arith.constant dense<[0.0, -1.0]> : tensor<2xf32>
  %y = mica.decay %dt, %a_log : tensor<2x2xf32>, tensor<2xf32>
  return %y : tensor<2x2xf32>
}

func.func @scale_heads() -> tensor<2x2x3xf32> attributes {mica.expect = [dense<[[[2.0, 4.0, 6.0], [-4.0, -5.0, -6.0]], [[0.0, 0.0, 0.0], [5.0, 5.5, 6.0]]]> : tensor<2x2x3xf32>]} {
  %x = arith.constant dense<[[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], [[7.0, 8.0, 9.0], [10.0, 11.0, 12.0]]]> : tensor<2x2x3xf32>
  %factors = arith.constant dense<[[2.0, -1.0], [0.0, 0.5]]> : tensor<2x2xf32>
  %y = mica.scale_heads %x by(%factors) : tensor<2x2x3xf32>, tensor<2x2xf32>
  return %y : tensor<2x2x3xf32>
}

// The same factors for all rows.
func.func @scale_heads_of_a_weight() -> tensor<2x2x3xf32> attributes {mica.expect = [dense<[[[2.0, 4.0, 6.0], [-4.0, -5.0, -6.0]], [[14.0, 16.0, 18.0], [-10.0, -11.0, -12.0]]]> : tensor<2x2x3xf32>]} {
  %x = arith.constant dense<[[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], [[7.0, 8.0, 9.0], [10.0, 11.0, 12.0]]]> : tensor<2x2x3xf32>
  %factors = arith.constant dense<[2.0, -1.0]> : tensor<2xf32>
  %y = mica.scale_heads %x by(%factors) : tensor<2x2x3xf32>, tensor<2xf32>
  return %y : tensor<2x2x3xf32>
}

func.func @scale_parts() -> tensor<2x3xf32> attributes {mica.expect = [dense<[[0.5, 1.0, -6.0], [2.0, 2.5, -12.0]]> : tensor<2x3xf32>]} {
  %x = arith.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
  %y = mica.scale_parts %x by([0.5, -2.0]) widths([2, 1]) : tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

func.func @select_head() -> tensor<2x3xf32> attributes {mica.expect = [dense<[[4.0, 5.0, 6.0], [10.0, 11.0, 12.0]]> : tensor<2x3xf32>]} {
  %x = arith.constant dense<[[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], [[7.0, 8.0, 9.0], [10.0, 11.0, 12.0]]]> : tensor<2x2x3xf32>
  %layer = arith.constant 1 : index
  %y = mica.select_head %x[%layer] : tensor<2x2x3xf32> -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}
