#include "frontend/families/Families.h"
#include "frontend/families/Gpt2.h"
#include "frontend/support/InputError.h"

namespace mica {

using H = Hyperparameters;

static constexpr NamingTable names = changed(transformersNames, [](NamingTable &names) {
  names.embedding = "transformer.word_embeddings";
  names.embeddingNorm = "transformer.word_embeddings_layernorm";
  names.layers = "transformer.h";
  names.finalNorm = "transformer.ln_f";
  names.qkv = "self_attention.query_key_value";
  names.qkvOrder = QkvOrder::PerHead;
  names.query = "self_attention.query";
  names.key = "self_attention.key";
  names.value = "self_attention.value";
  names.out = "self_attention.dense";
  names.up = "mlp.dense_h_to_4h";
  names.down = "mlp.dense_4h_to_h";
});

/// Rejects the config of sliced matmuls whose results are summed, because that code omits their
/// biases.
static llvm::Error refuseSlices(const FamilyEvidence &evidence) {
  if (!evidence.config)
    return llvm::Error::success();
  const llvm::json::Value *exact = evidence.config->get("slow_but_exact");
  bool isExact =
      exact && *exact != llvm::json::Value(false) && exact->kind() != llvm::json::Value::Null;
  if (!isExact || evidence.config->getInteger("pretraining_tp").value_or(1) <= 1)
    return llvm::Error::success();
  return inputError(
      evidence.path,
      "has \"slow_but_exact\" and \"pretraining_tp\" above 1, which together omit biases",
      "set \"slow_but_exact\" to false");
}

// ALiBi instead of position embeddings; embedding norm.
llvm::Expected<const Family *> chooseBloom(const FamilyEvidence &evidence) {
  if (llvm::Error error = refuseSlices(evidence))
    return std::move(error);
  static constexpr llvm::StringLiteral architectures[] = {"BloomForCausalLM"};
  static constexpr KeyRule own[] = {
      {"hidden_size", &H::hidden, ranges::width, int64_t(64)},
      {"n_embed", &H::hidden, ranges::width, Unset()},
      {"n_layer", &H::layers, ranges::layers},
      {"n_head", &H::heads, ranges::heads},
      {"num_attention_heads", &H::heads, ranges::heads, Unset()},
      {"seq_length", &H::maxPositions, ranges::positions, int64_t(2048)},
      {"vocab_size", &H::vocab, ranges::vocab},
      {"layer_norm_epsilon", &H::eps, ranges::eps, 1e-5},
      {"tie_word_embeddings", &H::tiedHead, {}, true},
  };
  static constexpr FixedKey fixed[] = {
      {"apply_residual_connection_post_layernorm", "[false]"},
      {"n_inner", "[null]"},
  };
  static constexpr IgnoredKeyRow ignoredKeys[] = {
      {"attention_softmax_in_fp32", "always happens"},
      {"bias_dropout_fusion", reasons::implementation},
      {"masked_softmax_fusion", reasons::implementation},
      {"offset_alibi", "shifts all scores of a row equally"},
      {"pretraining_tp", reasons::implementation},
      {"skip_bias_add", reasons::implementation},
      {"skip_bias_add_qkv", reasons::implementation},
      {"slow_but_exact", reasons::implementation},
  };
  static const llvm::ArrayRef<KeyRule> keys[] = {own};
  static const Family family = {
      .name = "bloom",
      .architectures = architectures,
      .keys = keys,
      .fixed = fixed,
      .traits = {.norm = NormKind::Layer,
                 .normBias = true,
                 .rope = false,
                 .alibi = true,
                 .embeddingNorm = true,
                 .gated = false,
                 .activation = Activation::GeluTanh},
      .names = &names,
      .derive = deriveLikeGpt2,
      .ignoredKeys = ignoredKeys,
  };
  return &family;
}

static constexpr llvm::ArrayRef<KeyRule> ggufKeys[] = {gguf::sizeKeys, gguf::layerNormKeys};
// The inner size follows from the hidden size.
static constexpr IgnoredKeyRow ggufIgnoredKeys[] = {{"feed_forward_length", reasons::used}};

constexpr GgufArchitecture ggufBloom = {
    .name = "bloom", .keys = ggufKeys, .ignoredKeys = ggufIgnoredKeys, .names = joinedGgufNames};

} // namespace mica
