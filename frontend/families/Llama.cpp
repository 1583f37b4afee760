#include "frontend/families/Families.h"

namespace mica {

using H = Hyperparameters;

// The base architecture of the other descriptions: RMS pre-norms, rope, GQA, a gated MLP.
llvm::Expected<const Family *> chooseLlama(const FamilyEvidence &) {
  static constexpr llvm::StringLiteral architectures[] = {"LlamaForCausalLM"};
  static constexpr KeyRule own[] = {
      {"attention_bias", &H::attentionBias, {}, false},
      {"mlp_bias", &H::mlpBias, {}, false},
  };
  static constexpr FixedKey fixed[] = {
      {"pretraining_tp", "[1, null]"},
      {"rope_interleaved", "[false]"},
      {"partial_rotary_factor", "[1, null]"},
      {"sliding_window", "[null]"},
  };
  static constexpr IgnoredKeyRow ignoredKeys[] = {{"is_llama_config", reasons::bookkeeping}};
  static const llvm::ArrayRef<KeyRule> keys[] = {own, commonKeys()};
  static const Family llama = {
      .name = "llama",
      .architectures = architectures,
      .keys = keys,
      .fixed = fixed,
      .traits = {},
      .ignoredKeys = ignoredKeys,
  };
  return &llama;
}

static constexpr llvm::ArrayRef<KeyRule> ggufKeys[] = {gguf::sizeKeys, gguf::decoderKeys,
                                                       gguf::rmsNormKeys};
static constexpr GgufFlag ggufFlags[] = {{&H::attentionBias, "blk.0.attn_q.bias"},
                                         {&H::mlpBias, "blk.0.ffn_gate.bias"}};

constexpr GgufArchitecture ggufLlama = {
    .name = "llama", .keys = ggufKeys, .flags = ggufFlags, .pairing = Pairing::Interleaved};

} // namespace mica
