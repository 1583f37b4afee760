// RUN: mica-interpret %s --cache 2x4 | FileCheck %s
// CHECK: 2 of 2 functions checked, all as expected

!state = !mica.recurrent_state<2 x 2 x 2 x 2 x f32>

// One step of layer 1: two value heads share one query/key head.
func.func private @step(%q: tensor<?x1x2xf32>, %k: tensor<?x1x2xf32>, %v: tensor<?x2x2xf32>, %decay: tensor<?x2xf32>, %beta: tensor<?x2xf32>, %state: !state,
    %s: tensor<?xi32>, %p: tensor<?xi32>) -> (tensor<?x2x2xf32>, !state) {
  %layer = arith.constant 1 : index
  %y, %next = mica.linear_attention %q, %k, %v decay(%decay : tensor<?x2xf32>) beta(%beta : tensor<?x2xf32>), %state[%layer]
      at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x1x2xf32>, tensor<?x2x2xf32>, !state
  return %y, %next : tensor<?x2x2xf32>, !state
}

// S <- decay S (I - beta k k^T) + beta v k^T. The third row clears the first head's state and adds nothing to the second one's.
func.func @prefill(%state: !state) -> tensor<?x2x2xf32> attributes {mica.expect = [dense<[[[4.0, 0.0], [0.0, 6.0]], [[5.0, -2.0], [-2.0, 10.125]], [[2.0, -6.0], [-7.0, 32.625]], [[-2.5, -4.5], [2.0, -92.625]]]> : tensor<4x2x2xf32>]} {
  %q0c = arith.constant dense<[[[1.0, 2.0]], [[1.0, -1.0]], [[-1.0, -2.0]], [[-2.0, -2.0]]]> : tensor<4x1x2xf32>
  %q0 = tensor.cast %q0c : tensor<4x1x2xf32> to tensor<?x1x2xf32>
  %k0c = arith.constant dense<[[[2.0, 1.0]], [[1.0, 3.0]], [[0.0, 1.0]], [[2.0, 1.0]]]> : tensor<4x1x2xf32>
  %k0 = tensor.cast %k0c : tensor<4x1x2xf32> to tensor<?x1x2xf32>
  %v0c = arith.constant dense<[[[1.0, 0.0], [0.0, 3.0]], [[-2.0, 2.0], [1.0, -3.0]], [[-1.0, 3.0], [0.0, -3.0]], [[2.0, 2.0], [2.0, -2.0]]]> : tensor<4x2x2xf32>
  %v0 = tensor.cast %v0c : tensor<4x2x2xf32> to tensor<?x2x2xf32>
  %d0c = arith.constant dense<[[0.5, 1.0], [0.5, 0.25], [0.0, 1.0], [1.0, 0.5]]> : tensor<4x2xf32>
  %d0 = tensor.cast %d0c : tensor<4x2xf32> to tensor<?x2xf32>
  %b0c = arith.constant dense<[[1.0, 0.5], [0.5, 1.0], [1.0, 0.0], [0.25, 2.0]]> : tensor<4x2xf32>
  %b0 = tensor.cast %b0c : tensor<4x2xf32> to tensor<?x2xf32>
  %s0c = arith.constant dense<[0, 0, 0, 0]> : tensor<4xi32>
  %s0 = tensor.cast %s0c : tensor<4xi32> to tensor<?xi32>
  %p0c = arith.constant dense<[0, 1, 2, 3]> : tensor<4xi32>
  %p0 = tensor.cast %p0c : tensor<4xi32> to tensor<?xi32>
  %y0, %state0 = func.call @step(%q0, %k0, %v0, %d0, %b0, %state, %s0, %p0)
      : (tensor<?x1x2xf32>, tensor<?x1x2xf32>, tensor<?x2x2xf32>, tensor<?x2xf32>, tensor<?x2xf32>, !state, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x2x2xf32>, !state)
  return %y0 : tensor<?x2x2xf32>
}

// The state does not depend on how rows are split into steps.
func.func @cuts(%a: !state, %b: !state) -> (!state, !state) attributes {mica.expect_pairs, mica.tolerance = 0.0} {
  %q0c = arith.constant dense<[[[1.0, 2.0]], [[1.0, -1.0]], [[-1.0, -2.0]], [[-2.0, -2.0]]]> : tensor<4x1x2xf32>
  %q0 = tensor.cast %q0c : tensor<4x1x2xf32> to tensor<?x1x2xf32>
  %k0c = arith.constant dense<[[[2.0, 1.0]], [[1.0, 3.0]], [[0.0, 1.0]], [[2.0, 1.0]]]> : tensor<4x1x2xf32>
  %k0 = tensor.cast %k0c : tensor<4x1x2xf32> to tensor<?x1x2xf32>
  %v0c = arith.constant dense<[[[1.0, 0.0], [0.0, 3.0]], [[-2.0, 2.0], [1.0, -3.0]], [[-1.0, 3.0], [0.0, -3.0]], [[2.0, 2.0], [2.0, -2.0]]]> : tensor<4x2x2xf32>
  %v0 = tensor.cast %v0c : tensor<4x2x2xf32> to tensor<?x2x2xf32>
  %d0c = arith.constant dense<[[0.5, 1.0], [0.5, 0.25], [0.0, 1.0], [1.0, 0.5]]> : tensor<4x2xf32>
  %d0 = tensor.cast %d0c : tensor<4x2xf32> to tensor<?x2xf32>
  %b0c = arith.constant dense<[[1.0, 0.5], [0.5, 1.0], [1.0, 0.0], [0.25, 2.0]]> : tensor<4x2xf32>
  %b0 = tensor.cast %b0c : tensor<4x2xf32> to tensor<?x2xf32>
  %s0c = arith.constant dense<[0, 0, 0, 0]> : tensor<4xi32>
  %s0 = tensor.cast %s0c : tensor<4xi32> to tensor<?xi32>
  %p0c = arith.constant dense<[0, 1, 2, 3]> : tensor<4xi32>
  %p0 = tensor.cast %p0c : tensor<4xi32> to tensor<?xi32>
  %y0, %state0 = func.call @step(%q0, %k0, %v0, %d0, %b0, %a, %s0, %p0)
      : (tensor<?x1x2xf32>, tensor<?x1x2xf32>, tensor<?x2x2xf32>, tensor<?x2xf32>, tensor<?x2xf32>, !state, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x2x2xf32>, !state)
  %q1c = arith.constant dense<[[[1.0, 2.0]]]> : tensor<1x1x2xf32>
  %q1 = tensor.cast %q1c : tensor<1x1x2xf32> to tensor<?x1x2xf32>
  %k1c = arith.constant dense<[[[2.0, 1.0]]]> : tensor<1x1x2xf32>
  %k1 = tensor.cast %k1c : tensor<1x1x2xf32> to tensor<?x1x2xf32>
  %v1c = arith.constant dense<[[[1.0, 0.0], [0.0, 3.0]]]> : tensor<1x2x2xf32>
  %v1 = tensor.cast %v1c : tensor<1x2x2xf32> to tensor<?x2x2xf32>
  %d1c = arith.constant dense<[[0.5, 1.0]]> : tensor<1x2xf32>
  %d1 = tensor.cast %d1c : tensor<1x2xf32> to tensor<?x2xf32>
  %b1c = arith.constant dense<[[1.0, 0.5]]> : tensor<1x2xf32>
  %b1 = tensor.cast %b1c : tensor<1x2xf32> to tensor<?x2xf32>
  %s1c = arith.constant dense<[0]> : tensor<1xi32>
  %s1 = tensor.cast %s1c : tensor<1xi32> to tensor<?xi32>
  %p1c = arith.constant dense<[0]> : tensor<1xi32>
  %p1 = tensor.cast %p1c : tensor<1xi32> to tensor<?xi32>
  %y1, %state1 = func.call @step(%q1, %k1, %v1, %d1, %b1, %b, %s1, %p1)
      : (tensor<?x1x2xf32>, tensor<?x1x2xf32>, tensor<?x2x2xf32>, tensor<?x2xf32>, tensor<?x2xf32>, !state, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x2x2xf32>, !state)
  %q2c = arith.constant dense<[[[1.0, -1.0]], [[-1.0, -2.0]]]> : tensor<2x1x2xf32>
  %q2 = tensor.cast %q2c : tensor<2x1x2xf32> to tensor<?x1x2xf32>
  %k2c = arith.constant dense<[[[1.0, 3.0]], [[0.0, 1.0]]]> : tensor<2x1x2xf32>
  %k2 = tensor.cast %k2c : tensor<2x1x2xf32> to tensor<?x1x2xf32>
  %v2c = arith.constant dense<[[[-2.0, 2.0], [1.0, -3.0]], [[-1.0, 3.0], [0.0, -3.0]]]> : tensor<2x2x2xf32>
  %v2 = tensor.cast %v2c : tensor<2x2x2xf32> to tensor<?x2x2xf32>
  %d2c = arith.constant dense<[[0.5, 0.25], [0.0, 1.0]]> : tensor<2x2xf32>
  %d2 = tensor.cast %d2c : tensor<2x2xf32> to tensor<?x2xf32>
  %b2c = arith.constant dense<[[0.5, 1.0], [1.0, 0.0]]> : tensor<2x2xf32>
  %b2 = tensor.cast %b2c : tensor<2x2xf32> to tensor<?x2xf32>
  %s2c = arith.constant dense<[0, 0]> : tensor<2xi32>
  %s2 = tensor.cast %s2c : tensor<2xi32> to tensor<?xi32>
  %p2c = arith.constant dense<[1, 2]> : tensor<2xi32>
  %p2 = tensor.cast %p2c : tensor<2xi32> to tensor<?xi32>
  %y2, %state2 = func.call @step(%q2, %k2, %v2, %d2, %b2, %state1, %s2, %p2)
      : (tensor<?x1x2xf32>, tensor<?x1x2xf32>, tensor<?x2x2xf32>, tensor<?x2xf32>, tensor<?x2xf32>, !state, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x2x2xf32>, !state)
  %q3c = arith.constant dense<[[[-2.0, -2.0]]]> : tensor<1x1x2xf32>
  %q3 = tensor.cast %q3c : tensor<1x1x2xf32> to tensor<?x1x2xf32>
  %k3c = arith.constant dense<[[[2.0, 1.0]]]> : tensor<1x1x2xf32>
  %k3 = tensor.cast %k3c : tensor<1x1x2xf32> to tensor<?x1x2xf32>
  %v3c = arith.constant dense<[[[2.0, 2.0], [2.0, -2.0]]]> : tensor<1x2x2xf32>
  %v3 = tensor.cast %v3c : tensor<1x2x2xf32> to tensor<?x2x2xf32>
  %d3c = arith.constant dense<[[1.0, 0.5]]> : tensor<1x2xf32>
  %d3 = tensor.cast %d3c : tensor<1x2xf32> to tensor<?x2xf32>
  %b3c = arith.constant dense<[[0.25, 2.0]]> : tensor<1x2xf32>
  %b3 = tensor.cast %b3c : tensor<1x2xf32> to tensor<?x2xf32>
  %s3c = arith.constant dense<[0]> : tensor<1xi32>
  %s3 = tensor.cast %s3c : tensor<1xi32> to tensor<?xi32>
  %p3c = arith.constant dense<[3]> : tensor<1xi32>
  %p3 = tensor.cast %p3c : tensor<1xi32> to tensor<?xi32>
  %y3, %state3 = func.call @step(%q3, %k3, %v3, %d3, %b3, %state2, %s3, %p3)
      : (tensor<?x1x2xf32>, tensor<?x1x2xf32>, tensor<?x2x2xf32>, tensor<?x2xf32>, tensor<?x2xf32>, !state, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x2x2xf32>, !state)
  return %state0, %state3 : !state, !state
}
