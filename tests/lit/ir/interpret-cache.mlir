// RUN: mica-interpret %s --cache 3x8 | FileCheck %s
// CHECK: 11 of 11 functions checked, all as expected

// One step of one layer: rope, append, attention over the cached positions. Two query heads share one key/value head.
func.func private @step(%x: tensor<?x4xf32>, %k: !mica.kv_cache<2 x 1 x 2 x f32>, %v: !mica.kv_cache<2 x 1 x 2 x f32>, %s: tensor<?xi32>, %p: tensor<?xi32>)
    -> (tensor<?x4xf32>, !mica.kv_cache<2 x 1 x 2 x f32>, !mica.kv_cache<2 x 1 x 2 x f32>) {
  %layer = arith.constant 1 : index
  %wk = arith.constant dense<[[0.5, -1.0, 0.25, 2.0], [1.0, 0.5, -0.75, 0.125]]> : tensor<2x4xf32>
  %wv = arith.constant dense<[[-0.5, 1.0, 1.25, 0.5], [2.0, -0.5, 0.75, 1.125]]> : tensor<2x4xf32>
  %qh = mica.split_heads %x : tensor<?x4xf32> to tensor<?x2x2xf32>
  %kr = mica.linear %x, %wk : tensor<?x4xf32>, tensor<2x4xf32> -> tensor<?x2xf32>
  %vr = mica.linear %x, %wv : tensor<?x4xf32>, tensor<2x4xf32> -> tensor<?x2xf32>
  %kh = mica.split_heads %kr : tensor<?x2xf32> to tensor<?x1x2xf32>
  %vh = mica.split_heads %vr : tensor<?x2xf32> to tensor<?x1x2xf32>
  %qt = mica.rope %qh, %p half theta(1.0e+04) : tensor<?x2x2xf32>, tensor<?xi32>
  %kt = mica.rope %kh, %p half theta(1.0e+04) : tensor<?x1x2xf32>, tensor<?xi32>
  %k1 = mica.kv_append %kt, %k[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x1x2xf32>, !mica.kv_cache<2 x 1 x 2 x f32>
  %v1 = mica.kv_append %vh, %v[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x1x2xf32>, !mica.kv_cache<2 x 1 x 2 x f32>
  %keys = mica.kv_read %k1[%layer] : !mica.kv_cache<2 x 1 x 2 x f32> -> tensor<?x?x1x2xf32>
  %values = mica.kv_read %v1[%layer] : !mica.kv_cache<2 x 1 x 2 x f32> -> tensor<?x?x1x2xf32>
  %a = mica.attention %qt, %keys, %values at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.70710678)
      : tensor<?x2x2xf32>, tensor<?x?x1x2xf32>, tensor<?x?x1x2xf32> -> tensor<?x2x2xf32>
  %y = mica.merge_heads %a : tensor<?x2x2xf32> to tensor<?x4xf32>
  return %y, %k1, %v1 : tensor<?x4xf32>, !mica.kv_cache<2 x 1 x 2 x f32>, !mica.kv_cache<2 x 1 x 2 x f32>
}

func.func private @inputs() -> tensor<?x4xf32> {
  %x = arith.constant dense<[[0.1, 0.2, 0.3, 0.4], [1.0, -1.0, 0.5, 0.0], [-0.3, 0.8, 0.2, -0.6], [0.7, 0.7, -0.9, 0.1]]> : tensor<4x4xf32>
  %y = tensor.cast %x : tensor<4x4xf32> to tensor<?x4xf32>
  return %y : tensor<?x4xf32>
}

// The rows [first, first + count) of the inputs as tokens of sequence 0 at positions first, ...
func.func private @prefill(%first: tensor<?xi32>, %zeros: tensor<?xi32>, %k: !mica.kv_cache<2 x 1 x 2 x f32>, %v: !mica.kv_cache<2 x 1 x 2 x f32>)
    -> (tensor<?x4xf32>, !mica.kv_cache<2 x 1 x 2 x f32>, !mica.kv_cache<2 x 1 x 2 x f32>) {
  %x = func.call @inputs() : () -> tensor<?x4xf32>
  %rows = mica.select_rows %x, %first : tensor<?x4xf32>, tensor<?xi32> -> tensor<?x4xf32>
  %y, %k1, %v1 = func.call @step(%rows, %k, %v, %zeros, %first) : (tensor<?x4xf32>, !mica.kv_cache<2 x 1 x 2 x f32>, !mica.kv_cache<2 x 1 x 2 x f32>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<?x4xf32>, !mica.kv_cache<2 x 1 x 2 x f32>, !mica.kv_cache<2 x 1 x 2 x f32>)
  return %y, %k1, %v1 : tensor<?x4xf32>, !mica.kv_cache<2 x 1 x 2 x f32>, !mica.kv_cache<2 x 1 x 2 x f32>
}

// A prefill of all tokens equals a prefill of some followed by single steps, in outputs and caches.
func.func @prefill_1_then_steps(%k: !mica.kv_cache<2 x 1 x 2 x f32>, %v: !mica.kv_cache<2 x 1 x 2 x f32>, %kk: !mica.kv_cache<2 x 1 x 2 x f32>, %vv: !mica.kv_cache<2 x 1 x 2 x f32>)
    -> (tensor<?x4xf32>, tensor<?x4xf32>, !mica.kv_cache<2 x 1 x 2 x f32>, !mica.kv_cache<2 x 1 x 2 x f32>, !mica.kv_cache<2 x 1 x 2 x f32>, !mica.kv_cache<2 x 1 x 2 x f32>) attributes {mica.expect_pairs, mica.tolerance = 0.0} {
  %pa = arith.constant dense<[0, 1, 2, 3]> : tensor<4xi32>
  %za = arith.constant dense<0> : tensor<4xi32>
  %pda = tensor.cast %pa : tensor<4xi32> to tensor<?xi32>
  %zda = tensor.cast %za : tensor<4xi32> to tensor<?xi32>
  %all, %ka, %va = func.call @prefill(%pda, %zda, %k, %v) : (tensor<?xi32>, tensor<?xi32>, !mica.kv_cache<2 x 1 x 2 x f32>, !mica.kv_cache<2 x 1 x 2 x f32>) -> (tensor<?x4xf32>, !mica.kv_cache<2 x 1 x 2 x f32>, !mica.kv_cache<2 x 1 x 2 x f32>)
  %p0 = arith.constant dense<[0]> : tensor<1xi32>
  %z0 = arith.constant dense<0> : tensor<1xi32>
  %pd0 = tensor.cast %p0 : tensor<1xi32> to tensor<?xi32>
  %zd0 = tensor.cast %z0 : tensor<1xi32> to tensor<?xi32>
  %y0, %k0, %v0 = func.call @prefill(%pd0, %zd0, %kk, %vv) : (tensor<?xi32>, tensor<?xi32>, !mica.kv_cache<2 x 1 x 2 x f32>, !mica.kv_cache<2 x 1 x 2 x f32>) -> (tensor<?x4xf32>, !mica.kv_cache<2 x 1 x 2 x f32>, !mica.kv_cache<2 x 1 x 2 x f32>)
  %p1 = arith.constant dense<[1]> : tensor<1xi32>
  %z1 = arith.constant dense<0> : tensor<1xi32>
  %pd1 = tensor.cast %p1 : tensor<1xi32> to tensor<?xi32>
  %zd1 = tensor.cast %z1 : tensor<1xi32> to tensor<?xi32>
  %y1, %k1, %v1 = func.call @prefill(%pd1, %zd1, %k0, %v0) : (tensor<?xi32>, tensor<?xi32>, !mica.kv_cache<2 x 1 x 2 x f32>, !mica.kv_cache<2 x 1 x 2 x f32>) -> (tensor<?x4xf32>, !mica.kv_cache<2 x 1 x 2 x f32>, !mica.kv_cache<2 x 1 x 2 x f32>)
  %p2 = arith.constant dense<[2]> : tensor<1xi32>
  %z2 = arith.constant dense<0> : tensor<1xi32>
  %pd2 = tensor.cast %p2 : tensor<1xi32> to tensor<?xi32>
  %zd2 = tensor.cast %z2 : tensor<1xi32> to tensor<?xi32>
  %y2, %k2, %v2 = func.call @prefill(%pd2, %zd2, %k1, %v1) : (tensor<?xi32>, tensor<?xi32>, !mica.kv_cache<2 x 1 x 2 x f32>, !mica.kv_cache<2 x 1 x 2 x f32>) -> (tensor<?x4xf32>, !mica.kv_cache<2 x 1 x 2 x f32>, !mica.kv_cache<2 x 1 x 2 x f32>)
  %p3 = arith.constant dense<[3]> : tensor<1xi32>
  %z3 = arith.constant dense<0> : tensor<1xi32>
  %pd3 = tensor.cast %p3 : tensor<1xi32> to tensor<?xi32>
  %zd3 = tensor.cast %z3 : tensor<1xi32> to tensor<?xi32>
  %y3, %k3, %v3 = func.call @prefill(%pd3, %zd3, %k2, %v2) : (tensor<?xi32>, tensor<?xi32>, !mica.kv_cache<2 x 1 x 2 x f32>, !mica.kv_cache<2 x 1 x 2 x f32>) -> (tensor<?x4xf32>, !mica.kv_cache<2 x 1 x 2 x f32>, !mica.kv_cache<2 x 1 x 2 x f32>)
  %last = arith.constant dense<[3]> : tensor<1xi32>
  %rows = tensor.cast %last : tensor<1xi32> to tensor<?xi32>
  %expected = mica.select_rows %all, %rows : tensor<?x4xf32>, tensor<?xi32> -> tensor<?x4xf32>
  return %y3, %expected, %ka, %k3, %va, %v3 : tensor<?x4xf32>, tensor<?x4xf32>, !mica.kv_cache<2 x 1 x 2 x f32>, !mica.kv_cache<2 x 1 x 2 x f32>, !mica.kv_cache<2 x 1 x 2 x f32>, !mica.kv_cache<2 x 1 x 2 x f32>
}

func.func @prefill_2_then_steps(%k: !mica.kv_cache<2 x 1 x 2 x f32>, %v: !mica.kv_cache<2 x 1 x 2 x f32>, %kk: !mica.kv_cache<2 x 1 x 2 x f32>, %vv: !mica.kv_cache<2 x 1 x 2 x f32>)
    -> (tensor<?x4xf32>, tensor<?x4xf32>, !mica.kv_cache<2 x 1 x 2 x f32>, !mica.kv_cache<2 x 1 x 2 x f32>, !mica.kv_cache<2 x 1 x 2 x f32>, !mica.kv_cache<2 x 1 x 2 x f32>) attributes {mica.expect_pairs, mica.tolerance = 0.0} {
  %pa = arith.constant dense<[0, 1, 2, 3]> : tensor<4xi32>
  %za = arith.constant dense<0> : tensor<4xi32>
  %pda = tensor.cast %pa : tensor<4xi32> to tensor<?xi32>
  %zda = tensor.cast %za : tensor<4xi32> to tensor<?xi32>
  %all, %ka, %va = func.call @prefill(%pda, %zda, %k, %v) : (tensor<?xi32>, tensor<?xi32>, !mica.kv_cache<2 x 1 x 2 x f32>, !mica.kv_cache<2 x 1 x 2 x f32>) -> (tensor<?x4xf32>, !mica.kv_cache<2 x 1 x 2 x f32>, !mica.kv_cache<2 x 1 x 2 x f32>)
  %p0 = arith.constant dense<[0, 1]> : tensor<2xi32>
  %z0 = arith.constant dense<0> : tensor<2xi32>
  %pd0 = tensor.cast %p0 : tensor<2xi32> to tensor<?xi32>
  %zd0 = tensor.cast %z0 : tensor<2xi32> to tensor<?xi32>
  %y0, %k0, %v0 = func.call @prefill(%pd0, %zd0, %kk, %vv) : (tensor<?xi32>, tensor<?xi32>, !mica.kv_cache<2 x 1 x 2 x f32>, !mica.kv_cache<2 x 1 x 2 x f32>) -> (tensor<?x4xf32>, !mica.kv_cache<2 x 1 x 2 x f32>, !mica.kv_cache<2 x 1 x 2 x f32>)
  %p1 = arith.constant dense<[2]> : tensor<1xi32>
  %z1 = arith.constant dense<0> : tensor<1xi32>
  %pd1 = tensor.cast %p1 : tensor<1xi32> to tensor<?xi32>
  %zd1 = tensor.cast %z1 : tensor<1xi32> to tensor<?xi32>
  %y1, %k1, %v1 = func.call @prefill(%pd1, %zd1, %k0, %v0) : (tensor<?xi32>, tensor<?xi32>, !mica.kv_cache<2 x 1 x 2 x f32>, !mica.kv_cache<2 x 1 x 2 x f32>) -> (tensor<?x4xf32>, !mica.kv_cache<2 x 1 x 2 x f32>, !mica.kv_cache<2 x 1 x 2 x f32>)
  %p2 = arith.constant dense<[3]> : tensor<1xi32>
  %z2 = arith.constant dense<0> : tensor<1xi32>
  %pd2 = tensor.cast %p2 : tensor<1xi32> to tensor<?xi32>
  %zd2 = tensor.cast %z2 : tensor<1xi32> to tensor<?xi32>
  %y2, %k2, %v2 = func.call @prefill(%pd2, %zd2, %k1, %v1) : (tensor<?xi32>, tensor<?xi32>, !mica.kv_cache<2 x 1 x 2 x f32>, !mica.kv_cache<2 x 1 x 2 x f32>) -> (tensor<?x4xf32>, !mica.kv_cache<2 x 1 x 2 x f32>, !mica.kv_cache<2 x 1 x 2 x f32>)
  %last = arith.constant dense<[3]> : tensor<1xi32>
  %rows = tensor.cast %last : tensor<1xi32> to tensor<?xi32>
  %expected = mica.select_rows %all, %rows : tensor<?x4xf32>, tensor<?xi32> -> tensor<?x4xf32>
  return %y2, %expected, %ka, %k2, %va, %v2 : tensor<?x4xf32>, tensor<?x4xf32>, !mica.kv_cache<2 x 1 x 2 x f32>, !mica.kv_cache<2 x 1 x 2 x f32>, !mica.kv_cache<2 x 1 x 2 x f32>, !mica.kv_cache<2 x 1 x 2 x f32>
}

func.func @prefill_3_then_a_step(%k: !mica.kv_cache<2 x 1 x 2 x f32>, %v: !mica.kv_cache<2 x 1 x 2 x f32>, %kk: !mica.kv_cache<2 x 1 x 2 x f32>, %vv: !mica.kv_cache<2 x 1 x 2 x f32>)
    -> (tensor<?x4xf32>, tensor<?x4xf32>, !mica.kv_cache<2 x 1 x 2 x f32>, !mica.kv_cache<2 x 1 x 2 x f32>, !mica.kv_cache<2 x 1 x 2 x f32>, !mica.kv_cache<2 x 1 x 2 x f32>) attributes {mica.expect_pairs, mica.tolerance = 0.0} {
  %pa = arith.constant dense<[0, 1, 2, 3]> : tensor<4xi32>
  %za = arith.constant dense<0> : tensor<4xi32>
  %pda = tensor.cast %pa : tensor<4xi32> to tensor<?xi32>
  %zda = tensor.cast %za : tensor<4xi32> to tensor<?xi32>
  %all, %ka, %va = func.call @prefill(%pda, %zda, %k, %v) : (tensor<?xi32>, tensor<?xi32>, !mica.kv_cache<2 x 1 x 2 x f32>, !mica.kv_cache<2 x 1 x 2 x f32>) -> (tensor<?x4xf32>, !mica.kv_cache<2 x 1 x 2 x f32>, !mica.kv_cache<2 x 1 x 2 x f32>)
  %p0 = arith.constant dense<[0, 1, 2]> : tensor<3xi32>
  %z0 = arith.constant dense<0> : tensor<3xi32>
  %pd0 = tensor.cast %p0 : tensor<3xi32> to tensor<?xi32>
  %zd0 = tensor.cast %z0 : tensor<3xi32> to tensor<?xi32>
  %y0, %k0, %v0 = func.call @prefill(%pd0, %zd0, %kk, %vv) : (tensor<?xi32>, tensor<?xi32>, !mica.kv_cache<2 x 1 x 2 x f32>, !mica.kv_cache<2 x 1 x 2 x f32>) -> (tensor<?x4xf32>, !mica.kv_cache<2 x 1 x 2 x f32>, !mica.kv_cache<2 x 1 x 2 x f32>)
  %p1 = arith.constant dense<[3]> : tensor<1xi32>
  %z1 = arith.constant dense<0> : tensor<1xi32>
  %pd1 = tensor.cast %p1 : tensor<1xi32> to tensor<?xi32>
  %zd1 = tensor.cast %z1 : tensor<1xi32> to tensor<?xi32>
  %y1, %k1, %v1 = func.call @prefill(%pd1, %zd1, %k0, %v0) : (tensor<?xi32>, tensor<?xi32>, !mica.kv_cache<2 x 1 x 2 x f32>, !mica.kv_cache<2 x 1 x 2 x f32>) -> (tensor<?x4xf32>, !mica.kv_cache<2 x 1 x 2 x f32>, !mica.kv_cache<2 x 1 x 2 x f32>)
  %last = arith.constant dense<[3]> : tensor<1xi32>
  %rows = tensor.cast %last : tensor<1xi32> to tensor<?xi32>
  %expected = mica.select_rows %all, %rows : tensor<?x4xf32>, tensor<?xi32> -> tensor<?x4xf32>
  return %y1, %expected, %ka, %k1, %va, %v1 : tensor<?x4xf32>, tensor<?x4xf32>, !mica.kv_cache<2 x 1 x 2 x f32>, !mica.kv_cache<2 x 1 x 2 x f32>, !mica.kv_cache<2 x 1 x 2 x f32>, !mica.kv_cache<2 x 1 x 2 x f32>
}

// Three sequences of 2, 1 and 3 tokens in one step have the same results as separate ones.
func.func @ragged_batch(%k: !mica.kv_cache<2 x 1 x 2 x f32>, %v: !mica.kv_cache<2 x 1 x 2 x f32>, %k0: !mica.kv_cache<2 x 1 x 2 x f32>, %v0: !mica.kv_cache<2 x 1 x 2 x f32>, %k1: !mica.kv_cache<2 x 1 x 2 x f32>, %v1: !mica.kv_cache<2 x 1 x 2 x f32>, %k2: !mica.kv_cache<2 x 1 x 2 x f32>, %v2: !mica.kv_cache<2 x 1 x 2 x f32>)
    -> (tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>) attributes {mica.expect_pairs, mica.tolerance = 0.0} {
  %x = func.call @inputs() : () -> tensor<?x4xf32>
  %rows = arith.constant dense<[0, 1, 0, 0, 1, 2]> : tensor<6xi32>
  %rowsd = tensor.cast %rows : tensor<6xi32> to tensor<?xi32>
  %sequences = arith.constant dense<[0, 0, 1, 2, 2, 2]> : tensor<6xi32>
  %sequencesd = tensor.cast %sequences : tensor<6xi32> to tensor<?xi32>
  %batch = mica.select_rows %x, %rowsd : tensor<?x4xf32>, tensor<?xi32> -> tensor<?x4xf32>
  %y, %kb, %vb = func.call @step(%batch, %k, %v, %sequencesd, %rowsd) : (tensor<?x4xf32>, !mica.kv_cache<2 x 1 x 2 x f32>, !mica.kv_cache<2 x 1 x 2 x f32>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4xf32>, !mica.kv_cache<2 x 1 x 2 x f32>, !mica.kv_cache<2 x 1 x 2 x f32>)
  %p0 = arith.constant dense<[0, 1]> : tensor<2xi32>
  %z0 = arith.constant dense<0> : tensor<2xi32>
  %pd0 = tensor.cast %p0 : tensor<2xi32> to tensor<?xi32>
  %zd0 = tensor.cast %z0 : tensor<2xi32> to tensor<?xi32>
  %y0, %ka0, %va0 = func.call @prefill(%pd0, %zd0, %k0, %v0) : (tensor<?xi32>, tensor<?xi32>, !mica.kv_cache<2 x 1 x 2 x f32>, !mica.kv_cache<2 x 1 x 2 x f32>) -> (tensor<?x4xf32>, !mica.kv_cache<2 x 1 x 2 x f32>, !mica.kv_cache<2 x 1 x 2 x f32>)
  %r0 = arith.constant dense<[0, 1]> : tensor<2xi32>
  %rd0 = tensor.cast %r0 : tensor<2xi32> to tensor<?xi32>
  %b0 = mica.select_rows %y, %rd0 : tensor<?x4xf32>, tensor<?xi32> -> tensor<?x4xf32>
  %p1 = arith.constant dense<[0]> : tensor<1xi32>
  %z1 = arith.constant dense<0> : tensor<1xi32>
  %pd1 = tensor.cast %p1 : tensor<1xi32> to tensor<?xi32>
  %zd1 = tensor.cast %z1 : tensor<1xi32> to tensor<?xi32>
  %y1, %ka1, %va1 = func.call @prefill(%pd1, %zd1, %k1, %v1) : (tensor<?xi32>, tensor<?xi32>, !mica.kv_cache<2 x 1 x 2 x f32>, !mica.kv_cache<2 x 1 x 2 x f32>) -> (tensor<?x4xf32>, !mica.kv_cache<2 x 1 x 2 x f32>, !mica.kv_cache<2 x 1 x 2 x f32>)
  %r1 = arith.constant dense<[2]> : tensor<1xi32>
  %rd1 = tensor.cast %r1 : tensor<1xi32> to tensor<?xi32>
  %b1 = mica.select_rows %y, %rd1 : tensor<?x4xf32>, tensor<?xi32> -> tensor<?x4xf32>
  %p2 = arith.constant dense<[0, 1, 2]> : tensor<3xi32>
  %z2 = arith.constant dense<0> : tensor<3xi32>
  %pd2 = tensor.cast %p2 : tensor<3xi32> to tensor<?xi32>
  %zd2 = tensor.cast %z2 : tensor<3xi32> to tensor<?xi32>
  %y2, %ka2, %va2 = func.call @prefill(%pd2, %zd2, %k2, %v2) : (tensor<?xi32>, tensor<?xi32>, !mica.kv_cache<2 x 1 x 2 x f32>, !mica.kv_cache<2 x 1 x 2 x f32>) -> (tensor<?x4xf32>, !mica.kv_cache<2 x 1 x 2 x f32>, !mica.kv_cache<2 x 1 x 2 x f32>)
  %r2 = arith.constant dense<[3, 4, 5]> : tensor<3xi32>
  %rd2 = tensor.cast %r2 : tensor<3xi32> to tensor<?xi32>
  %b2 = mica.select_rows %y, %rd2 : tensor<?x4xf32>, tensor<?xi32> -> tensor<?x4xf32>
  return %b0, %y0, %b1, %y1, %b2, %y2 : tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>
}

// The layout: [layers, sequences, positions, heads, elements].
func.func @append(%k: !mica.kv_cache<2 x 1 x 2 x bf16>) -> tensor<?x?x1x2xbf16>
    attributes {mica.expect = [dense<[[[[0.0, 0.0]], [[0.0, 0.0]], [[1.0, 2.0]], [[0.0, 0.0]], [[0.0, 0.0]], [[0.0, 0.0]], [[0.0, 0.0]], [[0.0, 0.0]]],
                                       [[[0.0, 0.0]], [[0.0, 0.0]], [[0.0, 0.0]], [[0.0, 0.0]], [[0.0, 0.0]], [[0.0, 0.0]], [[0.0, 0.0]], [[0.0, 0.0]]],
                                       [[[0.0, 0.0]], [[1.0, 0.10009765625]], [[0.0, 0.0]], [[0.0, 0.0]], [[0.0, 0.0]], [[0.0, 0.0]], [[0.0, 0.0]], [[0.0, 0.0]]]]> : tensor<3x8x1x2xbf16>], mica.tolerance = 0.0} {
  %layer = arith.constant 0 : index
  %x = arith.constant dense<[[[1.0, 2.0]], [[1.00390625, 0.1]]]> : tensor<2x1x2xf32>
  %s = arith.constant dense<[0, 2]> : tensor<2xi32>
  %p = arith.constant dense<[2, 1]> : tensor<2xi32>
  %k1 = mica.kv_append %x, %k[%layer] at(%s, %p : tensor<2xi32>, tensor<2xi32>) : tensor<2x1x2xf32>, !mica.kv_cache<2 x 1 x 2 x bf16>
  %y = mica.kv_read %k1[%layer] : !mica.kv_cache<2 x 1 x 2 x bf16> -> tensor<?x?x1x2xbf16>
  return %y : tensor<?x?x1x2xbf16>
}

// int8: each head at each position has its own scale, the largest magnitude becomes 127, ties round to even.
func.func @append_integers(%k: !mica.kv_cache<2 x 2 x 4 x !mica.int8>) -> tensor<?x?x2x4x!mica.int8>
    attributes {mica.expect = [dense<[[[[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]],
                                       [[[127.0, 0.0, 2.0, -2.0], [254.0, 4.0, 0.0, -254.0]], [[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]],
                                       [[[0.0, 0.0, 0.0, 0.0], [-0.9921875, 0.0, 0.5, 0.0078125]], [[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]]]> : tensor<3x8x2x4xf32>], mica.tolerance = 0.0} {
  %layer = arith.constant 1 : index
  %x = arith.constant dense<[[[127.0, 0.5, 1.5, -2.5], [254.0, 3.0, -1.0, -254.0]], [[0.0, 0.0, 0.0, 0.0], [-0.9921875, 0.003, 0.498, 0.0078125]]]> : tensor<2x2x4xf32>
  %s = arith.constant dense<[1, 2]> : tensor<2xi32>
  %p = arith.constant dense<0> : tensor<2xi32>
  %k1 = mica.kv_append %x, %k[%layer] at(%s, %p : tensor<2xi32>, tensor<2xi32>) : tensor<2x2x4xf32>, !mica.kv_cache<2 x 2 x 4 x !mica.int8>
  %y = mica.kv_read %k1[%layer] : !mica.kv_cache<2 x 2 x 4 x !mica.int8> -> tensor<?x?x2x4x!mica.int8>
  return %y : tensor<?x?x2x4x!mica.int8>
}

// An append consumes the cache: a later use of the old value would need a copy.
func.func @old_cache_read(%k: !mica.kv_cache<2 x 1 x 2 x f32>) -> tensor<?x?x1x2xf32> attributes {mica.expect_error = "'mica.kv_read' uses a cache after an append has consumed it"} {
  %layer = arith.constant 0 : index
  %x = arith.constant dense<1.0> : tensor<1x1x2xf32>
  %s = arith.constant dense<0> : tensor<1xi32>
  %k1 = mica.kv_append %x, %k[%layer] at(%s, %s : tensor<1xi32>, tensor<1xi32>) : tensor<1x1x2xf32>, !mica.kv_cache<2 x 1 x 2 x f32>
  %y = mica.kv_read %k[%layer] : !mica.kv_cache<2 x 1 x 2 x f32> -> tensor<?x?x1x2xf32>
  return %y : tensor<?x?x1x2xf32>
}

func.func @old_cache_appended(%k: !mica.kv_cache<2 x 1 x 2 x f32>) -> !mica.kv_cache<2 x 1 x 2 x f32> attributes {mica.expect_error = "'mica.kv_append' uses a cache after an append has consumed it"} {
  %layer = arith.constant 0 : index
  %x = arith.constant dense<1.0> : tensor<1x1x2xf32>
  %s = arith.constant dense<0> : tensor<1xi32>
  %k1 = mica.kv_append %x, %k[%layer] at(%s, %s : tensor<1xi32>, tensor<1xi32>) : tensor<1x1x2xf32>, !mica.kv_cache<2 x 1 x 2 x f32>
  %k2 = mica.kv_append %x, %k[%layer] at(%s, %s : tensor<1xi32>, tensor<1xi32>) : tensor<1x1x2xf32>, !mica.kv_cache<2 x 1 x 2 x f32>
  return %k2 : !mica.kv_cache<2 x 1 x 2 x f32>
}

func.func @old_cache_fused(%k: !mica.kv_cache<2 x 1 x 2 x f32>, %v: !mica.kv_cache<2 x 1 x 2 x f32>) -> !mica.kv_cache<2 x 1 x 2 x f32> attributes {mica.expect_error = "'mica.qkv_append' uses a cache after an append has consumed it"} {
  %layer = arith.constant 0 : index
  %s = arith.constant dense<0> : tensor<1xi32>
  %x = arith.constant dense<1.0> : tensor<1x1x2xf32>
  %qkv = arith.constant dense<1.0> : tensor<1x6xf32>
  %table = arith.constant dense<1.0> : tensor<1x2x1xf32>
  %v1 = mica.kv_append %x, %v[%layer] at(%s, %s : tensor<1xi32>, tensor<1xi32>) : tensor<1x1x2xf32>, !mica.kv_cache<2 x 1 x 2 x f32>
  %q, %k2, %v2 = mica.qkv_append %qkv, %table, %k, %v[%layer] at(%s, %s : tensor<1xi32>, tensor<1xi32>) half
      : tensor<1x6xf32>, tensor<1x2x1xf32>, !mica.kv_cache<2 x 1 x 2 x f32>, !mica.kv_cache<2 x 1 x 2 x f32> -> tensor<1x1x2xf32>
  return %v2 : !mica.kv_cache<2 x 1 x 2 x f32>
}

// Two layer types: one has a cache for all positions, the other one for the positions in its window, with a different
// number of layers. The interpreter's results are the same, whatever a program stores.
!whole = !mica.kv_cache<3 x 1 x 2 x f32>
!kept = !mica.kv_cache<2 x 1 x 2 x f32 window(2)>
func.func @window_of_a_cache(%c: !whole, %d: !kept) -> (tensor<?x1x2xf32>, tensor<?x1x2xf32>) attributes {mica.expect_pairs, mica.tolerance = 0.0} {
  %last = arith.constant 2 : index
  %layer = arith.constant 1 : index
  %x = arith.constant dense<[[[1.0, -2.0]], [[0.5, 3.0]], [[2.0, 0.25]], [[-1.0, 1.0]]]> : tensor<4x1x2xf32>
  %s = arith.constant dense<0> : tensor<4xi32>
  %p = arith.constant dense<[0, 1, 2, 3]> : tensor<4xi32>
  %xd = tensor.cast %x : tensor<4x1x2xf32> to tensor<?x1x2xf32>
  %sd = tensor.cast %s : tensor<4xi32> to tensor<?xi32>
  %pd = tensor.cast %p : tensor<4xi32> to tensor<?xi32>
  %c1 = mica.kv_append %xd, %c[%last] at(%sd, %pd : tensor<?xi32>, tensor<?xi32>) : tensor<?x1x2xf32>, !whole
  %d1 = mica.kv_append %xd, %d[%layer] at(%sd, %pd : tensor<?xi32>, tensor<?xi32>) : tensor<?x1x2xf32>, !kept
  %ck = mica.kv_read %c1[%last] : !whole -> tensor<?x?x1x2xf32>
  %dk = mica.kv_read %d1[%layer] : !kept -> tensor<?x?x1x2xf32>
  %a = mica.attention %xd, %ck, %ck at(%sd, %pd : tensor<?xi32>, tensor<?xi32>) causal scale(0.5) window(2)
      : tensor<?x1x2xf32>, tensor<?x?x1x2xf32>, tensor<?x?x1x2xf32> -> tensor<?x1x2xf32>
  %b = mica.attention %xd, %dk, %dk at(%sd, %pd : tensor<?xi32>, tensor<?xi32>) causal scale(0.5) window(2)
      : tensor<?x1x2xf32>, tensor<?x?x1x2xf32>, tensor<?x?x1x2xf32> -> tensor<?x1x2xf32>
  return %a, %b : tensor<?x1x2xf32>, tensor<?x1x2xf32>
}

// A prefix of each head, with the scale of the whole head.
func.func @read_part(%k: !mica.kv_cache<1 x 1 x 4 x !mica.int8>) -> tensor<?x?x1x2x!mica.int8>
    attributes {mica.expect = [dense<[[[[6.0, 4.0]], [[0.0, 0.0]], [[0.0, 0.0]], [[0.0, 0.0]], [[0.0, 0.0]], [[0.0, 0.0]], [[0.0, 0.0]], [[0.0, 0.0]]], [[[0.0, 0.0]], [[0.0, 0.0]], [[0.0, 0.0]], [[0.0, 0.0]], [[0.0, 0.0]], [[0.0, 0.0]], [[0.0, 0.0]], [[0.0, 0.0]]], [[[0.0, 0.0]], [[0.0, 0.0]], [[0.0, 0.0]], [[0.0, 0.0]], [[0.0, 0.0]], [[0.0, 0.0]], [[0.0, 0.0]], [[0.0, 0.0]]]]> : tensor<3x8x1x2xf32>], mica.tolerance = 0.0} {
  %layer = arith.constant 0 : index
  %x = arith.constant dense<[[[6.0, 4.0, 0.0, 254.0]]]> : tensor<1x1x4xf32>
  %s = arith.constant dense<0> : tensor<1xi32>
  %k1 = mica.kv_append %x, %k[%layer] at(%s, %s : tensor<1xi32>, tensor<1xi32>) : tensor<1x1x4xf32>, !mica.kv_cache<1 x 1 x 4 x !mica.int8>
  %y = mica.kv_read %k1[%layer] : !mica.kv_cache<1 x 1 x 4 x !mica.int8> -> tensor<?x?x1x2x!mica.int8>
  return %y : tensor<?x?x1x2x!mica.int8>
}
