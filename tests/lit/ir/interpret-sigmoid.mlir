// RUN: mica-interpret %s | FileCheck %s
// CHECK: 2 of 2 functions checked, all as expected

// No overflow at either end.
func.func @sigmoid() -> tensor<1x5xf32> attributes {mica.expect = [dense<[[0.0, 0.268941421, 0.5, 0.880797078, 1.0]]> : tensor<1x5xf32>]} {
  %x = arith.constant dense<[[-1000.0, -1.0, 0.0, 2.0, 1000.0]]> : tensor<1x5xf32>
  %y = mica.sigmoid %x : tensor<1x5xf32>
  return %y : tensor<1x5xf32>
}

// A gate per element.
func.func @sigmoid_gate_of_elements() -> tensor<2x2xf32> attributes {mica.expect = [dense<[[0.5, -1.76159416], [0.806824264, 4.0]]> : tensor<2x2xf32>]} {
  %x = arith.constant dense<[[1.0, -2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %g = arith.constant dense<[[0.0, 2.0], [-1.0, 100.0]]> : tensor<2x2xf32>
  %y = mica.sigmoid_gate %x, %g : tensor<2x2xf32>, tensor<2x2xf32>
  return %y : tensor<2x2xf32>
}
