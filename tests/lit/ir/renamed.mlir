// RUN: mica-opt %s --split-input-file --verify-diagnostics

// Former names are rejected with the names that replaced them.

func.func @join_heads(%a: tensor<?x8x16xf32>, %b: tensor<?x1x4xf32>) {
  // expected-error @+1 {{unknown operation 'mica.join_heads'; it was renamed to 'mica.concat_heads'}}
  %y = mica.join_heads %a, %b : tensor<?x8x16xf32>, tensor<?x1x4xf32> -> tensor<?x8x20xf32>
  return
}

// -----

func.func @select_number(%i: index) -> index {
  // expected-error @+1 {{unknown operation 'mica.select_number'; it was renamed to 'mica.index_table'}}
  %layer = mica.select_number [0, 2, 3][%i]
  return %layer : index
}

// -----

mica.weight @"norm.weight" : tensor<64xf32>
// expected-error @+1 {{unknown operation 'mica.balance'; it was renamed to 'mica.equalize'}}
mica.balance rows ["norm.weight"] columns []

// -----

func.func @unknown(%x: tensor<?x64xf32>) {
  // expected-error @+1 {{custom op 'mica.no_such_op' is unknown}}
  %y = mica.no_such_op %x : tensor<?x64xf32>
  return
}

// -----

func.func @gain_offset_of_rmsnorm(%x: tensor<?x64xf32>, %w: tensor<64xf32>) {
  // expected-error @+1 {{'gain_offset' is not a keyword; it was renamed to 'weight_offset'}}
  %y = mica.rmsnorm %x, %w eps(1.0e-05) gain_offset(1.0) : tensor<?x64xf32>, tensor<64xf32> -> tensor<?x64xf32>
  return
}

// -----

func.func @gain_offset_of_qkv_append(%qkv: tensor<?x128xf32>, %table: tensor<?x2x4xf32>,
    %k: !mica.kv_cache<5 x 4 x 8 x f32>, %v: !mica.kv_cache<5 x 4 x 8 x f32>, %layer: index,
    %sequences: tensor<?xi32>, %positions: tensor<?xi32>, %w: tensor<8xf32>) {
  %q, %k1, %v1 = mica.qkv_append %qkv, %table, %k, %v[%layer]
      at(%sequences, %positions : tensor<?xi32>, tensor<?xi32>) norms(%w, %w : tensor<8xf32>, tensor<8xf32>)
      // expected-error @+1 {{'gain_offset' is not a keyword; it was renamed to 'weight_offset'}}
      half eps(1.0e-05) gain_offset(1.0)
      : tensor<?x128xf32>, tensor<?x2x4xf32>, !mica.kv_cache<5 x 4 x 8 x f32>, !mica.kv_cache<5 x 4 x 8 x f32>
      -> tensor<?x8x8xf32>
  return
}

// -----

// As an unknown attribute, it would be kept and ignored.
func.func @gain_offset_as_attribute(%x: tensor<?x64xf32>, %w: tensor<64xf32>) {
  // expected-error @+1 {{'mica.rmsnorm' op has no attribute 'gain_offset'; it was renamed to 'weight_offset'}}
  %y = mica.rmsnorm %x, %w eps(1.0e-05) {gain_offset = 1.0} : tensor<?x64xf32>, tensor<64xf32> -> tensor<?x64xf32>
  return
}

// -----

func.func @kept_groups(%x: tensor<?x64xf32>, %gate: tensor<8x64xf32>) {
  // expected-error @+1 {{'mica.moe_gate' op has no attribute 'kept_groups'; it was renamed to 'topk_group'}}
  %weights, %experts = mica.moe_gate %x, %gate sigmoid k(2) {kept_groups = 2}
      : tensor<?x64xf32>, tensor<8x64xf32> -> tensor<?x2xf32>, tensor<?x2xi32>
  return
}

// -----

func.func @correction(%x: tensor<?x64xf32>, %gate: tensor<8x64xf32>, %c: tensor<8xf32>) {
  // expected-error @+1 {{'correction' is not a valid scoring; it was renamed to 'e_score_correction_bias'}}
  %weights, %experts = mica.moe_gate %x, %gate correction(%c : tensor<8xf32>) sigmoid k(2)
      : tensor<?x64xf32>, tensor<8x64xf32> -> tensor<?x2xf32>, tensor<?x2xi32>
  return
}

// -----

func.func @after_gain(%x: tensor<?x64xbf16>, %w: tensor<64xf32>) {
  // expected-error @+1 {{'after_gain' is not a valid norm_rounding; it was renamed to 'after_weight'}}
  %y = mica.rmsnorm %x, %w eps(1.0e-05) rounding(after_gain) : tensor<?x64xbf16>, tensor<64xf32> -> tensor<?x64xbf16>
  return
}

// -----

func.func @before_gain(%x: tensor<?x64xbf16>, %w: tensor<64xf32>) {
  // expected-error @+1 {{'before_gain' is not a valid norm_rounding; it was renamed to 'before_weight'}}
  %y = mica.rmsnorm %x, %w eps(1.0e-05) rounding(before_gain) : tensor<?x64xbf16>, tensor<64xf32> -> tensor<?x64xbf16>
  return
}

// -----

// expected-error @+1 {{'limbs' is not a keyword; it was renamed to 'bits'}}
func.func private @limbs(%x: tensor<?x64x!mica.int_rows<limbs = 2, group = 32>>)

// -----

// A name that never existed is rejected as well.
func.func @unknown_attribute(%x: tensor<?x64xf32>) {
  // expected-error @+1 {{'mica.silu' op has no attribute 'fast'}}
  %y = mica.silu %x {fast} : tensor<?x64xf32>
  return
}

// -----

// Attributes with the prefix of a dialect belong to passes and tools.
func.func @attribute_of_a_dialect(%x: tensor<?x64xf32>) {
  %y = mica.silu %x {test.mark} : tensor<?x64xf32>
  return
}

// -----

// expected-error @+1 {{has mica.crossing; it was renamed to 'mica.gemm_threshold'}}
module attributes {mica.crossing = 32 : i64} {
}

// -----

// expected-error @+1 {{has mica.few_rows; it was renamed to 'mica.small_batch'}}
module attributes {mica.few_rows = 16 : i64} {
}

// -----

// expected-error @+1 {{argument #0 has mica.role = "outputs", expected one of tokens, sequences, positions, logit_indices, lengths, cache, weights, scratch, logits, hidden; it was renamed to 'logit_indices'}}
func.func @outputs(%rows: tensor<?xi32> {mica.role = "outputs"}) {
  return
}
