// RUN: mica-opt %s | mica-opt | FileCheck %s

// A mixture of experts, written by hand: two layers with norms of queries and keys, two of four experts per token, and one
// shared expert that is always on.

// CHECK-LABEL: module @tiny_moe
module @tiny_moe attributes {mica.model = {max_positions = 64 : i64, bos = 1 : i64, eos = [2 : i64]}} {
  mica.weight @"model.embed_tokens.weight" : tensor<96x32xf32>
  mica.weight @"model.norm.weight" : tensor<32xf32>
  mica.weight @"model.layers.0.input_layernorm.weight" : tensor<32xf32>
  mica.weight @"model.layers.0.self_attn.q_proj.weight" : tensor<32x32xf32>
  mica.weight @"model.layers.0.self_attn.k_proj.weight" : tensor<16x32xf32>
  mica.weight @"model.layers.0.self_attn.v_proj.weight" : tensor<16x32xf32>
  mica.weight @"model.layers.0.self_attn.q_norm.weight" : tensor<8xf32>
  mica.weight @"model.layers.0.self_attn.k_norm.weight" : tensor<8xf32>
  mica.weight @"model.layers.0.self_attn.o_proj.weight" : tensor<32x32xf32>
  mica.weight @"model.layers.0.post_attention_layernorm.weight" : tensor<32xf32>
  mica.weight @"model.layers.0.mlp.gate.weight" : tensor<4x32xf32>
  mica.weight @"model.layers.0.mlp.gate_proj.experts" from ["model.layers.0.mlp.experts.0.gate_proj.weight", "model.layers.0.mlp.experts.1.gate_proj.weight", "model.layers.0.mlp.experts.2.gate_proj.weight", "model.layers.0.mlp.experts.3.gate_proj.weight"] stack : tensor<4x24x32xf32>
  mica.weight @"model.layers.0.mlp.up_proj.experts" from ["model.layers.0.mlp.experts.0.up_proj.weight", "model.layers.0.mlp.experts.1.up_proj.weight", "model.layers.0.mlp.experts.2.up_proj.weight", "model.layers.0.mlp.experts.3.up_proj.weight"] stack : tensor<4x24x32xf32>
  mica.weight @"model.layers.0.mlp.down_proj.experts" from ["model.layers.0.mlp.experts.0.down_proj.weight", "model.layers.0.mlp.experts.1.down_proj.weight", "model.layers.0.mlp.experts.2.down_proj.weight", "model.layers.0.mlp.experts.3.down_proj.weight"] stack : tensor<4x32x24xf32>
  mica.weight @"model.layers.0.mlp.shared_experts.0.gate_proj.weight" : tensor<24x32xf32>
  mica.weight @"model.layers.0.mlp.shared_experts.0.up_proj.weight" : tensor<24x32xf32>
  mica.weight @"model.layers.0.mlp.shared_experts.0.down_proj.weight" : tensor<32x24xf32>
  mica.weight @"model.layers.1.input_layernorm.weight" : tensor<32xf32>
  mica.weight @"model.layers.1.self_attn.q_proj.weight" : tensor<32x32xf32>
  mica.weight @"model.layers.1.self_attn.k_proj.weight" : tensor<16x32xf32>
  mica.weight @"model.layers.1.self_attn.v_proj.weight" : tensor<16x32xf32>
  mica.weight @"model.layers.1.self_attn.q_norm.weight" : tensor<8xf32>
  mica.weight @"model.layers.1.self_attn.k_norm.weight" : tensor<8xf32>
  mica.weight @"model.layers.1.self_attn.o_proj.weight" : tensor<32x32xf32>
  mica.weight @"model.layers.1.post_attention_layernorm.weight" : tensor<32xf32>
  mica.weight @"model.layers.1.mlp.gate.weight" : tensor<4x32xf32>
  mica.weight @"model.layers.1.mlp.gate_proj.experts" from ["model.layers.1.mlp.experts.0.gate_proj.weight", "model.layers.1.mlp.experts.1.gate_proj.weight", "model.layers.1.mlp.experts.2.gate_proj.weight", "model.layers.1.mlp.experts.3.gate_proj.weight"] stack : tensor<4x24x32xf32>
  mica.weight @"model.layers.1.mlp.up_proj.experts" from ["model.layers.1.mlp.experts.0.up_proj.weight", "model.layers.1.mlp.experts.1.up_proj.weight", "model.layers.1.mlp.experts.2.up_proj.weight", "model.layers.1.mlp.experts.3.up_proj.weight"] stack : tensor<4x24x32xf32>
  mica.weight @"model.layers.1.mlp.down_proj.experts" from ["model.layers.1.mlp.experts.0.down_proj.weight", "model.layers.1.mlp.experts.1.down_proj.weight", "model.layers.1.mlp.experts.2.down_proj.weight", "model.layers.1.mlp.experts.3.down_proj.weight"] stack : tensor<4x32x24xf32>
  mica.weight @"model.layers.1.mlp.shared_experts.0.gate_proj.weight" : tensor<24x32xf32>
  mica.weight @"model.layers.1.mlp.shared_experts.0.up_proj.weight" : tensor<24x32xf32>
  mica.weight @"model.layers.1.mlp.shared_experts.0.down_proj.weight" : tensor<32x24xf32>

  func.func private @layer(%x: tensor<?x32xf32>, %k_cache: !mica.kv_cache<2 x 2 x 8 x f32>, %v_cache: !mica.kv_cache<2 x 2 x 8 x f32>, %layer: index,
      %sequences: tensor<?xi32>, %positions: tensor<?xi32>,
      %norm1: tensor<32xf32>, %wq: tensor<32x32xf32>, %wk: tensor<16x32xf32>, %wv: tensor<16x32xf32>, %qn: tensor<8xf32>, %kn: tensor<8xf32>, %wo: tensor<32x32xf32>, %norm2: tensor<32xf32>,
      %router: tensor<4x32xf32>, %eg: tensor<4x24x32xf32>, %eu: tensor<4x24x32xf32>, %ed: tensor<4x32x24xf32>, %sg: tensor<24x32xf32>, %su: tensor<24x32xf32>, %sd: tensor<32x24xf32>)
      -> (tensor<?x32xf32>, !mica.kv_cache<2 x 2 x 8 x f32>, !mica.kv_cache<2 x 2 x 8 x f32>) {
    %n1 = mica.rmsnorm %x, %norm1 eps(1.0e-06) rounding(after_weight) : tensor<?x32xf32>, tensor<32xf32> -> tensor<?x32xf32>
    %q = mica.linear %n1, %wq : tensor<?x32xf32>, tensor<32x32xf32> -> tensor<?x32xf32>
    %k = mica.linear %n1, %wk : tensor<?x32xf32>, tensor<16x32xf32> -> tensor<?x16xf32>
    %v = mica.linear %n1, %wv : tensor<?x32xf32>, tensor<16x32xf32> -> tensor<?x16xf32>
    %qh = mica.split_heads %q : tensor<?x32xf32> to tensor<?x4x8xf32>
    %kh = mica.split_heads %k : tensor<?x16xf32> to tensor<?x2x8xf32>
    %vh = mica.split_heads %v : tensor<?x16xf32> to tensor<?x2x8xf32>
    %qx = mica.rmsnorm %qh, %qn eps(1.0e-06) rounding(after_weight) : tensor<?x4x8xf32>, tensor<8xf32> -> tensor<?x4x8xf32>
    %kx = mica.rmsnorm %kh, %kn eps(1.0e-06) rounding(after_weight) : tensor<?x2x8xf32>, tensor<8xf32> -> tensor<?x2x8xf32>
    %qr = mica.rope %qx, %positions interleaved theta(1.0e+06) : tensor<?x4x8xf32>, tensor<?xi32>
    %kr = mica.rope %kx, %positions interleaved theta(1.0e+06) : tensor<?x2x8xf32>, tensor<?xi32>
    %k_next = mica.kv_append %kr, %k_cache[%layer] at(%sequences, %positions : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !mica.kv_cache<2 x 2 x 8 x f32>
    %v_next = mica.kv_append %vh, %v_cache[%layer] at(%sequences, %positions : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !mica.kv_cache<2 x 2 x 8 x f32>
    %keys = mica.kv_read %k_next[%layer] : !mica.kv_cache<2 x 2 x 8 x f32> -> tensor<?x?x2x8xf32>
    %values = mica.kv_read %v_next[%layer] : !mica.kv_cache<2 x 2 x 8 x f32> -> tensor<?x?x2x8xf32>
    %keys4 = mica.repeat_kv %keys times 2 : tensor<?x?x2x8xf32> -> tensor<?x?x4x8xf32>
    %values4 = mica.repeat_kv %values times 2 : tensor<?x?x2x8xf32> -> tensor<?x?x4x8xf32>
    %a = mica.attention %qr, %keys4, %values4 at(%sequences, %positions : tensor<?xi32>, tensor<?xi32>) causal
        scale(0.35355339059327379) : tensor<?x4x8xf32>, tensor<?x?x4x8xf32>, tensor<?x?x4x8xf32> -> tensor<?x4x8xf32>
    %am = mica.merge_heads %a : tensor<?x4x8xf32> to tensor<?x32xf32>
    %o = mica.linear %am, %wo : tensor<?x32xf32>, tensor<32x32xf32> -> tensor<?x32xf32>
    %x1 = mica.add %x, %o : tensor<?x32xf32>
    %n2 = mica.rmsnorm %x1, %norm2 eps(1.0e-06) rounding(after_weight) : tensor<?x32xf32>, tensor<32xf32> -> tensor<?x32xf32>
    // CHECK: mica.moe_gate {{.*}} softmax k(2) normalize
    %weights, %experts = mica.moe_gate %n2, %router softmax k(2) normalize : tensor<?x32xf32>, tensor<4x32xf32> -> tensor<?x2xf32>, tensor<?x2xi32>
    // CHECK: mica.moe_experts {{.*}} up({{.*}}) silu inner(24)
    %e = mica.moe_experts %n2, %weights, %experts, %eg, %ed up(%eu : tensor<4x24x32xf32>) silu inner(24)
        : tensor<?x32xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<4x24x32xf32>, tensor<4x32x24xf32> -> tensor<?x32xf32>
    %g = mica.linear %n2, %sg : tensor<?x32xf32>, tensor<24x32xf32> -> tensor<?x24xf32>
    %u = mica.linear %n2, %su : tensor<?x32xf32>, tensor<24x32xf32> -> tensor<?x24xf32>
    %s = mica.silu %g : tensor<?x24xf32>
    %h = mica.mul %s, %u : tensor<?x24xf32>
    %d = mica.linear %h, %sd : tensor<?x24xf32>, tensor<32x24xf32> -> tensor<?x32xf32>
    %both = mica.add %e, %d : tensor<?x32xf32>
    %x2 = mica.add %x1, %both : tensor<?x32xf32>
    return %x2, %k_next, %v_next : tensor<?x32xf32>, !mica.kv_cache<2 x 2 x 8 x f32>, !mica.kv_cache<2 x 2 x 8 x f32>
  }

  func.func @main(%tokens: tensor<?xi32> {mica.role = "tokens"}, %sequences: tensor<?xi32> {mica.role = "sequences"},
      %positions: tensor<?xi32> {mica.role = "positions"}, %logit_indices: tensor<?xi32> {mica.role = "logit_indices"},
      %k_cache: !mica.kv_cache<2 x 2 x 8 x f32> {mica.role = "cache"},
      %v_cache: !mica.kv_cache<2 x 2 x 8 x f32> {mica.role = "cache"})
      -> (tensor<?x96xf32> {mica.role = "logits"}, !mica.kv_cache<2 x 2 x 8 x f32> {mica.role = "cache"},
          !mica.kv_cache<2 x 2 x 8 x f32> {mica.role = "cache"}) {
    %table = mica.get_weight @"model.embed_tokens.weight" : tensor<96x32xf32>
    %x0 = mica.embedding %tokens, %table : tensor<?xi32>, tensor<96x32xf32> -> tensor<?x32xf32>
    %layer0 = arith.constant 0 : index
    %norm10 = mica.get_weight @"model.layers.0.input_layernorm.weight" : tensor<32xf32>
    %wq0 = mica.get_weight @"model.layers.0.self_attn.q_proj.weight" : tensor<32x32xf32>
    %wk0 = mica.get_weight @"model.layers.0.self_attn.k_proj.weight" : tensor<16x32xf32>
    %wv0 = mica.get_weight @"model.layers.0.self_attn.v_proj.weight" : tensor<16x32xf32>
    %qn0 = mica.get_weight @"model.layers.0.self_attn.q_norm.weight" : tensor<8xf32>
    %kn0 = mica.get_weight @"model.layers.0.self_attn.k_norm.weight" : tensor<8xf32>
    %wo0 = mica.get_weight @"model.layers.0.self_attn.o_proj.weight" : tensor<32x32xf32>
    %norm20 = mica.get_weight @"model.layers.0.post_attention_layernorm.weight" : tensor<32xf32>
    %router0 = mica.get_weight @"model.layers.0.mlp.gate.weight" : tensor<4x32xf32>
    %eg0 = mica.get_weight @"model.layers.0.mlp.gate_proj.experts" : tensor<4x24x32xf32>
    %eu0 = mica.get_weight @"model.layers.0.mlp.up_proj.experts" : tensor<4x24x32xf32>
    %ed0 = mica.get_weight @"model.layers.0.mlp.down_proj.experts" : tensor<4x32x24xf32>
    %sg0 = mica.get_weight @"model.layers.0.mlp.shared_experts.0.gate_proj.weight" : tensor<24x32xf32>
    %su0 = mica.get_weight @"model.layers.0.mlp.shared_experts.0.up_proj.weight" : tensor<24x32xf32>
    %sd0 = mica.get_weight @"model.layers.0.mlp.shared_experts.0.down_proj.weight" : tensor<32x24xf32>
    %x1, %k1, %v1 = func.call @layer(%x0, %k_cache, %v_cache, %layer0, %sequences, %positions, %norm10, %wq0, %wk0, %wv0, %qn0, %kn0, %wo0, %norm20, %router0, %eg0, %eu0, %ed0, %sg0, %su0, %sd0)
        : (tensor<?x32xf32>, !mica.kv_cache<2 x 2 x 8 x f32>, !mica.kv_cache<2 x 2 x 8 x f32>, index, tensor<?xi32>, tensor<?xi32>,
           tensor<32xf32>, tensor<32x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>, tensor<8xf32>, tensor<8xf32>, tensor<32x32xf32>, tensor<32xf32>,
           tensor<4x32xf32>, tensor<4x24x32xf32>, tensor<4x24x32xf32>, tensor<4x32x24xf32>, tensor<24x32xf32>, tensor<24x32xf32>, tensor<32x24xf32>)
        -> (tensor<?x32xf32>, !mica.kv_cache<2 x 2 x 8 x f32>, !mica.kv_cache<2 x 2 x 8 x f32>)
    %layer1 = arith.constant 1 : index
    %norm11 = mica.get_weight @"model.layers.1.input_layernorm.weight" : tensor<32xf32>
    %wq1 = mica.get_weight @"model.layers.1.self_attn.q_proj.weight" : tensor<32x32xf32>
    %wk1 = mica.get_weight @"model.layers.1.self_attn.k_proj.weight" : tensor<16x32xf32>
    %wv1 = mica.get_weight @"model.layers.1.self_attn.v_proj.weight" : tensor<16x32xf32>
    %qn1 = mica.get_weight @"model.layers.1.self_attn.q_norm.weight" : tensor<8xf32>
    %kn1 = mica.get_weight @"model.layers.1.self_attn.k_norm.weight" : tensor<8xf32>
    %wo1 = mica.get_weight @"model.layers.1.self_attn.o_proj.weight" : tensor<32x32xf32>
    %norm21 = mica.get_weight @"model.layers.1.post_attention_layernorm.weight" : tensor<32xf32>
    %router1 = mica.get_weight @"model.layers.1.mlp.gate.weight" : tensor<4x32xf32>
    %eg1 = mica.get_weight @"model.layers.1.mlp.gate_proj.experts" : tensor<4x24x32xf32>
    %eu1 = mica.get_weight @"model.layers.1.mlp.up_proj.experts" : tensor<4x24x32xf32>
    %ed1 = mica.get_weight @"model.layers.1.mlp.down_proj.experts" : tensor<4x32x24xf32>
    %sg1 = mica.get_weight @"model.layers.1.mlp.shared_experts.0.gate_proj.weight" : tensor<24x32xf32>
    %su1 = mica.get_weight @"model.layers.1.mlp.shared_experts.0.up_proj.weight" : tensor<24x32xf32>
    %sd1 = mica.get_weight @"model.layers.1.mlp.shared_experts.0.down_proj.weight" : tensor<32x24xf32>
    %x2, %k2, %v2 = func.call @layer(%x1, %k1, %v1, %layer1, %sequences, %positions, %norm11, %wq1, %wk1, %wv1, %qn1, %kn1, %wo1, %norm21, %router1, %eg1, %eu1, %ed1, %sg1, %su1, %sd1)
        : (tensor<?x32xf32>, !mica.kv_cache<2 x 2 x 8 x f32>, !mica.kv_cache<2 x 2 x 8 x f32>, index, tensor<?xi32>, tensor<?xi32>,
           tensor<32xf32>, tensor<32x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>, tensor<8xf32>, tensor<8xf32>, tensor<32x32xf32>, tensor<32xf32>,
           tensor<4x32xf32>, tensor<4x24x32xf32>, tensor<4x24x32xf32>, tensor<4x32x24xf32>, tensor<24x32xf32>, tensor<24x32xf32>, tensor<32x24xf32>)
        -> (tensor<?x32xf32>, !mica.kv_cache<2 x 2 x 8 x f32>, !mica.kv_cache<2 x 2 x 8 x f32>)
    %xs = mica.select_rows %x2, %logit_indices : tensor<?x32xf32>, tensor<?xi32> -> tensor<?x32xf32>
    %nw = mica.get_weight @"model.norm.weight" : tensor<32xf32>
    %xn = mica.rmsnorm %xs, %nw eps(1.0e-06) rounding(after_weight) : tensor<?x32xf32>, tensor<32xf32> -> tensor<?x32xf32>
    // CHECK: mica.lm_head
    %logits = mica.lm_head %xn, %table : tensor<?x32xf32>, tensor<96x32xf32> -> tensor<?x96xf32>
    return %logits, %k2, %v2 : tensor<?x96xf32>, !mica.kv_cache<2 x 2 x 8 x f32>, !mica.kv_cache<2 x 2 x 8 x f32>
  }
}
