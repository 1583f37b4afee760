#include "frontend/config/gguf/GgufArchitecture.h"

#include "llvm/Support/Error.h"
#include "llvm/Support/GlobPattern.h"

namespace mica {
namespace {

using N = NamingTable;

constexpr llvm::StringLiteral bookkeeping = "says who made the file and from what";
constexpr llvm::StringLiteral training = "says how the model was trained";

constexpr GgufKey commonKeys[] = {
    {"context_length", "max_position_embeddings"},
    {"embedding_length", "hidden_size"},
    {"block_count", "num_hidden_layers"},
    {"feed_forward_length", "intermediate_size"},
    {"attention.head_count", "num_attention_heads"},
    {"attention.head_count_kv", "num_key_value_heads"},
    {"attention.key_length", "head_dim"},
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps"},
    {"attention.sliding_window", "sliding_window"},
    {"rope.freq_base", "rope_theta"},
    {.name = "attention.causal", .values = "[true]"},
    {.name = "use_parallel_residual", .values = "[false]"},
    {.name = "vocab_size", .reason = "the rows of the embedding are counted"},
    {.name = "rope.scaling.finetuned", .reason = training},
    {.name = "tensor_data_layout", .reason = "says how an older tool stored the original"},
    // A dense model may say that it has no experts.
    {.name = "expert_count", .values = "[0]"},
    {.name = "expert_used_count", .values = "[0]"},
};

constexpr GgufKey expertKeys[] = {
    {"expert_count", "num_experts"},
    {"expert_used_count", "num_experts_per_tok"},
    {"expert_feed_forward_length", "moe_intermediate_size"},
    {"expert_shared_feed_forward_length", "shared_expert_intermediate_size"},
    {"expert_weights_norm", "norm_topk_prob"},
    {.name = "expert_gating_func", .values = "[1]"}, // softmax
    {.name = "expert_shared_count", .values = "[0, 1]"},
    {.name = "expert_weights_scale", .values = "[0, 1]"},
};

constexpr GgufKey mixtralKeys[] = {
    {"expert_count", "num_local_experts"},
    {"expert_used_count", "num_experts_per_tok"},
};

constexpr GgufKey graniteScales[] = {
    {"attention.scale", "attention_multiplier"},
    {"embedding_scale", "embedding_multiplier"},
    {"residual_scale", "residual_multiplier"},
    {"logit_scale", "logits_scaling"},
};

constexpr GgufKey softcaps[] = {
    {"attn_logit_softcapping", "attn_logit_softcapping"},
    {"final_logit_softcapping", "final_logit_softcapping"},
};

constexpr GgufConstant attentionBias = {"attention_bias", "", "blk.0.attn_q.bias"};
constexpr GgufConstant llamaConstants[] = {
    attentionBias,
    {"mlp_bias", "", "blk.0.ffn_gate.bias"},
};
constexpr GgufConstant attentionConstants[] = {attentionBias};
constexpr GgufConstant qwen3MoeConstants[] = {attentionBias, {"norm_topk_prob", "true"}};
constexpr GgufConstant qwen2MoeConstants[] = {{"qkv_bias", "", "blk.0.attn_q.bias"},
                                              {"norm_topk_prob", "false"}};

/// Scores are divided by the root of the head's size, and in the model of 27 billion by that of the
/// hidden size's share of a head.
void deriveGemma2(llvm::json::Object &config) {
  auto number = [&](llvm::StringRef key) { return config.getInteger(key).value_or(0); };
  int64_t heads = number("num_attention_heads");
  bool isLargest = number("num_hidden_layers") == 46 && heads > 0;
  config["query_pre_attn_scalar"] = isLargest ? number("hidden_size") / heads : number("head_dim");
}

constexpr GgufArchitecture architectures[] = {
    {.name = "gemma", .modelType = "gemma", .addedToGains = true},
    {.name = "gemma2",
     .modelType = "gemma2",
     .keys = softcaps,
     .addedToGains = true,
     .derive = deriveGemma2},
    {.name = "granite",
     .modelType = "granite",
     .keys = graniteScales,
     .constants = llamaConstants,
     .pairing = Pairing::Interleaved},
    {.name = "llama",
     .modelType = "llama",
     .constants = llamaConstants,
     .pairing = Pairing::Interleaved},
    {.name = "llama",
     .modelType = "mixtral",
     .keys = mixtralKeys,
     .pairing = Pairing::Interleaved,
     .hasExperts = true},
    {.name = "olmo2", .modelType = "olmo2", .constants = attentionConstants},
    {.name = "phi3", .modelType = "phi3"},
    {.name = "qwen2", .modelType = "qwen2"},
    {.name = "qwen2moe",
     .modelType = "qwen2_moe",
     .keys = expertKeys,
     .constants = qwen2MoeConstants},
    {.name = "qwen3", .modelType = "qwen3", .constants = attentionConstants},
    {.name = "qwen3moe",
     .modelType = "qwen3_moe",
     .keys = expertKeys,
     .constants = qwen3MoeConstants},
};

struct IrrelevantKey {
  llvm::StringLiteral pattern, reason;
};
constexpr IrrelevantKey irrelevantKeys[] = {
    {"general.architecture", "chose the family"},
    {"general.alignment", "says where tensors begin"},
    {"general.file_type", "sums up the types, which every tensor has of its own"},
    {"general.*", bookkeeping},
    {"quantize.*", bookkeeping},
    {"imatrix.*", bookkeeping},
    {"mradermacher.*", bookkeeping},
    {"split.*", "says how the file was split"},
};

constexpr GgufModule modules[] = {
    {"token_embd", &N::embedding},
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
    {"attn_q_norm", &N::queryNorm},
    {"attn_k_norm", &N::keyNorm},
    {"post_attention_norm", &N::postAttentionNorm},
    {"ffn_norm", &N::ffnNorm},
    {"post_ffw_norm", &N::postFfnNorm},
    {"ffn_gate", &N::gate},
    {"ffn_up", &N::gateUp},
    {"ffn_up", &N::up},
    {"ffn_down", &N::down},
    {"ffn_gate_inp", &N::router},
    {"ffn_gate_exps", &N::expertGate, GgufOwner::Experts},
    {"ffn_up_exps", &N::expertUp, GgufOwner::Experts},
    {"ffn_down_exps", &N::expertDown, GgufOwner::Experts},
    {"ffn_gate_shexp", &N::expertGate, GgufOwner::SharedExpert},
    {"ffn_up_shexp", &N::expertUp, GgufOwner::SharedExpert},
    {"ffn_down_shexp", &N::expertDown, GgufOwner::SharedExpert},
    {.name = "ffn_gate_inp_shexp", .module = &N::sharedExpertGate, .isRow = true},
};

} // namespace

llvm::ArrayRef<GgufArchitecture> ggufArchitectures() { return architectures; }

llvm::ArrayRef<GgufKey> ggufCommonKeys() { return commonKeys; }

llvm::ArrayRef<GgufModule> ggufLayerModules() { return layerModules; }

llvm::ArrayRef<GgufModule> ggufModules() { return modules; }

std::optional<llvm::StringRef> whyGgufKeyIsIrrelevant(llvm::StringRef key) {
  for (const IrrelevantKey &row : irrelevantKeys)
    if (llvm::cantFail(llvm::GlobPattern::create(row.pattern)).match(key))
      return row.reason;
  return std::nullopt;
}

} // namespace mica
