#include "frontend/families/GgufArchitecture.h"

#include "frontend/families/IrrelevantKeys.h"

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
    {.name = "attention.value_length"},
    {.name = "rope.dimension_count"},
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

constexpr GgufKey bloomKeys[] = {
    {"context_length", "seq_length"},    {"block_count", "n_layer"},
    {"attention.head_count", "n_head"},  {"attention.layer_norm_epsilon", "layer_norm_epsilon"},
    {.name = "attention.head_count_kv"}, {.name = "feed_forward_length"},
};

constexpr GgufKey gpt2Keys[] = {
    {"context_length", "n_positions"},   {"embedding_length", "n_embd"},
    {"block_count", "n_layer"},          {"feed_forward_length", "n_inner"},
    {"attention.head_count", "n_head"},  {"attention.layer_norm_epsilon", "layer_norm_epsilon"},
    {.name = "attention.head_count_kv"},
};

constexpr GgufKey commandRKeys[] = {
    {"attention.layer_norm_epsilon", "layer_norm_eps"},
    {"logit_scale", "logit_scale"},
};

constexpr GgufKey parallelKeys[] = {
    {"attention.layer_norm_epsilon", "layer_norm_eps"},
    {"use_parallel_residual", "use_parallel_residual"},
};

constexpr GgufKey starcoder2Keys[] = {{"attention.layer_norm_epsilon", "norm_epsilon"}};

constexpr GgufKey gemma3Keys[] = {
    {"final_logit_softcapping", "final_logit_softcapping"},
    {"attention.sliding_window_pattern", "sliding_window_pattern"},
    {"rope.freq_base_swa", "rope_local_base_freq"},
};

constexpr GgufKey gptOssKeys[] = {
    {"expert_count", "num_local_experts"},
    {"expert_used_count", "num_experts_per_tok"},
    {"expert_feed_forward_length", "intermediate_size"},
    // Scores of the chosen experts alone.
    {.name = "expert_gating_func", .values = "[3]"},
};

constexpr GgufKey firstDeepSeekKeys[] = {
    {"leading_dense_block_count", "first_k_dense_replace"},
    {"expert_count", "n_routed_experts"},
    {"expert_used_count", "num_experts_per_tok"},
    {"expert_shared_count", "n_shared_experts"},
    {"expert_feed_forward_length", "moe_intermediate_size"},
    {"expert_weights_norm", "norm_topk_prob"},
    {.name = "expert_gating_func", .values = "[1]"}, // softmax
    {.name = "expert_weights_scale", .values = "[0, 1]"},
};

constexpr GgufKey deepSeekKeys[] = {
    {"attention.q_lora_rank", "q_lora_rank"},
    {"attention.kv_lora_rank", "kv_lora_rank"},
    {"leading_dense_block_count", "first_k_dense_replace"},
    {"expert_count", "n_routed_experts"},
    {"expert_used_count", "num_experts_per_tok"},
    {"expert_shared_count", "n_shared_experts"},
    {"expert_feed_forward_length", "moe_intermediate_size"},
    {"expert_group_count", "n_group"},
    {"expert_group_used_count", "topk_group"},
    {"expert_weights_scale", "routed_scaling_factor"},
    {"expert_weights_norm", "norm_topk_prob"},
    {.name = "expert_gating_func", .values = "[0, 1, 2]"}, // which chose the family
    {.name = "attention.head_count_kv", .reason = "heads share the latent that is cached"},
    {.name = "attention.key_length"},
    {.name = "attention.key_length_mla"},
    {.name = "attention.value_length_mla"},
    {.name = "rope.scaling.yarn_log_multiplier"},
};

// llama.cpp divides these weights by their sum where transformers never does.
constexpr GgufKey deepSeek2Keys[] = {{.name = "expert_weights_norm", .values = "[false]"}};

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

constexpr GgufConstant commandRConstants[] = {attentionBias,
                                              {"use_qk_norm", "", "blk.0.attn_q_norm.weight"}};
constexpr GgufConstant stableLmConstants[] = {{"use_qkv_bias", "", "blk.0.attn_q.bias"},
                                              {"qk_layernorm", "", "blk.0.attn_q_norm.weight"}};
constexpr GgufConstant gptNeoXConstants[] = {{"attention_bias", "", "blk.0.attn_qkv.bias"}};
constexpr GgufConstant starcoder2Constants[] = {{"use_bias", "", "blk.0.attn_q.bias"}};

// What converters lay differently than the family has it; the names of transformers otherwise.
constexpr NamingTable joinedNames = changed(transformersNames, [](NamingTable &names) {
  names.positions = "model.position_embeddings";
  names.embeddingNorm = "model.embed_layernorm";
  names.qkv = "self_attn.qkv_proj";
});
constexpr NamingTable gptOssNames = changed(transformersNames, [](NamingTable &names) {
  names.sinks = "self_attn.sinks";
  names.router = "mlp.router";
});
constexpr NamingTable deepSeekHeadNames = changed(latentNames, [](NamingTable &names) {
  names.latentUpKeys = "self_attn.k_b_proj";
  names.latentUpValues = "self_attn.v_b_proj";
});

/// A key of the file; 0 where it is no number.
double numberOf(const GgufModel &model, llvm::StringRef key) {
  const GgufValue *value = model.find(key);
  return value ? value->number().value_or(0) : 0;
}

/// Scores are divided by the root of the head's size, and in the largest model by that of the
/// hidden size's share of a head.
void deriveGemma(llvm::json::Object &config, int64_t layersOfLargest) {
  auto number = [&](llvm::StringRef key) { return config.getInteger(key).value_or(0); };
  int64_t heads = number("num_attention_heads");
  bool isLargest = number("num_hidden_layers") == layersOfLargest && heads > 0;
  config["query_pre_attn_scalar"] = isLargest ? number("hidden_size") / heads : number("head_dim");
}

/// The scaling of rope as it is so far; null where there is none.
llvm::json::Object *scalingOf(llvm::json::Object &config) {
  return config.getObject("rope_scaling");
}

/// The ends of yarn's ramp are not rounded. Without a key for a scaling there is none.
void deriveGptOss(const GgufModel &, llvm::json::Object &config) {
  if (llvm::json::Object *scaling = scalingOf(config))
    (*scaling)["truncate"] = false;
  else
    config["rope_scaling"] = llvm::json::Object{{"rope_type", "default"}};
}

/// The parts of heads, groups of experts, and what yarn multiplies scores with.
void deriveDeepSeek(const GgufModel &model, llvm::json::Object &config) {
  // The readers of configs refuse what is no size.
  auto integer = [&](llvm::StringRef name) -> int64_t {
    const GgufValue *value = model.find(("deepseek2." + name).str());
    int64_t number = value ? value->integer().value_or(0) : 0;
    return number > 0 && number <= INT32_MAX ? number : 0;
  };
  auto size = [&](llvm::StringRef name, llvm::StringRef older) {
    int64_t own = integer(name);
    return own > 0 ? own : integer(older);
  };
  int64_t turned = integer("rope.dimension_count");
  config["qk_rope_head_dim"] = turned;
  config["qk_nope_head_dim"] = size("attention.key_length_mla", "attention.key_length") - turned;
  config["v_head_dim"] = size("attention.value_length_mla", "attention.value_length");
  if (!config.get("q_lora_rank"))
    config["q_lora_rank"] = nullptr;
  config["attention_bias"] = model.findTensor("blk.0.attn_kv_a_mqa.bias") != nullptr;
  // A tenth of it is stored, and it counts twice so that it cancels in rope.
  double multiplier = 10 * numberOf(model, "deepseek2.rope.scaling.yarn_log_multiplier");
  if (llvm::json::Object *scaling = scalingOf(config); scaling && multiplier != 0)
    (*scaling)["mscale"] = (*scaling)["mscale_all_dim"] = multiplier;
}

bool scoresBySigmoid(const GgufModel &model) {
  return numberOf(model, "deepseek2.expert_gating_func") == 2;
}

/// The first converters did not write how many groups the experts are in. Of the models from that
/// time those with up to 64 softmax-scored experts have none, DeepSeek V2 (160) has 8; of those
/// scored by sigmoids V3 (256) has the 8 that its family takes by default, others have none.
llvm::StringRef groupsLackingOfDeepSeek(const GgufModel &model) {
  constexpr int64_t mostWithoutGroups = 64, expertsOfV3 = 256;
  double groups = numberOf(model, "deepseek2.expert_group_count"),
         experts = numberOf(model, "deepseek2.expert_count");
  if (groups > 1 && !model.find("deepseek2.expert_group_used_count"))
    return "expert_group_used_count";
  bool isOpen = scoresBySigmoid(model) ? experts != expertsOfV3 : experts > mostWithoutGroups;
  return !model.find("deepseek2.expert_group_count") && isOpen ? "expert_group_count" : "";
}

const NamingTable *namesOfDeepSeek(const GgufModel &model) {
  return model.findTensor("blk.0.attn_k_b.weight") && !model.findTensor("blk.0.attn_kv_b.weight")
             ? &deepSeekHeadNames
             : &latentNames;
}

const NamingTable *joined(const GgufModel &) { return &joinedNames; }
const NamingTable *usual(const GgufModel &) { return &transformersNames; }

constexpr GgufArchitecture architectures[] = {
    {.name = "bloom", .modelType = "bloom", .keys = bloomKeys, .names = joined},
    {.name = "command-r",
     .modelType = "cohere",
     .keys = commandRKeys,
     .constants = commandRConstants},
    {.name = "deepseek",
     .modelType = "deepseek",
     .keys = firstDeepSeekKeys,
     .constants = attentionConstants,
     .pairing = Pairing::Interleaved},
    {.name = "deepseek2",
     .modelType = "deepseek_v2",
     .keys = deepSeekKeys,
     .own = deepSeek2Keys,
     .lacking = groupsLackingOfDeepSeek,
     .names = namesOfDeepSeek,
     .derive =
         [](const GgufModel &model, llvm::json::Object &config) {
           deriveDeepSeek(model, config);
           bool isGrouped = config.getInteger("n_group").value_or(1) > 1;
           config["topk_method"] = isGrouped ? "group_limited_greedy" : "greedy";
         }},
    {.name = "deepseek2",
     .modelType = "deepseek_v3",
     .keys = deepSeekKeys,
     .isMeant = scoresBySigmoid,
     .lacking = groupsLackingOfDeepSeek,
     .names = namesOfDeepSeek,
     .derive = deriveDeepSeek},
    {.name = "gemma", .modelType = "gemma", .addedToGains = true},
    {.name = "gemma2",
     .modelType = "gemma2",
     .keys = softcaps,
     .addedToGains = true,
     .derive = [](const GgufModel &, llvm::json::Object &config) { deriveGemma(config, 46); }},
    {.name = "gemma3",
     .modelType = "gemma3_text",
     .keys = gemma3Keys,
     .addedToGains = true,
     .derive = [](const GgufModel &, llvm::json::Object &config) { deriveGemma(config, 62); }},
    {.name = "glm4",
     .modelType = "glm4",
     .constants = attentionConstants,
     .turnedPart = "partial_rotary_factor"},
    {.name = "gpt-oss",
     .modelType = "gpt_oss",
     .keys = gptOssKeys,
     .constants = attentionConstants,
     .names = [](const GgufModel &) { return &gptOssNames; },
     .derive = deriveGptOss},
    {.name = "gpt2", .modelType = "gpt2", .keys = gpt2Keys, .names = joined},
    {.name = "gptneox",
     .modelType = "gpt_neox",
     .keys = parallelKeys,
     .constants = gptNeoXConstants,
     .turnedPart = "rotary_pct",
     .names = joined},
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
     .isMeant = [](const GgufModel &model) { return numberOf(model, "llama.expert_count") > 0; }},
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
    {.name = "stablelm",
     .modelType = "stablelm",
     .keys = parallelKeys,
     .constants = stableLmConstants,
     .turnedPart = "partial_rotary_factor",
     .names = usual},
    {.name = "starcoder2",
     .modelType = "starcoder2",
     .keys = starcoder2Keys,
     .constants = starcoder2Constants},
};

struct IrrelevantKey {
  llvm::StringLiteral pattern, reason;
};
constexpr IrrelevantKey irrelevantKeys[] = {
    {"general.architecture", reasons::used},
    {"general.alignment", reasons::used},
    {"general.file_type", "sums up the types, which every tensor has of its own"},
    {"general.*", bookkeeping},
    {"quantize.*", bookkeeping},
    {"imatrix.*", bookkeeping},
    {"mradermacher.*", bookkeeping},
    {"split.*", "says how the file was split"},
};

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
    {.name = "attn_sinks", .module = &N::sinks, .part = ".weight"},
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
    {"post_attention_norm", &N::postAttentionNorm},
    {.name = "post_attention_norm", .module = &N::ffnNorm, .only = &gptOssNames},
    {"ffn_norm", &N::ffnNorm},
    {"post_ffw_norm", &N::postFfnNorm},
    {"ffn_gate", &N::gate},
    {"ffn_up", &N::gateUp},
    {"ffn_up", &N::up},
    {"ffn_down", &N::down},
    {"ffn_gate_inp", &N::router},
    {.name = "exp_probs_b", .module = &N::correction, .part = ".bias"},
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
