// RUN: %python %S/Inputs/make_npy.py %t 0.gate=5x4 0.up=5x4 0.down=4x5 1.gate=5x4 1.up=5x4 1.down=4x5 2.gate=5x4:nan 2.up=5x4:nan 2.down=4x5:nan
// RUN: mica-interpret %s --weights %t | FileCheck %s
// CHECK: 19 of 19 functions checked, all as expected

// Logits 0.5, -1, 2, 0.
func.func private @gate_operands() -> (tensor<1x1xf32>, tensor<4x1xf32>) {
  %x = arith.constant dense<1.0> : tensor<1x1xf32>
  %w = arith.constant dense<[[0.5], [-1.0], [2.0], [0.0]]> : tensor<4x1xf32>
  return %x, %w : tensor<1x1xf32>, tensor<4x1xf32>
}

func.func @softmax() -> (tensor<1x2xf32>, tensor<1x2xi32>) attributes {mica.expect = [dense<[[0.71009992, 0.15844471]]> : tensor<1x2xf32>, dense<[[2, 0]]> : tensor<1x2xi32>]} {
  %x, %w = func.call @gate_operands() : () -> (tensor<1x1xf32>, tensor<4x1xf32>)
  %weights, %experts = mica.moe_gate %x, %w softmax k(2) : tensor<1x1xf32>, tensor<4x1xf32> -> tensor<1x2xf32>, tensor<1x2xi32>
  return %weights, %experts : tensor<1x2xf32>, tensor<1x2xi32>
}

func.func @softmax_normalized() -> (tensor<1x2xf32>, tensor<1x2xi32>) attributes {mica.expect = [dense<[[0.81757448, 0.18242552]]> : tensor<1x2xf32>, dense<[[2, 0]]> : tensor<1x2xi32>]} {
  %x, %w = func.call @gate_operands() : () -> (tensor<1x1xf32>, tensor<4x1xf32>)
  %weights, %experts = mica.moe_gate %x, %w softmax k(2) normalize : tensor<1x1xf32>, tensor<4x1xf32> -> tensor<1x2xf32>, tensor<1x2xi32>
  return %weights, %experts : tensor<1x2xf32>, tensor<1x2xi32>
}

// 0.71009992 and 0.15844471, divided by their sum and a tenth.
func.func @softmax_normalized_with_eps() -> (tensor<1x2xf32>, tensor<1x2xi32>) attributes {mica.expect = [dense<[[0.73316180, 0.16359051]]> : tensor<1x2xf32>, dense<[[2, 0]]> : tensor<1x2xi32>]} {
  %x, %w = func.call @gate_operands() : () -> (tensor<1x1xf32>, tensor<4x1xf32>)
  %weights, %experts = mica.moe_gate %x, %w softmax k(2) normalize eps(0.1) : tensor<1x1xf32>, tensor<4x1xf32> -> tensor<1x2xf32>, tensor<1x2xi32>
  return %weights, %experts : tensor<1x2xf32>, tensor<1x2xi32>
}

// A factor for each expert, after normalization.
func.func @expert_scales() -> (tensor<1x2xf32>, tensor<1x2xi32>) attributes {mica.expect = [dense<[[3.27029793, 0.0912127584]]> : tensor<1x2xf32>, dense<[[2, 0]]> : tensor<1x2xi32>]} {
  %x, %w = func.call @gate_operands() : () -> (tensor<1x1xf32>, tensor<4x1xf32>)
  %s = arith.constant dense<[0.5, 7.0, 4.0, 9.0]> : tensor<4xf32>
  %weights, %experts = mica.moe_gate %x, %w expert_scales(%s : tensor<4xf32>) softmax k(2) normalize : tensor<1x1xf32>, tensor<4x1xf32> -> tensor<1x2xf32>, tensor<1x2xi32>
  return %weights, %experts : tensor<1x2xf32>, tensor<1x2xi32>
}

// With normalization, a single expert has weight 1 (MiniMind 3); without, its score (MiniMind 1 and 2).
func.func @one_expert() -> (tensor<1x1xf32>, tensor<1x1xf32>) attributes {mica.expect = [dense<1.0> : tensor<1x1xf32>, dense<0.71009992> : tensor<1x1xf32>]} {
  %x, %w = func.call @gate_operands() : () -> (tensor<1x1xf32>, tensor<4x1xf32>)
  %a, %e = mica.moe_gate %x, %w softmax k(1) normalize : tensor<1x1xf32>, tensor<4x1xf32> -> tensor<1x1xf32>, tensor<1x1xi32>
  %b, %f = mica.moe_gate %x, %w softmax k(1) : tensor<1x1xf32>, tensor<4x1xf32> -> tensor<1x1xf32>, tensor<1x1xi32>
  return %a, %b : tensor<1x1xf32>, tensor<1x1xf32>
}

func.func @sigmoid() -> (tensor<1x3xf32>, tensor<1x3xi32>) attributes {mica.expect = [dense<[[0.88079708, 0.62245933, 0.5]]> : tensor<1x3xf32>, dense<[[2, 0, 3]]> : tensor<1x3xi32>]} {
  %x, %w = func.call @gate_operands() : () -> (tensor<1x1xf32>, tensor<4x1xf32>)
  %weights, %experts = mica.moe_gate %x, %w sigmoid k(3) : tensor<1x1xf32>, tensor<4x1xf32> -> tensor<1x3xf32>, tensor<1x3xi32>
  return %weights, %experts : tensor<1x3xf32>, tensor<1x3xi32>
}

// Ties choose the lower index.
func.func @tie() -> (tensor<1x2xf32>, tensor<1x2xi32>) attributes {mica.expect = [dense<0.5> : tensor<1x2xf32>, dense<[[1, 3]]> : tensor<1x2xi32>]} {
  %x = arith.constant dense<1.0> : tensor<1x1xf32>
  %w = arith.constant dense<[[1.0], [3.0], [2.0], [3.0], [3.0]]> : tensor<5x1xf32>
  %weights, %experts = mica.moe_gate %x, %w softmax k(2) normalize : tensor<1x1xf32>, tensor<5x1xf32> -> tensor<1x2xf32>, tensor<1x2xi32>
  return %weights, %experts : tensor<1x2xf32>, tensor<1x2xi32>
}

mica.weight @gate from ["0.gate", "1.gate", "2.gate"] stack : tensor<3x5x4xf32>
mica.weight @up from ["0.up", "1.up", "2.up"] stack : tensor<3x5x4xf32>
mica.weight @down from ["0.down", "1.down", "2.down"] stack : tensor<3x4x5xf32>
mica.weight @gate_up from ["0.gate", "0.up", "1.gate", "1.up", "2.gate", "2.up"] stack parts(2) : tensor<3x128x4xf32>
mica.weight @"0.gate" : tensor<5x4xf32>
mica.weight @"0.up" : tensor<5x4xf32>
mica.weight @"0.down" : tensor<4x5xf32>
mica.weight @"1.gate" : tensor<5x4xf32>
mica.weight @"1.up" : tensor<5x4xf32>
mica.weight @"1.down" : tensor<4x5xf32>

// Two tokens; the first chooses experts 0 and 1, the second 1 and 0. Expert 2 is never chosen and contains NaN.
func.func private @operands() -> (tensor<2x4xf32>, tensor<2x2xf32>, tensor<2x2xi32>) {
  %x = arith.constant dense<[[0.5, -1.0, 0.25, 2.0], [1.0, 0.5, -0.75, 0.125]]> : tensor<2x4xf32>
  %weights = arith.constant dense<[[0.75, 0.25], [0.5, 0.125]]> : tensor<2x2xf32>
  %experts = arith.constant dense<[[0, 1], [1, 0]]> : tensor<2x2xi32>
  return %x, %weights, %experts : tensor<2x4xf32>, tensor<2x2xf32>, tensor<2x2xi32>
}

// Each expert is a separate feed-forward network.
func.func private @network(%x: tensor<2x4xf32>, %gate: tensor<5x4xf32>, %up: tensor<5x4xf32>, %down: tensor<4x5xf32>) -> tensor<2x4xf32> {
  %g = mica.linear %x, %gate : tensor<2x4xf32>, tensor<5x4xf32> -> tensor<2x5xf32>
  %u = mica.linear %x, %up : tensor<2x4xf32>, tensor<5x4xf32> -> tensor<2x5xf32>
  %s = mica.silu %g : tensor<2x5xf32>
  %h = mica.mul %s, %u : tensor<2x5xf32>
  %y = mica.linear %h, %down : tensor<2x5xf32>, tensor<4x5xf32> -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

func.func @experts_are_networks() -> (tensor<2x4xf32>, tensor<2x4xf32>) attributes {mica.expect_pairs} {
  %x, %weights, %experts = func.call @operands() : () -> (tensor<2x4xf32>, tensor<2x2xf32>, tensor<2x2xi32>)
  %gate = mica.get_weight @gate : tensor<3x5x4xf32>
  %up = mica.get_weight @up : tensor<3x5x4xf32>
  %down = mica.get_weight @down : tensor<3x4x5xf32>
  %y = mica.moe_experts %x, %weights, %experts, %gate, %down up(%up : tensor<3x5x4xf32>) silu inner(5)
      : tensor<2x4xf32>, tensor<2x2xf32>, tensor<2x2xi32>, tensor<3x5x4xf32>, tensor<3x4x5xf32> -> tensor<2x4xf32>
  %g0 = mica.get_weight @"0.gate" : tensor<5x4xf32>
  %u0 = mica.get_weight @"0.up" : tensor<5x4xf32>
  %d0 = mica.get_weight @"0.down" : tensor<4x5xf32>
  %g1 = mica.get_weight @"1.gate" : tensor<5x4xf32>
  %u1 = mica.get_weight @"1.up" : tensor<5x4xf32>
  %d1 = mica.get_weight @"1.down" : tensor<4x5xf32>
  %y0 = func.call @network(%x, %g0, %u0, %d0) : (tensor<2x4xf32>, tensor<5x4xf32>, tensor<5x4xf32>, tensor<4x5xf32>) -> tensor<2x4xf32>
  %y1 = func.call @network(%x, %g1, %u1, %d1) : (tensor<2x4xf32>, tensor<5x4xf32>, tensor<5x4xf32>, tensor<4x5xf32>) -> tensor<2x4xf32>
  %w0 = arith.constant dense<[[0.75, 0.75, 0.75, 0.75], [0.125, 0.125, 0.125, 0.125]]> : tensor<2x4xf32>
  %w1 = arith.constant dense<[[0.25, 0.25, 0.25, 0.25], [0.5, 0.5, 0.5, 0.5]]> : tensor<2x4xf32>
  %z0 = mica.mul %w0, %y0 : tensor<2x4xf32>
  %z1 = mica.mul %w1, %y1 : tensor<2x4xf32>
  %z = mica.add %z0, %z1 : tensor<2x4xf32>
  return %y, %z : tensor<2x4xf32>, tensor<2x4xf32>
}

// After fusion, gate and up are one weight in alternating blocks, and the residual is added.
func.func @fused_experts() -> (tensor<2x4xf32>, tensor<2x4xf32>) attributes {mica.expect_pairs} {
  %x, %weights, %experts = func.call @operands() : () -> (tensor<2x4xf32>, tensor<2x2xf32>, tensor<2x2xi32>)
  %gate = mica.get_weight @gate : tensor<3x5x4xf32>
  %up = mica.get_weight @up : tensor<3x5x4xf32>
  %down = mica.get_weight @down : tensor<3x4x5xf32>
  %gate_up = mica.get_weight @gate_up : tensor<3x128x4xf32>
  %y = mica.moe_experts %x, %weights, %experts, %gate, %down up(%up : tensor<3x5x4xf32>) gelu inner(5)
      : tensor<2x4xf32>, tensor<2x2xf32>, tensor<2x2xi32>, tensor<3x5x4xf32>, tensor<3x4x5xf32> -> tensor<2x4xf32>
  %sum = mica.add %y, %x : tensor<2x4xf32>
  %z = mica.moe_experts %x, %weights, %experts, %gate_up, %down residual(%x : tensor<2x4xf32>) gelu inner(5)
      : tensor<2x4xf32>, tensor<2x2xf32>, tensor<2x2xi32>, tensor<3x128x4xf32>, tensor<3x4x5xf32> -> tensor<2x4xf32>
  return %sum, %z : tensor<2x4xf32>, tensor<2x4xf32>
}

// If x is bf16, inner activations are rounded once, before the second matmul.
func.func @narrow_experts() -> (tensor<1x1xf32>, tensor<1x1xf32>) attributes {mica.expect_pairs, mica.tolerance = 0.0} {
  %x = arith.constant dense<1.0> : tensor<1x1xbf16>
  %weights = arith.constant dense<1.0> : tensor<1x1xf32>
  %experts = arith.constant dense<0> : tensor<1x1xi32>
  %one = arith.constant dense<1.0> : tensor<1x1x1xbf16>
  %upn = arith.constant dense<1.0078125> : tensor<1x1x1xbf16>
  %y = mica.moe_experts %x, %weights, %experts, %upn, %one up(%upn : tensor<1x1x1xbf16>) relu inner(1)
      : tensor<1x1xbf16>, tensor<1x1xf32>, tensor<1x1xi32>, tensor<1x1x1xbf16>, tensor<1x1x1xbf16> -> tensor<1x1xf32>
  %expected = arith.constant dense<1.015625> : tensor<1x1xf32>
  return %y, %expected : tensor<1x1xf32>, tensor<1x1xf32>
}

func.func @expert_that_does_not_exist() -> tensor<1x1xf32> attributes {mica.expect_error = "'mica.moe_experts' expert 1 is outside of [0, 1)"} {
  %x = arith.constant dense<1.0> : tensor<1x1xf32>
  %experts = arith.constant dense<1> : tensor<1x1xi32>
  %one = arith.constant dense<1.0> : tensor<1x1x1xf32>
  %y = mica.moe_experts %x, %x, %experts, %one, %one up(%one : tensor<1x1x1xf32>) relu inner(1)
      : tensor<1x1xf32>, tensor<1x1xf32>, tensor<1x1xi32>, tensor<1x1x1xf32>, tensor<1x1x1xf32> -> tensor<1x1xf32>
  return %y : tensor<1x1xf32>
}

// The two halves of the experts, with what happens to the inner activations in between.
func.func @halves() -> (tensor<2x4xf32>, tensor<2x4xf32>) attributes {mica.expect_pairs, mica.tolerance = 0.0} {
  %x, %weights, %experts = func.call @operands() : () -> (tensor<2x4xf32>, tensor<2x2xf32>, tensor<2x2xi32>)
  %gate = mica.get_weight @gate : tensor<3x5x4xf32>
  %up = mica.get_weight @up : tensor<3x5x4xf32>
  %down = mica.get_weight @down : tensor<3x4x5xf32>
  %b = mica.cast %x : tensor<2x4xf32> to tensor<2x4xbf16>
  %y = mica.moe_experts %b, %weights, %experts, %gate, %down up(%up : tensor<3x5x4xf32>)
      residual(%x : tensor<2x4xf32>) silu inner(5)
      : tensor<2x4xbf16>, tensor<2x2xf32>, tensor<2x2xi32>, tensor<3x5x4xf32>, tensor<3x4x5xf32> -> tensor<2x4xf32>
  %inner = mica.moe_gate_up %b, %experts, %gate up(%up : tensor<3x5x4xf32>) silu
      : tensor<2x4xbf16>, tensor<2x2xi32>, tensor<3x5x4xf32> -> tensor<2x2x5xf32>
  %h = mica.cast %inner : tensor<2x2x5xf32> to tensor<2x2x5xbf16>
  %z = mica.moe_down %h, %weights, %experts, %down residual(%x : tensor<2x4xf32>)
      : tensor<2x2x5xbf16>, tensor<2x2xf32>, tensor<2x2xi32>, tensor<3x4x5xf32> -> tensor<2x4xf32>
  return %y, %z : tensor<2x4xf32>, tensor<2x4xf32>
}

// After fusion: gate and up in one weight, and the first half rounds its result itself.
func.func @fused_halves() -> (tensor<2x4xf32>, tensor<2x4xf32>) attributes {mica.expect_pairs, mica.tolerance = 0.0} {
  %x, %weights, %experts = func.call @operands() : () -> (tensor<2x4xf32>, tensor<2x2xf32>, tensor<2x2xi32>)
  %gate = mica.get_weight @gate : tensor<3x5x4xf32>
  %up = mica.get_weight @up : tensor<3x5x4xf32>
  %down = mica.get_weight @down : tensor<3x4x5xf32>
  %gate_up = mica.get_weight @gate_up : tensor<3x128x4xf32>
  %b = mica.cast %x : tensor<2x4xf32> to tensor<2x4xbf16>
  %y = mica.moe_experts %b, %weights, %experts, %gate, %down up(%up : tensor<3x5x4xf32>) silu inner(5)
      : tensor<2x4xbf16>, tensor<2x2xf32>, tensor<2x2xi32>, tensor<3x5x4xf32>, tensor<3x4x5xf32> -> tensor<2x4xf32>
  %h = mica.moe_gate_up %b, %experts, %gate_up silu : tensor<2x4xbf16>, tensor<2x2xi32>, tensor<3x128x4xf32> -> tensor<2x2x5xbf16>
  %z = mica.moe_down %h, %weights, %experts, %down
      : tensor<2x2x5xbf16>, tensor<2x2xf32>, tensor<2x2xi32>, tensor<3x4x5xf32> -> tensor<2x4xf32>
  return %y, %z : tensor<2x4xf32>, tensor<2x4xf32>
}

// With g = 2 + 1 and u = 5 - 2 within the limit: 2 (0.5 g sigmoid(1.702 g) (u + 1) + 1).
func.func @halves_with_biases() -> tensor<1x1xf32> attributes {mica.expect = [dense<13.9277148> : tensor<1x1xf32>]} {
  %x = arith.constant dense<1.0> : tensor<1x1xf32>
  %weights = arith.constant dense<2.0> : tensor<1x1xf32>
  %experts = arith.constant dense<0> : tensor<1x1xi32>
  %gate = arith.constant dense<2.0> : tensor<1x1x1xf32>
  %up = arith.constant dense<5.0> : tensor<1x1x1xf32>
  %half = arith.constant dense<0.5> : tensor<1x1x1xf32>
  %one = arith.constant dense<1.0> : tensor<1x1xf32>
  %minus = arith.constant dense<-2.0> : tensor<1x1xf32>
  %inner = mica.moe_gate_up %x, %experts, %gate up(%up : tensor<1x1x1xf32>)
      biases(%one, %minus : tensor<1x1xf32>, tensor<1x1xf32>) silu clamped(alpha 1.702 limit 7.0) : tensor<1x1xf32>, tensor<1x1xi32>, tensor<1x1x1xf32> -> tensor<1x1x1xf32>
  %y = mica.moe_down %inner, %weights, %experts, %half bias(%one : tensor<1x1xf32>)
      : tensor<1x1x1xf32>, tensor<1x1xf32>, tensor<1x1xi32>, tensor<1x1x1xf32> -> tensor<1x1xf32>
  return %y : tensor<1x1xf32>
}

func.func @half_of_an_expert_that_does_not_exist() -> tensor<1x1x1xf32> attributes {mica.expect_error = "'mica.moe_gate_up' expert 1 is outside of [0, 1)"} {
  %x = arith.constant dense<1.0> : tensor<1x1xf32>
  %experts = arith.constant dense<1> : tensor<1x1xi32>
  %one = arith.constant dense<1.0> : tensor<1x1x1xf32>
  %y = mica.moe_gate_up %x, %experts, %one up(%one : tensor<1x1x1xf32>) relu
      : tensor<1x1xf32>, tensor<1x1xi32>, tensor<1x1x1xf32> -> tensor<1x1x1xf32>
  return %y : tensor<1x1x1xf32>
}

// The bias makes the router choose experts 1 and 3, whose weights are their scores without it.
func.func @correction() -> (tensor<1x2xf32>, tensor<1x2xi32>) attributes {mica.expect = [dense<[[0.622459331, 0.268941421]]> : tensor<1x2xf32>, dense<[[1, 3]]> : tensor<1x2xi32>]} {
  %x = arith.constant dense<1.0> : tensor<1x1xf32>
  %g = arith.constant dense<[[1.0], [0.5], [2.0], [-1.0]]> : tensor<4x1xf32>
  %c = arith.constant dense<[0.0, 5.0, 0.0, 4.0]> : tensor<4xf32>
  %w, %e = mica.moe_gate %x, %g e_score_correction_bias(%c : tensor<4xf32>) sigmoid k(2) : tensor<1x1xf32>, tensor<4x1xf32> -> tensor<1x2xf32>, tensor<1x2xi32>
  return %w, %e : tensor<1x2xf32>, tensor<1x2xi32>
}

// The best expert is in the group with the lower sum of its two best scores.
func.func @groups() -> (tensor<1x1xi32>, tensor<1x1xi32>) attributes {mica.expect = [dense<2> : tensor<1x1xi32>, dense<0> : tensor<1x1xi32>]} {
  %x = arith.constant dense<1.0> : tensor<1x1xf32>
  %g = arith.constant dense<[[2.0], [-9.0], [1.0], [0.9]]> : tensor<4x1xf32>
  %w, %e = mica.moe_gate %x, %g sigmoid k(1) groups(2 keep 1 by best_two) : tensor<1x1xf32>, tensor<4x1xf32> -> tensor<1x1xf32>, tensor<1x1xi32>
  %v, %f = mica.moe_gate %x, %g sigmoid k(1) groups(2 keep 1 by best) : tensor<1x1xf32>, tensor<4x1xf32> -> tensor<1x1xf32>, tensor<1x1xi32>
  return %e, %f : tensor<1x1xi32>, tensor<1x1xi32>
}

func.func @gate_bias() -> tensor<1x1xi32> attributes {mica.expect = [dense<1> : tensor<1x1xi32>]} {
  %x = arith.constant dense<1.0> : tensor<1x1xf32>
  %g = arith.constant dense<[[2.0], [1.0]]> : tensor<2x1xf32>
  %b = arith.constant dense<[0.0, 1.5]> : tensor<2xf32>
  %w, %e = mica.moe_gate %x, %g bias(%b : tensor<2xf32>) softmax k(1) : tensor<1x1xf32>, tensor<2x1xf32> -> tensor<1x1xf32>, tensor<1x1xi32>
  return %e : tensor<1x1xi32>
}

// Expert 0 is clamped, expert 1 is not; the second result has no limits.
func.func @biases_and_limits() -> (tensor<1x1xf32>, tensor<1x1xf32>) attributes {mica.expect = [dense<-3.92395524> : tensor<1x1xf32>, dense<-22.18026560> : tensor<1x1xf32>]} {
  %x = arith.constant dense<1.0> : tensor<1x1xf32>
  %weights = arith.constant dense<[[0.75, 0.25]]> : tensor<1x2xf32>
  %experts = arith.constant dense<[[0, 1]]> : tensor<1x2xi32>
  %gate = arith.constant dense<[[[2.0]], [[-1.0]]]> : tensor<2x1x1xf32>
  %up = arith.constant dense<[[[-4.0]], [[0.5]]]> : tensor<2x1x1xf32>
  %down = arith.constant dense<[[[3.0]], [[-1.0]]]> : tensor<2x1x1xf32>
  %gate_bias = arith.constant dense<[[1.0], [0.5]]> : tensor<2x1xf32>
  %up_bias = arith.constant dense<[[0.5], [-0.25]]> : tensor<2x1xf32>
  %down_bias = arith.constant dense<[[0.25], [0.5]]> : tensor<2x1xf32>
  %y = mica.moe_experts %x, %weights, %experts, %gate, %down up(%up : tensor<2x1x1xf32>)
      biases(%gate_bias, %up_bias, %down_bias : tensor<2x1xf32>, tensor<2x1xf32>, tensor<2x1xf32>)
      silu clamped(alpha 1.5 limit 2.0) inner(1)
      : tensor<1x1xf32>, tensor<1x2xf32>, tensor<1x2xi32>, tensor<2x1x1xf32>, tensor<2x1x1xf32> -> tensor<1x1xf32>
  %z = mica.moe_experts %x, %weights, %experts, %gate, %down up(%up : tensor<2x1x1xf32>)
      biases(%gate_bias, %up_bias, %down_bias : tensor<2x1xf32>, tensor<2x1xf32>, tensor<2x1xf32>) silu inner(1)
      : tensor<1x1xf32>, tensor<1x2xf32>, tensor<1x2xi32>, tensor<2x1x1xf32>, tensor<2x1x1xf32> -> tensor<1x1xf32>
  return %y, %z : tensor<1x1xf32>, tensor<1x1xf32>
}
