// RUN: mica-interpret %s | FileCheck %s
// CHECK: 15 of 15 functions checked, all as expected

// Three tokens of one sequence, one head of two elements.
func.func private @operands() -> (tensor<3x1x2xf32>, tensor<1x3x1x2xf32>, tensor<1x3x1x2xf32>, tensor<3xi32>, tensor<3xi32>) {
  %q = arith.constant dense<[[[1.0, 0.0]], [[0.0, 1.0]], [[1.0, 1.0]]]> : tensor<3x1x2xf32>
  %k = arith.constant dense<[[[[1.0, 0.0]], [[0.0, 2.0]], [[1.0, -1.0]]]]> : tensor<1x3x1x2xf32>
  %v = arith.constant dense<[[[[1.0, 2.0]], [[3.0, 4.0]], [[5.0, 6.0]]]]> : tensor<1x3x1x2xf32>
  %s = arith.constant dense<0> : tensor<3xi32>
  %p = arith.constant dense<[0, 1, 2]> : tensor<3xi32>
  return %q, %k, %v, %s, %p : tensor<3x1x2xf32>, tensor<1x3x1x2xf32>, tensor<1x3x1x2xf32>, tensor<3xi32>, tensor<3xi32>
}

func.func @causal() -> tensor<3x1x2xf32> attributes {mica.expect = [dense<[[[1.0, 2.0]], [[2.46211716, 3.46211716]], [[2.75825568, 3.75825568]]]> : tensor<3x1x2xf32>]} {
  %q, %k, %v, %s, %p = func.call @operands() : () -> (tensor<3x1x2xf32>, tensor<1x3x1x2xf32>, tensor<1x3x1x2xf32>, tensor<3xi32>, tensor<3xi32>)
  %y = mica.attention %q, %k, %v at(%s, %p : tensor<3xi32>, tensor<3xi32>) causal scale(0.5)
      : tensor<3x1x2xf32>, tensor<1x3x1x2xf32>, tensor<1x3x1x2xf32> -> tensor<3x1x2xf32>
  return %y : tensor<3x1x2xf32>
}

func.func @full() -> tensor<3x1x2xf32> attributes {mica.expect = [dense<[[[3.0, 4.0]], [[2.81804097, 3.81804097]], [[2.75825568, 3.75825568]]]> : tensor<3x1x2xf32>]} {
  %q, %k, %v, %s, %p = func.call @operands() : () -> (tensor<3x1x2xf32>, tensor<1x3x1x2xf32>, tensor<1x3x1x2xf32>, tensor<3xi32>, tensor<3xi32>)
  %y = mica.attention %q, %k, %v at(%s, %p : tensor<3xi32>, tensor<3xi32>) full scale(0.5)
      : tensor<3x1x2xf32>, tensor<1x3x1x2xf32>, tensor<1x3x1x2xf32> -> tensor<3x1x2xf32>
  return %y : tensor<3x1x2xf32>
}

// The last two positions, including its own.
func.func @window() -> tensor<3x1x2xf32> attributes {mica.expect = [dense<[[[1.0, 2.0]], [[2.46211716, 3.46211716]], [[3.53788284, 4.53788284]]]> : tensor<3x1x2xf32>]} {
  %q, %k, %v, %s, %p = func.call @operands() : () -> (tensor<3x1x2xf32>, tensor<1x3x1x2xf32>, tensor<1x3x1x2xf32>, tensor<3xi32>, tensor<3xi32>)
  %y = mica.attention %q, %k, %v at(%s, %p : tensor<3xi32>, tensor<3xi32>) causal scale(0.5) window(2)
      : tensor<3x1x2xf32>, tensor<1x3x1x2xf32>, tensor<1x3x1x2xf32> -> tensor<3x1x2xf32>
  return %y : tensor<3x1x2xf32>
}

// Only its own position: the result is the value itself.
func.func @window_of_one() -> tensor<3x1x2xf32> attributes {mica.expect = [dense<[[[1.0, 2.0]], [[3.0, 4.0]], [[5.0, 6.0]]]> : tensor<3x1x2xf32>]} {
  %q, %k, %v, %s, %p = func.call @operands() : () -> (tensor<3x1x2xf32>, tensor<1x3x1x2xf32>, tensor<1x3x1x2xf32>, tensor<3xi32>, tensor<3xi32>)
  %y = mica.attention %q, %k, %v at(%s, %p : tensor<3xi32>, tensor<3xi32>) causal scale(0.5) window(1)
      : tensor<3x1x2xf32>, tensor<1x3x1x2xf32>, tensor<1x3x1x2xf32> -> tensor<3x1x2xf32>
  return %y : tensor<3x1x2xf32>
}

func.func @wide_window() -> tensor<3x1x2xf32> attributes {mica.expect = [dense<[[[1.0, 2.0]], [[2.46211716, 3.46211716]], [[2.75825568, 3.75825568]]]> : tensor<3x1x2xf32>]} {
  %q, %k, %v, %s, %p = func.call @operands() : () -> (tensor<3x1x2xf32>, tensor<1x3x1x2xf32>, tensor<1x3x1x2xf32>, tensor<3xi32>, tensor<3xi32>)
  %y = mica.attention %q, %k, %v at(%s, %p : tensor<3xi32>, tensor<3xi32>) causal scale(0.5) window(99)
      : tensor<3x1x2xf32>, tensor<1x3x1x2xf32>, tensor<1x3x1x2xf32> -> tensor<3x1x2xf32>
  return %y : tensor<3x1x2xf32>
}

// Scores become tanh(score).
func.func @softcap() -> tensor<3x1x2xf32> attributes {mica.expect = [dense<[[[1.0, 2.0]], [[2.36339948, 3.36339948]], [[2.75156841, 3.75156841]]]> : tensor<3x1x2xf32>]} {
  %q, %k, %v, %s, %p = func.call @operands() : () -> (tensor<3x1x2xf32>, tensor<1x3x1x2xf32>, tensor<1x3x1x2xf32>, tensor<3xi32>, tensor<3xi32>)
  %y = mica.attention %q, %k, %v at(%s, %p : tensor<3xi32>, tensor<3xi32>) causal scale(0.5) softcap(1.0)
      : tensor<3x1x2xf32>, tensor<1x3x1x2xf32>, tensor<1x3x1x2xf32> -> tensor<3x1x2xf32>
  return %y : tensor<3x1x2xf32>
}

// Key 1 is masked.
func.func @key_mask() -> tensor<3x1x2xf32> attributes {mica.expect = [dense<[[[1.0, 2.0]], [[1.0, 2.0]], [[2.51016268, 3.51016268]]]> : tensor<3x1x2xf32>]} {
  %q, %k, %v, %s, %p = func.call @operands() : () -> (tensor<3x1x2xf32>, tensor<1x3x1x2xf32>, tensor<1x3x1x2xf32>, tensor<3xi32>, tensor<3xi32>)
  %mask = arith.constant dense<[[true, false, true]]> : tensor<1x3xi1>
  %y = mica.attention %q, %k, %v at(%s, %p : tensor<3xi32>, tensor<3xi32>) key_mask(%mask : tensor<1x3xi1>) causal scale(0.5)
      : tensor<3x1x2xf32>, tensor<1x3x1x2xf32>, tensor<1x3x1x2xf32> -> tensor<3x1x2xf32>
  return %y : tensor<3x1x2xf32>
}

// The first token attends to nothing: the result is zero, not NaN.
func.func @all_keys_hidden() -> tensor<3x1x2xf32> attributes {mica.expect = [dense<[[[0.0, 0.0]], [[3.0, 4.0]], [[3.0, 4.0]]]> : tensor<3x1x2xf32>]} {
  %q, %k, %v, %s, %p = func.call @operands() : () -> (tensor<3x1x2xf32>, tensor<1x3x1x2xf32>, tensor<1x3x1x2xf32>, tensor<3xi32>, tensor<3xi32>)
  %mask = arith.constant dense<[[false, true, false]]> : tensor<1x3xi1>
  %y = mica.attention %q, %k, %v at(%s, %p : tensor<3xi32>, tensor<3xi32>) key_mask(%mask : tensor<1x3xi1>) causal scale(0.5)
      : tensor<3x1x2xf32>, tensor<1x3x1x2xf32>, tensor<1x3x1x2xf32> -> tensor<3x1x2xf32>
  return %y : tensor<3x1x2xf32>
}

// Scores far beyond the range of exp: the maximum is subtracted first.
func.func @large_scores() -> tensor<1x1x2xf32> attributes {mica.expect = [dense<[[[1.0, 2.0]]]> : tensor<1x1x2xf32>]} {
  %q = arith.constant dense<1000.0> : tensor<1x1x2xf32>
  %k = arith.constant dense<[[[[1.0, 1.0]], [[0.0, 0.0]]]]> : tensor<1x2x1x2xf32>
  %v = arith.constant dense<[[[[1.0, 2.0]], [[3.0, 4.0]]]]> : tensor<1x2x1x2xf32>
  %s = arith.constant dense<0> : tensor<1xi32>
  %p = arith.constant dense<1> : tensor<1xi32>
  %y = mica.attention %q, %k, %v at(%s, %p : tensor<1xi32>, tensor<1xi32>) causal scale(1.0)
      : tensor<1x1x2xf32>, tensor<1x2x1x2xf32>, tensor<1x2x1x2xf32> -> tensor<1x1x2xf32>
  return %y : tensor<1x1x2xf32>
}

// [h0, h1] by 4 => [h0, h0, h0, h0, h1, h1, h1, h1].
func.func @repeat_kv() -> tensor<1x1x8x1xf32> attributes {mica.expect = [dense<[[[[1.0], [1.0], [1.0], [1.0], [2.0], [2.0], [2.0], [2.0]]]]> : tensor<1x1x8x1xf32>]} {
  %x = arith.constant dense<[[[[1.0], [2.0]]]]> : tensor<1x1x2x1xf32>
  %y = mica.repeat_kv %x times 4 : tensor<1x1x2x1xf32> -> tensor<1x1x8x1xf32>
  return %y : tensor<1x1x8x1xf32>
}

// attention(q, repeat_kv(k), repeat_kv(v)) = attention(q, k, v).
func.func @repeated_heads_are_shared_heads() -> (tensor<1x4x1xf32>, tensor<1x4x1xf32>) attributes {mica.expect_pairs} {
  %q = arith.constant dense<[[[1.0], [2.0], [-1.0], [0.5]]]> : tensor<1x4x1xf32>
  %k = arith.constant dense<[[[[1.0], [2.0]], [[-1.0], [0.5]]]]> : tensor<1x2x2x1xf32>
  %v = arith.constant dense<[[[[3.0], [-2.0]], [[5.0], [7.0]]]]> : tensor<1x2x2x1xf32>
  %s = arith.constant dense<0> : tensor<1xi32>
  %p = arith.constant dense<1> : tensor<1xi32>
  %k2 = mica.repeat_kv %k times 2 : tensor<1x2x2x1xf32> -> tensor<1x2x4x1xf32>
  %v2 = mica.repeat_kv %v times 2 : tensor<1x2x2x1xf32> -> tensor<1x2x4x1xf32>
  %a = mica.attention %q, %k2, %v2 at(%s, %p : tensor<1xi32>, tensor<1xi32>) causal scale(1.0)
      : tensor<1x4x1xf32>, tensor<1x2x4x1xf32>, tensor<1x2x4x1xf32> -> tensor<1x4x1xf32>
  %b = mica.attention %q, %k, %v at(%s, %p : tensor<1xi32>, tensor<1xi32>) causal scale(1.0)
      : tensor<1x4x1xf32>, tensor<1x2x2x1xf32>, tensor<1x2x2x1xf32> -> tensor<1x4x1xf32>
  return %a, %b : tensor<1x4x1xf32>, tensor<1x4x1xf32>
}

// The shapes of B = 2, S = 4, H = 8, G = 2, D = 64: 8 rows of 8 heads over keys [2, 4, 2, 64].
func.func @shapes() -> tensor<8x512xf32> attributes {mica.expect = [dense<3.0> : tensor<8x512xf32>]} {
  %q = arith.constant dense<1.0> : tensor<8x8x64xf32>
  %k = arith.constant dense<2.0> : tensor<2x4x2x64xf32>
  %v = arith.constant dense<3.0> : tensor<2x4x2x64xf32>
  %s = arith.constant dense<[0, 0, 0, 0, 1, 1, 1, 1]> : tensor<8xi32>
  %p = arith.constant dense<[0, 1, 2, 3, 0, 1, 2, 3]> : tensor<8xi32>
  %y = mica.attention %q, %k, %v at(%s, %p : tensor<8xi32>, tensor<8xi32>) causal scale(0.125)
      : tensor<8x8x64xf32>, tensor<2x4x2x64xf32>, tensor<2x4x2x64xf32> -> tensor<8x8x64xf32>
  %z = mica.merge_heads %y : tensor<8x8x64xf32> to tensor<8x512xf32>
  return %z : tensor<8x512xf32>
}

// Zero scores minus half of the distance.
func.func @alibi() -> tensor<1x1x1xf32> attributes {mica.expect = [dense<[[[2.826637059]]]> : tensor<1x1x1xf32>]} {
  %q = arith.constant dense<0.0> : tensor<1x1x1xf32>
  %v = arith.constant dense<[[[[1.0]], [[2.0]], [[4.0]]]]> : tensor<1x3x1x1xf32>
  %s = arith.constant dense<0> : tensor<1xi32>
  %p = arith.constant dense<2> : tensor<1xi32>
  %y = mica.attention %q, %v, %v at(%s, %p : tensor<1xi32>, tensor<1xi32>) causal scale(1.0) alibi([0.5])
      : tensor<1x1x1xf32>, tensor<1x3x1x1xf32>, tensor<1x3x1x1xf32> -> tensor<1x1x1xf32>
  return %y : tensor<1x1x1xf32>
}

// Zero scores and a sink of 1.5, which has no value.
func.func @sinks() -> tensor<1x1x1xf32> attributes {mica.expect = [dense<[[[0.935617604]]]> : tensor<1x1x1xf32>]} {
  %q = arith.constant dense<0.0> : tensor<1x1x1xf32>
  %v = arith.constant dense<[[[[1.0]], [[2.0]], [[4.0]]]]> : tensor<1x3x1x1xf32>
  %s = arith.constant dense<0> : tensor<1xi32>
  %p = arith.constant dense<2> : tensor<1xi32>
  %t = arith.constant dense<1.5> : tensor<1xf32>
  %y = mica.attention %q, %v, %v at(%s, %p : tensor<1xi32>, tensor<1xi32>) sinks(%t : tensor<1xf32>) causal scale(1.0)
      : tensor<1x1x1xf32>, tensor<1x3x1x1xf32>, tensor<1x3x1x1xf32> -> tensor<1x1x1xf32>
  return %y : tensor<1x1x1xf32>
}

// An operand with one head is broadcast to all heads.
func.func @concat_heads() -> tensor<1x2x3xf32> attributes {mica.expect = [dense<[[[1.0, 2.0, 5.0], [3.0, 4.0, 5.0]]]> : tensor<1x2x3xf32>]} {
  %a = arith.constant dense<[[[1.0, 2.0], [3.0, 4.0]]]> : tensor<1x2x2xf32>
  %b = arith.constant dense<5.0> : tensor<1x1x1xf32>
  %y = mica.concat_heads %a, %b : tensor<1x2x2xf32>, tensor<1x1x1xf32> -> tensor<1x2x3xf32>
  return %y : tensor<1x2x3xf32>
}
