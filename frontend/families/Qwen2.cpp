#include "frontend/families/Families.h"

namespace mica {

using H = Hyperparameters;

// Llama with q, k and v biases; the later layers may have a sliding window.
llvm::Expected<const Family *> chooseQwen2(const FamilyEvidence &) {
  static constexpr llvm::StringLiteral architectures[] = {"Qwen2ForCausalLM"};
  static constexpr KeyRule own[] = {
      {"num_key_value_heads", &H::kvHeads, ranges::heads, int64_t(32), Null::Allowed},
      {"use_sliding_window", &H::useWindow, {}, false},
      {"sliding_window", &H::window, ranges::window, int64_t(4096), Null::Allowed},
      {"max_window_layers", &H::windowLayers, {0, 4096}, int64_t(28)},
  };
  static const llvm::ArrayRef<KeyRule> keys[] = {own, commonKeys()};
  static const Family family = {
      .name = "qwen2",
      .architectures = architectures,
      .keys = keys,
      .fixed = {},
      .traits = {.usesSlidingWindow = [](const Hyperparameters &h,
                                         int64_t layer) { return layer >= *h.windowLayers; }},
      .derive =
          [](Hyperparameters &h) {
            h.attentionBias = true;
            h.outBias = false;
          },
  };
  return &family;
}

static constexpr llvm::ArrayRef<KeyRule> ggufKeys[] = {gguf::sizeKeys, gguf::decoderKeys,
                                                       gguf::rmsNormKeys};
static constexpr IgnoredKeyRow ggufIgnoredKeys[] = {gguf::ignoredWindow};

constexpr GgufArchitecture ggufQwen2 = {
    .name = "qwen2", .keys = ggufKeys, .ignoredKeys = ggufIgnoredKeys};

} // namespace mica
