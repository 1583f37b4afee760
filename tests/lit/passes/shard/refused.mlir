// RUN: mica-opt %s --split-input-file --mica-shard=ranks=2 --verify-diagnostics

func.func @op_without_a_rule(%x: tensor<?x64xf32>, %w: tensor<384x64xf32>) -> tensor<?x172xf32> {
  // expected-error @+1 {{'mica.gated_linear' op cannot be partitioned for 2 ranks: there is no rule for this op}}
  %y = mica.gated_linear %x, %w silu : tensor<?x64xf32>, tensor<384x64xf32> -> tensor<?x172xf32>
  return %y : tensor<?x172xf32>
}

// -----

// expected-error @+1 {{'func.func' op cannot be partitioned for 2 ranks: it has several blocks}}
func.func @several_blocks() {
  cf.br ^next
^next:
  return
}

// -----

// expected-error @+1 {{op is partitioned already: it has mica.ranks}}
module attributes {mica.ranks = 2 : i64} {
}

// -----

func.func @heads_that_do_not_divide(%x: tensor<?x8xf32>, %w: tensor<24x8xf32>) {
  %0 = mica.linear %x, %w : tensor<?x8xf32>, tensor<24x8xf32> -> tensor<?x24xf32>
  // expected-error @+1 {{'mica.split_heads' op cannot be partitioned for 2 ranks: 3 heads are neither a multiple nor a divisor of the number of ranks; the heads of the model allow 3 ranks}}
  %1 = mica.split_heads %0 : tensor<?x24xf32> to tensor<?x3x8xf32>
  return
}

// -----

// 9 and 6 heads of keys and values: 3 ranks, or 18, of which several have the same heads.
func.func @several_numbers(%x: tensor<?x8xf32>, %w: tensor<72x8xf32>, %v: tensor<96x8xf32>, %u: tensor<144x8xf32>) {
  %0 = mica.linear %x, %w : tensor<?x8xf32>, tensor<72x8xf32> -> tensor<?x72xf32>
  // expected-error @+1 {{9 heads are neither a multiple nor a divisor of the number of ranks; the heads of the model allow 3 or 18 ranks}}
  %1 = mica.split_heads %0 : tensor<?x72xf32> to tensor<?x9x8xf32>
  %2 = mica.linear %x, %v : tensor<?x8xf32>, tensor<96x8xf32> -> tensor<?x96xf32>
  %3 = mica.split_heads %2 : tensor<?x96xf32> to tensor<?x6x16xf32>
  %4 = mica.linear %x, %u : tensor<?x8xf32>, tensor<144x8xf32> -> tensor<?x144xf32>
  %5 = mica.split_heads %4 : tensor<?x144xf32> to tensor<?x18x8xf32>
  return
}

// -----

func.func @heads_of_a_state(%q: tensor<?x1x4xf32>, %x: tensor<?x12xf32>, %decay: tensor<?x1xf32>,
    %state: !mica.recurrent_state<1 x 1 x 4 x 12 x f32>, %layer: index, %sequences: tensor<?xi32>, %positions: tensor<?xi32>)
    -> !mica.recurrent_state<1 x 1 x 4 x 12 x f32> {
  %v = mica.split_heads %x : tensor<?x12xf32> to tensor<?x1x12xf32>
  // expected-error @+1 {{'mica.linear_attention' op cannot be partitioned for 2 ranks: the number of its heads, 1, is not a multiple of the number of ranks; no number of ranks is possible}}
  %y, %next = mica.linear_attention %q, %q, %v decay(%decay : tensor<?x1xf32>), %state[%layer]
      at(%sequences, %positions : tensor<?xi32>, tensor<?xi32>)
      : tensor<?x1x4xf32>, tensor<?x1x12xf32>, !mica.recurrent_state<1 x 1 x 4 x 12 x f32>
  return %next : !mica.recurrent_state<1 x 1 x 4 x 12 x f32>
}

// -----

func.func @keys_of_other_heads(%q: tensor<?x3x4xf32>, %x: tensor<?x12xf32>, %decay: tensor<?x6xf32>,
    %state: !mica.recurrent_state<1 x 6 x 4 x 2 x f32>, %layer: index, %sequences: tensor<?xi32>, %positions: tensor<?xi32>)
    -> !mica.recurrent_state<1 x 6 x 4 x 2 x f32> {
  %v = mica.split_heads %x : tensor<?x12xf32> to tensor<?x6x2xf32>
  // expected-error @+1 {{'mica.linear_attention' op cannot be partitioned for 2 ranks: the number of heads of queries and keys, 3, is neither 1 nor a multiple of the number of ranks; the heads of the model allow 3 ranks}}
  %y, %next = mica.linear_attention %q, %q, %v decay(%decay : tensor<?x6xf32>), %state[%layer]
      at(%sequences, %positions : tensor<?xi32>, tensor<?xi32>)
      : tensor<?x3x4xf32>, tensor<?x6x2xf32>, !mica.recurrent_state<1 x 6 x 4 x 2 x f32>
  return %next : !mica.recurrent_state<1 x 6 x 4 x 2 x f32>
}

// -----

func.func @heads_are_returned(%x: tensor<?x8xf32>, %w: tensor<16x8xf32>) -> tensor<?x2x8xf32> {
  %0 = mica.linear %x, %w : tensor<?x8xf32>, tensor<16x8xf32> -> tensor<?x16xf32>
  %1 = mica.split_heads %0 : tensor<?x16xf32> to tensor<?x2x8xf32>
  // expected-error @+1 {{'func.return' op cannot be partitioned for 2 ranks: it needs all heads, of which each rank has some}}
  return %1 : tensor<?x2x8xf32>
}

// -----

func.func @after_fusion(%x: tensor<?x8xf32>, %w: tensor<8x8xf32>) -> tensor<?x8xf32> {
  // expected-error @+1 {{'mica.linear' op cannot be partitioned for 2 ranks: it has a residual or a kernel already}}
  %0 = mica.linear %x, %w residual(%x : tensor<?x8xf32>) : tensor<?x8xf32>, tensor<8x8xf32> -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

func.func @after_kernels(%x: tensor<?x8xf32>, %w: tensor<16x8xf32>) -> tensor<?x16xf32> {
  // expected-error @+1 {{'mica.lm_head' op cannot be partitioned for 2 ranks: it has a kernel already}}
  %0 = mica.lm_head %x, %w kernel(onednn) : tensor<?x8xf32>, tensor<16x8xf32> -> tensor<?x16xf32>
  return %0 : tensor<?x16xf32>
}

// -----

func.func @experts_after_fusion(%x: tensor<?x64xf32>, %w: tensor<?x2xf32>, %e: tensor<?x2xi32>,
    %gate: tensor<4x128x64xf32>, %down: tensor<4x64x64xf32>) -> tensor<?x64xf32> {
  // expected-error @+1 {{'mica.moe_experts' op cannot be partitioned for 2 ranks: it is fused already}}
  %0 = mica.moe_experts %x, %w, %e, %gate, %down silu inner(64)
      : tensor<?x64xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<4x128x64xf32>, tensor<4x64x64xf32> -> tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}

// -----

func.func @different_heads(%x: tensor<?x8xf32>, %w: tensor<16x8xf32>, %h: tensor<?x2x4xf32>) {
  %0 = mica.linear %x, %w : tensor<?x8xf32>, tensor<16x8xf32> -> tensor<?x16xf32>
  %1 = mica.split_heads %0 : tensor<?x16xf32> to tensor<?x2x8xf32>
  // expected-error @+1 {{'mica.concat_heads' op cannot be partitioned for 2 ranks: its two parts have different heads on a rank}}
  %2 = mica.concat_heads %1, %h : tensor<?x2x8xf32>, tensor<?x2x4xf32> -> tensor<?x2x12xf32>
  return
}

// -----

func.func @cache_of_other_heads(%x: tensor<?x2x8xf32>, %cache: !mica.kv_cache<1 x 2 x 8 x f32>, %s: tensor<?xi32>, %p: tensor<?xi32>) {
  %layer = arith.constant 0 : index
  // expected-error @+1 {{'mica.kv_append' op cannot be partitioned for 2 ranks: a rank has other heads than its cache, which is partitioned by 2 heads}}
  %0 = mica.kv_append %x, %cache[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !mica.kv_cache<1 x 2 x 8 x f32>
  return
}

// -----

func.func @three_cached_heads(%cache: !mica.kv_cache<1 x 3 x 8 x f32>) {
  %layer = arith.constant 0 : index
  // expected-error @+1 {{'mica.kv_read' op cannot be partitioned for 2 ranks: 3 heads are neither a multiple nor a divisor of the number of ranks}}
  %0 = mica.kv_read %cache[%layer] : !mica.kv_cache<1 x 3 x 8 x f32> -> tensor<?x?x3x8xf32>
  return
}

// -----

func.func @three_repeated_heads(%cache: !mica.kv_cache<1 x 1 x 8 x f32>) {
  %layer = arith.constant 0 : index
  %0 = mica.kv_read %cache[%layer] : !mica.kv_cache<1 x 1 x 8 x f32> -> tensor<?x?x1x8xf32>
  // expected-error @+1 {{'mica.repeat_kv' op cannot be partitioned for 2 ranks: 3 heads are neither a multiple nor a divisor of the number of ranks}}
  %1 = mica.repeat_kv %0 times 3 : tensor<?x?x1x8xf32> -> tensor<?x?x3x8xf32>
  return
}

// -----

func.func @queries_of_all_ranks(%q: tensor<?x4x8xf32>, %cache: !mica.kv_cache<1 x 4 x 8 x f32>, %s: tensor<?xi32>, %p: tensor<?xi32>) {
  %layer = arith.constant 0 : index
  %k = mica.kv_read %cache[%layer] : !mica.kv_cache<1 x 4 x 8 x f32> -> tensor<?x?x4x8xf32>
  // expected-error @+1 {{'mica.attention' op cannot be partitioned for 2 ranks: the query heads of a rank do not read its keys and values}}
  %0 = mica.attention %q, %k, %k at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.3) : tensor<?x4x8xf32>, tensor<?x?x4x8xf32>, tensor<?x?x4x8xf32> -> tensor<?x4x8xf32>
  return
}

// -----

func.func @slopes(%x: tensor<?x8xf32>, %w: tensor<16x8xf32>, %cache: !mica.kv_cache<1 x 2 x 8 x f32>, %s: tensor<?xi32>, %p: tensor<?xi32>) {
  %layer = arith.constant 0 : index
  %0 = mica.linear %x, %w : tensor<?x8xf32>, tensor<16x8xf32> -> tensor<?x16xf32>
  %q = mica.split_heads %0 : tensor<?x16xf32> to tensor<?x2x8xf32>
  %k = mica.kv_read %cache[%layer] : !mica.kv_cache<1 x 2 x 8 x f32> -> tensor<?x?x2x8xf32>
  // expected-error @+1 {{'mica.attention' op cannot be partitioned for 2 ranks: the slopes of alibi are one list for all ranks}}
  %1 = mica.attention %q, %k, %k at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.3) alibi([0.5, 0.25]) : tensor<?x2x8xf32>, tensor<?x?x2x8xf32>, tensor<?x?x2x8xf32> -> tensor<?x2x8xf32>
  return
}

// -----

// expected-error @+1 {{'mica.weight' op cannot be partitioned for 2 ranks: it is composed of several tensors, whose parts do not form a part of it}}
mica.weight @merged from ["a", "b"] concat : tensor<8x8xf32>
func.func @merged_weight(%tokens: tensor<?xi32>) -> tensor<?x8xf32> {
  %w = mica.get_weight @merged : tensor<8x8xf32>
  %0 = mica.embedding %tokens, %w : tensor<?xi32>, tensor<8x8xf32> -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

!packed = tensor<64x32xf32, #mica.packed<columns = 64, depth = 1, k_block = 32>>
// expected-error @+1 {{'mica.weight' op cannot be partitioned for 2 ranks: it has a layout already}}
mica.weight @packed : !packed
func.func @packed_weight(%x: tensor<?x32xf32>) -> tensor<?x64xf32> {
  %w = mica.get_weight @packed : !packed
  %0 = mica.linear %x, %w : tensor<?x32xf32>, !packed -> tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}

// -----

// The router needs all of a matrix of which a rank has a part for its product.
mica.weight @both : tensor<4x8xf32>
func.func @two_uses(%x: tensor<?x8xf32>) -> (tensor<?x4xf32>, tensor<?x2xf32>) {
  %w = mica.get_weight @both : tensor<4x8xf32>
  %0 = mica.linear %x, %w : tensor<?x8xf32>, tensor<4x8xf32> -> tensor<?x4xf32>
  // expected-error @+1 {{'mica.moe_gate' op needs the part "all" in a weight, but another use of it needs #mica.shard<axis = 0, ranks = 2>}}
  %1, %2 = mica.moe_gate %x, %w softmax k(2) : tensor<?x8xf32>, tensor<4x8xf32> -> tensor<?x2xf32>, tensor<?x2xi32>
  return %0, %1 : tensor<?x4xf32>, tensor<?x2xf32>
}
