// RUN: mica-opt %s --split-input-file --mica-shard=ranks=4 --verify-diagnostics

// Two ranks have the same head, but all factors.
func.func @heads_of_two_ranks(%x: tensor<?x8xf32>, %w: tensor<8x8xf32>, %dt: tensor<?x2xf32>) {
  %0 = mica.linear %x, %w : tensor<?x8xf32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %1 = mica.split_heads %0 : tensor<?x8xf32> to tensor<?x2x4xf32>
  // expected-error @+1 {{'mica.scale_heads' op cannot be partitioned for 4 ranks: its operands have different heads on a rank}}
  %2 = mica.scale_heads %1 by(%dt) : tensor<?x2x4xf32>, tensor<?x2xf32>
  return
}

// -----

// Two query heads: several ranks would compute the same one, although the states have 8 heads.
func.func @query_heads(%x: tensor<?x8xf32>, %w: tensor<16x8xf32>, %o: tensor<8x16xf32>, %v: tensor<?x16xf32>, %key: tensor<?x1x4xf32>,
    %decay: tensor<?x8xf32>, %cache: !mica.kv_cache<1 x 2 x 8 x f32>, %state: !mica.recurrent_state<1 x 8 x 4 x 2 x f32>,
    %s: tensor<?xi32>, %p: tensor<?xi32>) -> (tensor<?x8xf32>, !mica.recurrent_state<1 x 8 x 4 x 2 x f32>) {
  %layer = arith.constant 0 : index
  %heads = mica.split_heads %v : tensor<?x16xf32> to tensor<?x8x2xf32>
  %y, %next = mica.linear_attention %key, %key, %heads decay(%decay : tensor<?x8xf32>), %state[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>)
      : tensor<?x1x4xf32>, tensor<?x8x2xf32>, !mica.recurrent_state<1 x 8 x 4 x 2 x f32>
  %0 = mica.linear %x, %w : tensor<?x8xf32>, tensor<16x8xf32> -> tensor<?x16xf32>
  %q = mica.split_heads %0 : tensor<?x16xf32> to tensor<?x2x8xf32>
  %k = mica.kv_read %cache[%layer] : !mica.kv_cache<1 x 2 x 8 x f32> -> tensor<?x?x2x8xf32>
  %1 = mica.attention %q, %k, %k at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.3) : tensor<?x2x8xf32>, tensor<?x?x2x8xf32>, tensor<?x?x2x8xf32> -> tensor<?x2x8xf32>
  %2 = mica.merge_heads %1 : tensor<?x2x8xf32> to tensor<?x16xf32>
  // expected-error @+1 {{'mica.linear' op cannot be partitioned for 4 ranks: it needs all heads, of which several ranks have the same; the heads of the model allow 2 ranks}}
  %3 = mica.linear %2, %o : tensor<?x16xf32>, tensor<8x16xf32> -> tensor<?x8xf32>
  return %3, %next : tensor<?x8xf32>, !mica.recurrent_state<1 x 8 x 4 x 2 x f32>
}
