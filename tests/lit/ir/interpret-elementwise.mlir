// RUN: mica-interpret %s | FileCheck %s
// CHECK: 15 of 15 functions checked, all as expected

func.func @add() -> tensor<1x3xf32> attributes {mica.expect = [dense<[[1.5, -1.0, 3.0]]> : tensor<1x3xf32>]} {
  %a = arith.constant dense<[[1.0, -2.0, 0.0]]> : tensor<1x3xf32>
  %b = arith.constant dense<[[0.5, 1.0, 3.0]]> : tensor<1x3xf32>
  %y = mica.add %a, %b : tensor<1x3xf32>
  return %y : tensor<1x3xf32>
}

// 1.0078125 * 1.0078125 = 1.01568603515625 rounds to 1.015625 in bf16.
func.func @mul_rounds_once() -> tensor<1x2xbf16> attributes {mica.expect = [dense<[[1.015625, -6.0]]> : tensor<1x2xbf16>], mica.tolerance = 0.0} {
  %a = arith.constant dense<[[1.0078125, -2.0]]> : tensor<1x2xbf16>
  %b = arith.constant dense<[[1.0078125, 3.0]]> : tensor<1x2xbf16>
  %y = mica.mul %a, %b : tensor<1x2xbf16>
  return %y : tensor<1x2xbf16>
}

func.func @silu() -> tensor<1x5xf32> attributes {mica.expect = [dense<[[-0.23840584, -0.18877033, 0.0, 0.73105858, 2.85772238]]> : tensor<1x5xf32>]} {
  %x = arith.constant dense<[[-2.0, -0.5, 0.0, 1.0, 3.0]]> : tensor<1x5xf32>
  %y = mica.silu %x : tensor<1x5xf32>
  return %y : tensor<1x5xf32>
}

func.func @gelu() -> tensor<1x5xf32> attributes {mica.expect = [dense<[[-0.04550026, -0.15426877, 0.0, 0.84134475, 2.99595031]]> : tensor<1x5xf32>]} {
  %x = arith.constant dense<[[-2.0, -0.5, 0.0, 1.0, 3.0]]> : tensor<1x5xf32>
  %y = mica.gelu %x : tensor<1x5xf32>
  return %y : tensor<1x5xf32>
}

func.func @gelu_tanh() -> tensor<1x5xf32> attributes {mica.expect = [dense<[[-0.04540231, -0.15428599, 0.0, 0.84119199, 2.99636261]]> : tensor<1x5xf32>]} {
  %x = arith.constant dense<[[-2.0, -0.5, 0.0, 1.0, 3.0]]> : tensor<1x5xf32>
  %y = mica.gelu_tanh %x : tensor<1x5xf32>
  return %y : tensor<1x5xf32>
}

func.func @relu() -> tensor<1x3xf32> attributes {mica.expect = [dense<[[0.0, 0.0, 3.0]]> : tensor<1x3xf32>]} {
  %x = arith.constant dense<[[-2.0, 0.0, 3.0]]> : tensor<1x3xf32>
  %y = mica.relu %x : tensor<1x3xf32>
  return %y : tensor<1x3xf32>
}

func.func @relu2() -> tensor<1x3xf32> attributes {mica.expect = [dense<[[0.0, 0.0, 9.0]]> : tensor<1x3xf32>]} {
  %x = arith.constant dense<[[-2.0, 0.0, 3.0]]> : tensor<1x3xf32>
  %y = mica.relu2 %x : tensor<1x3xf32>
  return %y : tensor<1x3xf32>
}

func.func @quick_gelu() -> tensor<1x5xf32> attributes {mica.expect = [dense<[[-0.06434138, -0.14961156, 0.0, 0.84579577, 2.98192869]]> : tensor<1x5xf32>]} {
  %x = arith.constant dense<[[-2.0, -0.5, 0.0, 1.0, 3.0]]> : tensor<1x5xf32>
  %y = mica.quick_gelu %x : tensor<1x5xf32>
  return %y : tensor<1x5xf32>
}

// Rounding to nearest, ties to even: 1.00390625 is half way between 1 and 1.0078125, 1.01171875 between 1.0078125 and 1.015625.
func.func @cast() -> tensor<1x4xbf16> attributes {mica.expect = [dense<[[1.0, 1.015625, 0.10009765625, 0x7F80]]> : tensor<1x4xbf16>], mica.tolerance = 0.0} {
  %x = arith.constant dense<[[1.00390625, 1.01171875, 0.1, 3.4028235e+38]]> : tensor<1x4xf32>
  %y = mica.cast %x : tensor<1x4xf32> to tensor<1x4xbf16>
  return %y : tensor<1x4xbf16>
}

func.func @split_heads() -> tensor<2x2x2xf32> attributes {mica.expect = [dense<[[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]]> : tensor<2x2x2xf32>]} {
  %x = arith.constant dense<[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]> : tensor<2x4xf32>
  %y = mica.split_heads %x : tensor<2x4xf32> to tensor<2x2x2xf32>
  return %y : tensor<2x2x2xf32>
}

func.func @merge_heads() -> tensor<1x4xf32> attributes {mica.expect = [dense<[[1.0, 2.0, 3.0, 4.0]]> : tensor<1x4xf32>]} {
  %x = arith.constant dense<[[[1.0, 2.0], [3.0, 4.0]]]> : tensor<1x2x2xf32>
  %y = mica.merge_heads %x : tensor<1x2x2xf32> to tensor<1x4xf32>
  return %y : tensor<1x4xf32>
}

func.func @select_rows() -> tensor<3x2xf32> attributes {mica.expect = [dense<[[5.0, 6.0], [1.0, 2.0], [5.0, 6.0]]> : tensor<3x2xf32>]} {
  %x = arith.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>
  %rows = arith.constant dense<[2, 0, 2]> : tensor<3xi32>
  %y = mica.select_rows %x, %rows : tensor<3x2xf32>, tensor<3xi32> -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

func.func @scale() -> tensor<1x3xf32> attributes {mica.expect = [dense<[[3.0, -6.0, 0.0]]> : tensor<1x3xf32>]} {
  %x = arith.constant dense<[[1.0, -2.0, 0.0]]> : tensor<1x3xf32>
  %y = mica.scale %x by(3.0) : tensor<1x3xf32>
  return %y : tensor<1x3xf32>
}

// 30 tanh(x / 30).
func.func @softcap() -> tensor<1x3xf32> attributes {mica.expect = [dense<[[0.99962977, -22.847825, 30.0]]> : tensor<1x3xf32>]} {
  %x = arith.constant dense<[[1.0, -30.0, 3000.0]]> : tensor<1x3xf32>
  %y = mica.softcap %x at(30.0) : tensor<1x3xf32>
  return %y : tensor<1x3xf32>
}

func.func @sigmoid_gate() -> tensor<2x2xf32> attributes {mica.expect = [dense<[[0.5, -1.0], [2.6423912, 3.5231883]]> : tensor<2x2xf32>]} {
  %x = arith.constant dense<[[1.0, -2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %g = arith.constant dense<[[0.0], [2.0]]> : tensor<2x1xf32>
  %y = mica.sigmoid_gate %x, %g : tensor<2x2xf32>, tensor<2x1xf32>
  return %y : tensor<2x2xf32>
}
