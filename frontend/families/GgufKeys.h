//===- GgufKeys.h - the metadata of a GGUF file -----------------*- C++ -*-===//
//
// llama.cpp's names, units and defaults. Keys of a model begin with the name of its architecture
// and a dot, which tables of keys omit.
//
//===----------------------------------------------------------------------===//
#ifndef MICA_FRONTEND_FAMILIES_GGUFKEYS_H
#define MICA_FRONTEND_FAMILIES_GGUFKEYS_H

#include "frontend/families/Family.h"
#include "frontend/families/KeySource.h"
#include "frontend/formats/gguf/GgufModel.h"

namespace mica {

/// Converts a metadata value. A list of equal elements, one per layer, becomes that element.
llvm::json::Value valueOf(const GgufValue &value);

/// The keys without the prefix of the architecture.
class GgufKeys final : public KeySource {
public:
  GgufKeys(const GgufModel &model, llvm::StringRef architecture);

  std::vector<llvm::StringRef> keys() const override;
  const llvm::json::Value *find(llvm::StringRef key) const override;
  std::string named(llvm::StringRef key) const override { return (prefix + key).str(); }
  bool isText() const override { return false; }

  const GgufModel &model() const { return ggufModel; }

private:
  const GgufModel &ggufModel;
  std::string prefix;
  std::map<std::string, llvm::json::Value> values;
};

/// Tables of keys that architectures share.
namespace gguf {

inline constexpr KeyRule sizeKeys[] = {
    {"embedding_length", &Hyperparameters::hidden, ranges::width},
    {"context_length", &Hyperparameters::maxPositions, ranges::positions},
    {"block_count", &Hyperparameters::layers, ranges::layers},
    {"attention.head_count", &Hyperparameters::heads, ranges::heads},
};

inline constexpr KeyRule rmsNormKeys[] = {
    {"attention.layer_norm_rms_epsilon", &Hyperparameters::eps, ranges::eps},
};

inline constexpr KeyRule layerNormKeys[] = {
    {"attention.layer_norm_epsilon", &Hyperparameters::eps, ranges::eps},
};

/// Keys of decoders with rope. By default, the head size is hidden size / heads, and every head has
/// its own key and value head; the base of rope is llama.cpp's default, for every family.
inline constexpr KeyRule decoderKeys[] = {
    {"feed_forward_length", &Hyperparameters::inner, ranges::width},
    {"attention.head_count_kv", &Hyperparameters::kvHeads, ranges::heads, Unset()},
    {"attention.key_length", &Hyperparameters::headDim, ranges::headDim, Unset()},
    {"rope.freq_base", &Hyperparameters::theta, ranges::theta, 10000.0},
};

/// For families for which llama.cpp and the family have different defaults of rope's base.
inline constexpr KeyRule thetaKey = {"rope.freq_base", &Hyperparameters::theta, ranges::theta};

/// The number of rotated elements of a head, for families that may rotate only a part.
inline constexpr KeyRule rotatedKey = {"rope.dimension_count", &Hyperparameters::rotatedDim,
                                       ranges::headDim};

/// Mamba 2. Its heads have the key that is a rank in Mamba 1.
inline constexpr KeyRule mambaKeys[] = {
    {"ssm.conv_kernel", &Hyperparameters::convTaps, ranges::taps},
    {"ssm.inner_size", &Hyperparameters::mambaInner, ranges::width},
    {"ssm.state_size", &Hyperparameters::stateDim, ranges::headDim},
    {"ssm.time_step_rank", &Hyperparameters::mambaHeads, ranges::heads},
    {"ssm.group_count", &Hyperparameters::mambaGroups, ranges::heads},
};

/// Gated delta nets, and the attention between them. The size of all value heads, and a list of the
/// layers, are read beside these (deriveGgufDeltaNet).
inline constexpr KeyRule deltaNetKeys[] = {
    {"ssm.conv_kernel", &Hyperparameters::convTaps, ranges::taps},
    {"ssm.state_size", &Hyperparameters::deltaKeyDim, ranges::headDim},
    {"ssm.time_step_rank", &Hyperparameters::deltaValueHeads, ranges::heads},
    {"ssm.group_count", &Hyperparameters::deltaKeyHeads, ranges::heads},
    {"full_attention_interval", &Hyperparameters::attentionInterval, ranges::layers, int64_t(4)},
    {"nextn_predict_layers", &Hyperparameters::numNextnPredictLayers, {0, 64}, int64_t(0)},
    rotatedKey,
};

inline constexpr KeyRule windowKey = {"attention.sliding_window", &Hyperparameters::window,
                                      ranges::window, Unset()};

/// Keys of experts in Qwen's architectures.
inline constexpr KeyRule expertKeys[] = {
    {"expert_count", &Hyperparameters::experts, ranges::experts},
    {"expert_used_count", &Hyperparameters::expertsPerToken, ranges::experts},
    {"expert_feed_forward_length", &Hyperparameters::expertInner, ranges::width, Unset()},
};
inline constexpr FixedKey expertFixedKeys[] = {
    {"expert_gating_func", "[1]"}, // softmax
    {"expert_shared_count", "[0, 1]"},
    {"expert_weights_scale", "[0, 1]"},
};

/// For architectures in which the window key alone has no effect.
inline constexpr IgnoredKeyRow ignoredWindow = {
    "attention.sliding_window",
    "only applies with use_sliding_window, which such files do not have"};

} // namespace gguf

/// Subtracts the layers that predict additional tokens, which the file counts, from `h.layers`.
llvm::Error subtractGgufNextnLayers(const GgufKeys &keys, Hyperparameters &h);

/// The first converters omitted the number of expert groups, which llama.cpp interprets as no
/// groups. `isOpen`: whether a model of such a file may have groups.
llvm::Error checkGgufGroups(const GgufKeys &keys, const Hyperparameters &h, bool isOpen);

/// The fixed and the ignored keys of all architectures.
llvm::ArrayRef<FixedKey> ggufCommonFixedKeys();
llvm::ArrayRef<IgnoredKeyRow> ggufCommonIgnoredKeys();

/// Why a key without an architecture prefix has no effect; nullopt if it may have one. In patterns,
/// a star matches anything.
std::optional<llvm::StringRef> reasonGgufKeyIsIrrelevant(llvm::StringRef key);

} // namespace mica

#endif // MICA_FRONTEND_FAMILIES_GGUFKEYS_H
