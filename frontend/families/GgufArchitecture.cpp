#include "frontend/families/GgufArchitecture.h"

namespace mica {
namespace {

using N = NamingTable;

constexpr GgufModule modules[] = {
    {"token_embd", &N::embedding},
    {"token_embd_norm", &N::embeddingNorm},
    {"position_embd", &N::positions},
    {"output_norm", &N::finalNorm},
    {"output", &N::head},
};

constexpr GgufModule layerModules[] = {
    {"attn_norm", &N::attentionNorm},
    {"attn_qkv", &N::qkv},
    {"attn_q", &N::query},
    {"attn_k", &N::key},
    {"attn_v", &N::value},
    {"attn_output", &N::out},
    {.name = "attn_sinks", .module = &N::sinks, .part = llvm::StringLiteral(".weight")},
    {"attn_q_a", &N::queryDown},
    {"attn_q_a_norm", &N::queryDownNorm},
    {"attn_q_b", &N::queryUp},
    {"attn_kv_a_mqa", &N::latentDown},
    {"attn_kv_a_norm", &N::latentNorm},
    {"attn_kv_b", &N::latentUp},
    {"attn_k_b", &N::latentUpKeys},
    {"attn_v_b", &N::latentUpValues},
    {"attn_q_norm", &N::queryNorm},
    {"attn_k_norm", &N::keyNorm},
    {"shortconv.in_proj", &N::convIn},
    {"shortconv.conv", &N::conv},
    {"shortconv.out_proj", &N::convOut},
    {"ssm_in", &N::mambaIn},
    {"ssm_conv1d", &N::conv},
    {.name = "ssm_dt", .module = &N::dtBias, .part = llvm::StringLiteral(".bias")},
    {.name = "ssm_a", .module = &N::aLog, .part = llvm::StringLiteral(""), .isNegatedExp = true},
    {.name = "ssm_d", .module = &N::skip, .part = llvm::StringLiteral("")},
    {"ssm_norm", &N::mambaNorm},
    {"ssm_out", &N::mambaOut},
    {"post_attention_norm", &N::postAttentionNorm},
    {"ffn_norm", &N::ffnNorm},
    {"post_ffw_norm", &N::postFfnNorm},
    {"ffn_gate", &N::gate},
    {"ffn_up", &N::gateUp},
    {"ffn_up", &N::up},
    {"ffn_down", &N::down},
    {"ffn_gate_inp", &N::router},
    {.name = "exp_probs_b", .module = &N::correctionBias, .part = llvm::StringLiteral(".bias")},
    {"ffn_gate_exps", &N::expertGate, GgufOwner::Experts},
    {"ffn_up_exps", &N::expertUp, GgufOwner::Experts},
    {"ffn_down_exps", &N::expertDown, GgufOwner::Experts},
    {"ffn_gate_shexp", &N::expertGate, GgufOwner::SharedExpert},
    {"ffn_up_shexp", &N::expertUp, GgufOwner::SharedExpert},
    {"ffn_down_shexp", &N::expertDown, GgufOwner::SharedExpert},
    {"ffn_latent_down", &N::expertsIn},
    {"ffn_latent_up", &N::expertsOut},
    {.name = "ffn_gate_inp_shexp", .module = &N::sharedExpertGate, .isRow = true},
};

} // namespace

llvm::ArrayRef<GgufRopeKey> ggufCommonRopeKeys() {
  // llama.cpp divides frequencies by the factor for every type, including longrope, and multiplies
  // sines by attn_factor for every type, even without scaling.
  static constexpr GgufRopeKey keys[] = {
      {"rope.scaling.type", "rope_type"},
      {.name = "rope.scaling.factor",
       .parameter = "factor",
       .types = "linear yarn",
       .requiredBy = "yarn",
       .neutral = "[0, 1]"},
      {.name = "rope.scale_linear", // the older name
       .parameter = "factor",
       .types = "linear",
       .neutral = "[0, 1]"},
      {.name = "rope.scaling.original_context_length",
       .parameter = "original_max_position_embeddings",
       .types = "yarn longrope",
       .mayBeUnused = true},
      {.name = "rope.scaling.attn_factor",
       .parameter = "attention_factor",
       .types = "longrope",
       .requiredBy = "longrope",
       .neutral = "[1]"},
      {"rope.scaling.yarn_attn_factor", "attention_factor", "yarn"},
      {"rope.scaling.yarn_beta_fast", "beta_fast", "yarn"},
      {"rope.scaling.yarn_beta_slow", "beta_slow", "yarn"},
  };
  return keys;
}

llvm::ArrayRef<GgufModule> ggufLayerModules() { return layerModules; }

llvm::ArrayRef<GgufModule> ggufModules() { return modules; }

} // namespace mica
