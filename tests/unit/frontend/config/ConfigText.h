//===- ConfigText.h - configs made for a test -------------------*- C++ -*-===//
#ifndef MICA_TESTS_UNIT_FRONTEND_CONFIG_CONFIGTEXT_H
#define MICA_TESTS_UNIT_FRONTEND_CONFIG_CONFIGTEXT_H

#include "frontend/config/ConfigReader.h"

#include "frontend/support/Json.h"
#include "tests/unit/frontend/TestFolder.h"

#include <set>

namespace mica::test {

/// `base` with the keys of `changes` set; a change to "absent" removes the key.
inline llvm::json::Object changed(llvm::StringRef base, llvm::StringRef changes) {
  llvm::json::Value config = llvm::cantFail(parseJson(base, "base"));
  llvm::json::Value wanted = llvm::cantFail(parseJson(changes, "changes"));
  for (auto &[key, value] : *wanted.getAsObject())
    if (value == llvm::json::Value("absent"))
      config.getAsObject()->erase(llvm::StringRef(key));
    else
      (*config.getAsObject())[key.str()] = value;
  return std::move(*config.getAsObject());
}

/// Reads `base` with `changes`; `tensors` are the names of the weights, empty if there are none.
inline llvm::Expected<ModelConfig> configOf(llvm::StringRef base, llvm::StringRef changes = "{}",
                                            const std::set<std::string> &tensors = {}) {
  llvm::json::Object config = changed(base, changes);
  auto hasTensor = [&](llvm::StringRef name) { return tensors.count(name.str()) > 0; };
  if (tensors.empty())
    return modelConfigFrom(config, "config.json", nullptr);
  return modelConfigFrom(config, "config.json", hasTensor);
}

inline std::string problemOf(llvm::StringRef base, llvm::StringRef changes,
                             const std::set<std::string> &tensors = {}) {
  return messageOf(configOf(base, changes, tensors));
}

inline constexpr llvm::StringLiteral llamaText = R"({
  "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 64, "intermediate_size": 172,
  "num_hidden_layers": 5, "num_attention_heads": 8, "num_key_value_heads": 4, "vocab_size": 512,
  "max_position_embeddings": 512, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "rope_scaling": null,
  "tie_word_embeddings": true, "bos_token_id": 1, "eos_token_id": 2, "torch_dtype": "float32"})";

inline constexpr llvm::StringLiteral qwen3MoeText = R"({
  "model_type": "qwen3_moe", "hidden_size": 64, "intermediate_size": 96, "moe_intermediate_size": 32,
  "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32, "vocab_size": 128,
  "max_position_embeddings": 256, "rms_norm_eps": 1e-6, "num_experts": 8, "num_experts_per_tok": 2,
  "norm_topk_prob": true, "decoder_sparse_step": 1, "mlp_only_layers": [], "use_sliding_window": false,
  "sliding_window": 4096, "max_window_layers": 4})";

inline constexpr llvm::StringLiteral miniMind1Text = R"({
  "model_type": "minimind", "dim": 512, "n_layers": 8, "n_heads": 8, "n_kv_heads": 2, "vocab_size": 6400,
  "norm_eps": 1e-5, "max_seq_len": 8192, "rope_theta": 1000000.0, "multiple_of": 64, "hidden_dim": null,
  "use_moe": false, "flash_attn": true, "dropout": 0.0})";

inline constexpr llvm::StringLiteral miniMind2Text = R"({
  "model_type": "minimind", "hidden_size": 512, "num_hidden_layers": 8, "num_attention_heads": 8,
  "num_key_value_heads": 2, "vocab_size": 6400, "rms_norm_eps": 1e-5, "max_position_embeddings": 32768,
  "rope_theta": 1000000.0, "inference_rope_scaling": false, "rope_scaling": null, "use_moe": false,
  "n_routed_experts": 4, "num_experts_per_tok": 2, "n_shared_experts": 1, "norm_topk_prob": true,
  "scoring_func": "softmax", "aux_loss_alpha": 0.01, "seq_aux": true, "intermediate_size": null})";

inline constexpr llvm::StringLiteral miniMind3Text = R"({
  "model_type": "minimind", "hidden_size": 768, "num_hidden_layers": 8, "num_attention_heads": 8,
  "num_key_value_heads": 4, "head_dim": 96, "vocab_size": 6400, "rms_norm_eps": 1e-6, "use_moe": false,
  "max_position_embeddings": 32768, "rope_theta": 1000000.0, "tie_word_embeddings": true,
  "num_experts": 4, "num_experts_per_tok": 1, "norm_topk_prob": true, "inference_rope_scaling": false})";

} // namespace mica::test

#endif // MICA_TESTS_UNIT_FRONTEND_CONFIG_CONFIGTEXT_H
