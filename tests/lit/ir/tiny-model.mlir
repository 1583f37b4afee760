// RUN: mica-opt %s | mica-opt | FileCheck %s

// A complete model of one layer type, written by hand: two layers, 4 query and 2 key/value heads of 8 elements.

// CHECK-LABEL: module @tiny
module @tiny attributes {mica.model = {max_positions = 64 : i64, bos = 1 : i64, eos = [2 : i64]}} {
  mica.weight @"model.embed_tokens.weight" : tensor<96x32xf32>
  mica.weight @"model.layers.0.input_layernorm.weight" : tensor<32xf32>
  mica.weight @"model.layers.0.self_attn.q_proj.weight" : tensor<32x32xf32>
  mica.weight @"model.layers.0.self_attn.k_proj.weight" : tensor<16x32xf32>
  mica.weight @"model.layers.0.self_attn.v_proj.weight" : tensor<16x32xf32>
  mica.weight @"model.layers.0.self_attn.o_proj.weight" : tensor<32x32xf32>
  mica.weight @"model.layers.0.post_attention_layernorm.weight" : tensor<32xf32>
  mica.weight @"model.layers.0.mlp.gate_proj.weight" : tensor<72x32xf32>
  mica.weight @"model.layers.0.mlp.up_proj.weight" : tensor<72x32xf32>
  mica.weight @"model.layers.0.mlp.down_proj.weight" : tensor<32x72xf32>
  mica.weight @"model.layers.1.input_layernorm.weight" : tensor<32xf32>
  mica.weight @"model.layers.1.self_attn.q_proj.weight" : tensor<32x32xf32>
  mica.weight @"model.layers.1.self_attn.k_proj.weight" : tensor<16x32xf32>
  mica.weight @"model.layers.1.self_attn.v_proj.weight" : tensor<16x32xf32>
  mica.weight @"model.layers.1.self_attn.o_proj.weight" : tensor<32x32xf32>
  mica.weight @"model.layers.1.post_attention_layernorm.weight" : tensor<32xf32>
  mica.weight @"model.layers.1.mlp.gate_proj.weight" : tensor<72x32xf32>
  mica.weight @"model.layers.1.mlp.up_proj.weight" : tensor<72x32xf32>
  mica.weight @"model.layers.1.mlp.down_proj.weight" : tensor<32x72xf32>
  mica.weight @"model.norm.weight" : tensor<32xf32>

  // CHECK: func.func private @layer
  func.func private @layer(%x: tensor<?x32xf32>, %k_cache: !mica.kv_cache<2 x 2 x 8 x f32>,
      %v_cache: !mica.kv_cache<2 x 2 x 8 x f32>, %layer: index, %sequences: tensor<?xi32>, %positions: tensor<?xi32>,
      %norm1: tensor<32xf32>, %wq: tensor<32x32xf32>, %wk: tensor<16x32xf32>, %wv: tensor<16x32xf32>,
      %wo: tensor<32x32xf32>, %norm2: tensor<32xf32>, %gate: tensor<72x32xf32>, %up: tensor<72x32xf32>,
      %down: tensor<32x72xf32>) -> (tensor<?x32xf32>, !mica.kv_cache<2 x 2 x 8 x f32>, !mica.kv_cache<2 x 2 x 8 x f32>) {
    // CHECK: mica.rmsnorm
    %n1 = mica.rmsnorm %x, %norm1 eps(1.0e-05) : tensor<?x32xf32>, tensor<32xf32> -> tensor<?x32xf32>
    %q = mica.linear %n1, %wq : tensor<?x32xf32>, tensor<32x32xf32> -> tensor<?x32xf32>
    %k = mica.linear %n1, %wk : tensor<?x32xf32>, tensor<16x32xf32> -> tensor<?x16xf32>
    %v = mica.linear %n1, %wv : tensor<?x32xf32>, tensor<16x32xf32> -> tensor<?x16xf32>
    %qh = mica.split_heads %q : tensor<?x32xf32> to tensor<?x4x8xf32>
    %kh = mica.split_heads %k : tensor<?x16xf32> to tensor<?x2x8xf32>
    %vh = mica.split_heads %v : tensor<?x16xf32> to tensor<?x2x8xf32>
    // CHECK: mica.rope %{{.*}}, %{{.*}} half theta(1.000000e+04)
    %qr = mica.rope %qh, %positions half theta(1.0e+04) : tensor<?x4x8xf32>, tensor<?xi32>
    %kr = mica.rope %kh, %positions half theta(1.0e+04) : tensor<?x2x8xf32>, tensor<?xi32>
    %k_next = mica.kv_append %kr, %k_cache[%layer] at(%sequences, %positions : tensor<?xi32>, tensor<?xi32>)
        : tensor<?x2x8xf32>, !mica.kv_cache<2 x 2 x 8 x f32>
    %v_next = mica.kv_append %vh, %v_cache[%layer] at(%sequences, %positions : tensor<?xi32>, tensor<?xi32>)
        : tensor<?x2x8xf32>, !mica.kv_cache<2 x 2 x 8 x f32>
    %keys = mica.kv_read %k_next[%layer] : !mica.kv_cache<2 x 2 x 8 x f32> -> tensor<?x?x2x8xf32>
    %values = mica.kv_read %v_next[%layer] : !mica.kv_cache<2 x 2 x 8 x f32> -> tensor<?x?x2x8xf32>
    // CHECK: mica.repeat_kv
    %keys4 = mica.repeat_kv %keys times 2 : tensor<?x?x2x8xf32> -> tensor<?x?x4x8xf32>
    %values4 = mica.repeat_kv %values times 2 : tensor<?x?x2x8xf32> -> tensor<?x?x4x8xf32>
    // CHECK: mica.attention %{{.*}} causal scale
    %a = mica.attention %qr, %keys4, %values4 at(%sequences, %positions : tensor<?xi32>, tensor<?xi32>) causal
        scale(0.35355339059327379) : tensor<?x4x8xf32>, tensor<?x?x4x8xf32>, tensor<?x?x4x8xf32> -> tensor<?x4x8xf32>
    %am = mica.merge_heads %a : tensor<?x4x8xf32> to tensor<?x32xf32>
    %o = mica.linear %am, %wo : tensor<?x32xf32>, tensor<32x32xf32> -> tensor<?x32xf32>
    %x1 = mica.add %x, %o : tensor<?x32xf32>
    %n2 = mica.rmsnorm %x1, %norm2 eps(1.0e-05) : tensor<?x32xf32>, tensor<32xf32> -> tensor<?x32xf32>
    %g = mica.linear %n2, %gate : tensor<?x32xf32>, tensor<72x32xf32> -> tensor<?x72xf32>
    %u = mica.linear %n2, %up : tensor<?x32xf32>, tensor<72x32xf32> -> tensor<?x72xf32>
    // CHECK: mica.silu
    %s = mica.silu %g : tensor<?x72xf32>
    %h = mica.mul %s, %u : tensor<?x72xf32>
    %d = mica.linear %h, %down : tensor<?x72xf32>, tensor<32x72xf32> -> tensor<?x32xf32>
    %x2 = mica.add %x1, %d : tensor<?x32xf32>
    return %x2, %k_next, %v_next : tensor<?x32xf32>, !mica.kv_cache<2 x 2 x 8 x f32>, !mica.kv_cache<2 x 2 x 8 x f32>
  }

  // CHECK: func.func @main
  func.func @main(%tokens: tensor<?xi32> {mica.role = "tokens"}, %sequences: tensor<?xi32> {mica.role = "sequences"},
      %positions: tensor<?xi32> {mica.role = "positions"}, %logit_indices: tensor<?xi32> {mica.role = "logit_indices"},
      %k_cache: !mica.kv_cache<2 x 2 x 8 x f32> {mica.role = "cache"},
      %v_cache: !mica.kv_cache<2 x 2 x 8 x f32> {mica.role = "cache"})
      -> (tensor<?x96xf32> {mica.role = "logits"}, !mica.kv_cache<2 x 2 x 8 x f32> {mica.role = "cache"},
          !mica.kv_cache<2 x 2 x 8 x f32> {mica.role = "cache"}) {
    %table = mica.get_weight @"model.embed_tokens.weight" : tensor<96x32xf32>
    %x0 = mica.embedding %tokens, %table : tensor<?xi32>, tensor<96x32xf32> -> tensor<?x32xf32>
    %layer0 = arith.constant 0 : index
    %n10 = mica.get_weight @"model.layers.0.input_layernorm.weight" : tensor<32xf32>
    %wq0 = mica.get_weight @"model.layers.0.self_attn.q_proj.weight" : tensor<32x32xf32>
    %wk0 = mica.get_weight @"model.layers.0.self_attn.k_proj.weight" : tensor<16x32xf32>
    %wv0 = mica.get_weight @"model.layers.0.self_attn.v_proj.weight" : tensor<16x32xf32>
    %wo0 = mica.get_weight @"model.layers.0.self_attn.o_proj.weight" : tensor<32x32xf32>
    %n20 = mica.get_weight @"model.layers.0.post_attention_layernorm.weight" : tensor<32xf32>
    %g0 = mica.get_weight @"model.layers.0.mlp.gate_proj.weight" : tensor<72x32xf32>
    %u0 = mica.get_weight @"model.layers.0.mlp.up_proj.weight" : tensor<72x32xf32>
    %d0 = mica.get_weight @"model.layers.0.mlp.down_proj.weight" : tensor<32x72xf32>
    // CHECK: call @layer
    %x1, %k1, %v1 = func.call @layer(%x0, %k_cache, %v_cache, %layer0, %sequences, %positions, %n10, %wq0, %wk0, %wv0, %wo0, %n20, %g0, %u0, %d0)
        : (tensor<?x32xf32>, !mica.kv_cache<2 x 2 x 8 x f32>, !mica.kv_cache<2 x 2 x 8 x f32>, index, tensor<?xi32>, tensor<?xi32>,
           tensor<32xf32>, tensor<32x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>, tensor<32x32xf32>, tensor<32xf32>,
           tensor<72x32xf32>, tensor<72x32xf32>, tensor<32x72xf32>)
        -> (tensor<?x32xf32>, !mica.kv_cache<2 x 2 x 8 x f32>, !mica.kv_cache<2 x 2 x 8 x f32>)
    %layer1 = arith.constant 1 : index
    %n11 = mica.get_weight @"model.layers.1.input_layernorm.weight" : tensor<32xf32>
    %wq1 = mica.get_weight @"model.layers.1.self_attn.q_proj.weight" : tensor<32x32xf32>
    %wk1 = mica.get_weight @"model.layers.1.self_attn.k_proj.weight" : tensor<16x32xf32>
    %wv1 = mica.get_weight @"model.layers.1.self_attn.v_proj.weight" : tensor<16x32xf32>
    %wo1 = mica.get_weight @"model.layers.1.self_attn.o_proj.weight" : tensor<32x32xf32>
    %n21 = mica.get_weight @"model.layers.1.post_attention_layernorm.weight" : tensor<32xf32>
    %g1 = mica.get_weight @"model.layers.1.mlp.gate_proj.weight" : tensor<72x32xf32>
    %u1 = mica.get_weight @"model.layers.1.mlp.up_proj.weight" : tensor<72x32xf32>
    %d1 = mica.get_weight @"model.layers.1.mlp.down_proj.weight" : tensor<32x72xf32>
    %x2, %k2, %v2 = func.call @layer(%x1, %k1, %v1, %layer1, %sequences, %positions, %n11, %wq1, %wk1, %wv1, %wo1, %n21, %g1, %u1, %d1)
        : (tensor<?x32xf32>, !mica.kv_cache<2 x 2 x 8 x f32>, !mica.kv_cache<2 x 2 x 8 x f32>, index, tensor<?xi32>, tensor<?xi32>,
           tensor<32xf32>, tensor<32x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>, tensor<32x32xf32>, tensor<32xf32>,
           tensor<72x32xf32>, tensor<72x32xf32>, tensor<32x72xf32>)
        -> (tensor<?x32xf32>, !mica.kv_cache<2 x 2 x 8 x f32>, !mica.kv_cache<2 x 2 x 8 x f32>)
    %xs = mica.select_rows %x2, %logit_indices : tensor<?x32xf32>, tensor<?xi32> -> tensor<?x32xf32>
    %nw = mica.get_weight @"model.norm.weight" : tensor<32xf32>
    %xn = mica.rmsnorm %xs, %nw eps(1.0e-05) : tensor<?x32xf32>, tensor<32xf32> -> tensor<?x32xf32>
    // CHECK: mica.lm_head
    %logits = mica.lm_head %xn, %table : tensor<?x32xf32>, tensor<96x32xf32> -> tensor<?x96xf32>
    return %logits, %k2, %v2 : tensor<?x96xf32>, !mica.kv_cache<2 x 2 x 8 x f32>, !mica.kv_cache<2 x 2 x 8 x f32>
  }
}
