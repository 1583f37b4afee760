// RUN: mica-interpret %s --cache 2x4 | FileCheck %s
// CHECK: 5 of 5 functions checked, all as expected

!state = !mica.rolling_state<2 x 2 x f32 window(3)>

// One step of layer 1: the rows of `x` at positions `p` of sequences `s`.
func.func private @step(%x: tensor<?x2xf32>, %state: !state, %s: tensor<?xi32>, %p: tensor<?xi32>) -> (tensor<?x2xf32>, !state) {
  %layer = arith.constant 1 : index
  %weight = arith.constant dense<[[1.0, 10.0, 100.0], [1.0, 0.0, -1.0]]> : tensor<2x3xf32>
  %bias = arith.constant dense<[0.5, 0.0]> : tensor<2xf32>
  %y, %next = mica.causal_conv1d %x, %weight, %state[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>)
      bias(%bias : tensor<2xf32>) : tensor<?x2xf32>, tensor<2x3xf32>, !state
  return %y, %next : tensor<?x2xf32>, !state
}

// Positions before 0 are zero; the last tap of every filter is that of the row itself.
func.func @prefill(%state: !state) -> tensor<?x2xf32> attributes {mica.expect = [dense<[[100.5, -2.0], [310.5, -4.0], [531.5, -4.0]]> : tensor<3x2xf32>]} {
  %xs0 = arith.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>
  %ss0 = arith.constant dense<[0, 0, 0]> : tensor<3xi32>
  %ps0 = arith.constant dense<[0, 1, 2]> : tensor<3xi32>
  %x0 = tensor.cast %xs0 : tensor<3x2xf32> to tensor<?x2xf32>
  %s0 = tensor.cast %ss0 : tensor<3xi32> to tensor<?xi32>
  %p0 = tensor.cast %ps0 : tensor<3xi32> to tensor<?xi32>
  %y0, %state0 = func.call @step(%x0, %state, %s0, %p0) : (tensor<?x2xf32>, !state, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x2xf32>, !state)
  return %y0 : tensor<?x2xf32>
}

// Results and state do not depend on how rows are split into steps.
func.func @cuts(%a: !state, %b: !state) -> (tensor<?x2xf32>, tensor<?x2xf32>, !state, !state) attributes {mica.expect_pairs, mica.tolerance = 0.0} {
  %xs0 = arith.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]> : tensor<4x2xf32>
  %ss0 = arith.constant dense<[0, 0, 0, 0]> : tensor<4xi32>
  %ps0 = arith.constant dense<[0, 1, 2, 3]> : tensor<4xi32>
  %x0 = tensor.cast %xs0 : tensor<4x2xf32> to tensor<?x2xf32>
  %s0 = tensor.cast %ss0 : tensor<4xi32> to tensor<?xi32>
  %p0 = tensor.cast %ps0 : tensor<4xi32> to tensor<?xi32>
  %y0, %state0 = func.call @step(%x0, %a, %s0, %p0) : (tensor<?x2xf32>, !state, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x2xf32>, !state)
  %xs1 = arith.constant dense<[[1.0, 2.0]]> : tensor<1x2xf32>
  %ss1 = arith.constant dense<[0]> : tensor<1xi32>
  %ps1 = arith.constant dense<[0]> : tensor<1xi32>
  %x1 = tensor.cast %xs1 : tensor<1x2xf32> to tensor<?x2xf32>
  %s1 = tensor.cast %ss1 : tensor<1xi32> to tensor<?xi32>
  %p1 = tensor.cast %ps1 : tensor<1xi32> to tensor<?xi32>
  %y1, %state1 = func.call @step(%x1, %b, %s1, %p1) : (tensor<?x2xf32>, !state, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x2xf32>, !state)
  %xs2 = arith.constant dense<[[3.0, 4.0], [5.0, 6.0]]> : tensor<2x2xf32>
  %ss2 = arith.constant dense<[0, 0]> : tensor<2xi32>
  %ps2 = arith.constant dense<[1, 2]> : tensor<2xi32>
  %x2 = tensor.cast %xs2 : tensor<2x2xf32> to tensor<?x2xf32>
  %s2 = tensor.cast %ss2 : tensor<2xi32> to tensor<?xi32>
  %p2 = tensor.cast %ps2 : tensor<2xi32> to tensor<?xi32>
  %y2, %state2 = func.call @step(%x2, %state1, %s2, %p2) : (tensor<?x2xf32>, !state, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x2xf32>, !state)
  %xs3 = arith.constant dense<[[7.0, 8.0]]> : tensor<1x2xf32>
  %ss3 = arith.constant dense<[0]> : tensor<1xi32>
  %ps3 = arith.constant dense<[3]> : tensor<1xi32>
  %x3 = tensor.cast %xs3 : tensor<1x2xf32> to tensor<?x2xf32>
  %s3 = tensor.cast %ss3 : tensor<1xi32> to tensor<?xi32>
  %p3 = tensor.cast %ps3 : tensor<1xi32> to tensor<?xi32>
  %y3, %state3 = func.call @step(%x3, %state2, %s3, %p3) : (tensor<?x2xf32>, !state, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x2xf32>, !state)
  %last = arith.constant dense<[3]> : tensor<1xi32>
  %all = mica.select_rows %y0, %last : tensor<?x2xf32>, tensor<1xi32> -> tensor<1x2xf32>
  %row = tensor.cast %all : tensor<1x2xf32> to tensor<?x2xf32>
  return %row, %y3, %state0, %state3 : tensor<?x2xf32>, tensor<?x2xf32>, !state, !state
}

// Sequences in one step are independent.
func.func @sequences(%state: !state) -> tensor<?x2xf32> attributes {mica.expect = [dense<[[100.5, -2.0], [500.5, -6.0], [310.5, -4.0], [750.5, -8.0]]> : tensor<4x2xf32>]} {
  %xs0 = arith.constant dense<[[1.0, 2.0], [5.0, 6.0], [3.0, 4.0], [7.0, 8.0]]> : tensor<4x2xf32>
  %ss0 = arith.constant dense<[0, 1, 0, 1]> : tensor<4xi32>
  %ps0 = arith.constant dense<[0, 0, 1, 1]> : tensor<4xi32>
  %x0 = tensor.cast %xs0 : tensor<4x2xf32> to tensor<?x2xf32>
  %s0 = tensor.cast %ss0 : tensor<4xi32> to tensor<?xi32>
  %p0 = tensor.cast %ps0 : tensor<4xi32> to tensor<?xi32>
  %y0, %state0 = func.call @step(%x0, %state, %s0, %p0) : (tensor<?x2xf32>, !state, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x2xf32>, !state)
  return %y0 : tensor<?x2xf32>
}

// A truncated row is recomputed as if it had never existed.
func.func @taken_back(%state: !state) -> tensor<?x2xf32> attributes {mica.expect = [dense<[[531.5, -4.0]]> : tensor<1x2xf32>]} {
  %xs0 = arith.constant dense<[[1.0, 2.0], [3.0, 4.0], [7.0, 8.0]]> : tensor<3x2xf32>
  %ss0 = arith.constant dense<[0, 0, 0]> : tensor<3xi32>
  %ps0 = arith.constant dense<[0, 1, 2]> : tensor<3xi32>
  %x0 = tensor.cast %xs0 : tensor<3x2xf32> to tensor<?x2xf32>
  %s0 = tensor.cast %ss0 : tensor<3xi32> to tensor<?xi32>
  %p0 = tensor.cast %ps0 : tensor<3xi32> to tensor<?xi32>
  %y0, %state0 = func.call @step(%x0, %state, %s0, %p0) : (tensor<?x2xf32>, !state, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x2xf32>, !state)
  %xs1 = arith.constant dense<[[5.0, 6.0]]> : tensor<1x2xf32>
  %ss1 = arith.constant dense<[0]> : tensor<1xi32>
  %ps1 = arith.constant dense<[2]> : tensor<1xi32>
  %x1 = tensor.cast %xs1 : tensor<1x2xf32> to tensor<?x2xf32>
  %s1 = tensor.cast %ss1 : tensor<1xi32> to tensor<?xi32>
  %p1 = tensor.cast %ps1 : tensor<1xi32> to tensor<?xi32>
  %y1, %state1 = func.call @step(%x1, %state0, %s1, %p1) : (tensor<?x2xf32>, !state, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x2xf32>, !state)
  return %y1 : tensor<?x2xf32>
}

func.func @gap(%state: !state) -> tensor<?x2xf32> attributes {mica.expect_error = "'mica.causal_conv1d' reads position 1 of sequence 1, which was never written"} {
  %xs0 = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %ss0 = arith.constant dense<[1, 1]> : tensor<2xi32>
  %ps0 = arith.constant dense<[0, 2]> : tensor<2xi32>
  %x0 = tensor.cast %xs0 : tensor<2x2xf32> to tensor<?x2xf32>
  %s0 = tensor.cast %ss0 : tensor<2xi32> to tensor<?xi32>
  %p0 = tensor.cast %ps0 : tensor<2xi32> to tensor<?xi32>
  %y0, %state0 = func.call @step(%x0, %state, %s0, %p0) : (tensor<?x2xf32>, !state, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x2xf32>, !state)
  return %y0 : tensor<?x2xf32>
}
