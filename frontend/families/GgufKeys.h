//===- GgufKeys.h - the metadata of a GGUF file -----------------*- C++ -*-===//
//
// llama.cpp's names, units and defaults. Keys of a model begin with the name of its architecture
// and a dot, which tables of keys leave out.
//
//===----------------------------------------------------------------------------------------------===//
#ifndef MICA_FRONTEND_FAMILIES_GGUFKEYS_H
#define MICA_FRONTEND_FAMILIES_GGUFKEYS_H

#include "frontend/families/Family.h"
#include "frontend/families/KeySource.h"
#include "frontend/formats/gguf/GgufModel.h"

namespace mica {

/// A value of the metadata. A list whose elements are alike, one per layer, is that element.
llvm::json::Value valueOf(const GgufValue &value);

/// The keys after the name of the architecture and a dot.
class GgufKeys final : public KeySource {
public:
  GgufKeys(const GgufModel &model, llvm::StringRef architecture);

  std::vector<llvm::StringRef> keys() const override;
  const llvm::json::Value *find(llvm::StringRef key) const override;
  std::string named(llvm::StringRef key) const override { return (prefix + key).str(); }
  bool isText() const override { return false; }

  const GgufModel &model() const { return itsModel; }

private:
  const GgufModel &itsModel;
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

/// Of decoders with rope. Absent, heads have their share of the stream and keys and values of
/// their own; rope's base is llama.cpp's, whatever the family's.
inline constexpr KeyRule decoderKeys[] = {
    {"feed_forward_length", &Hyperparameters::inner, ranges::width},
    {"attention.head_count_kv", &Hyperparameters::kvHeads, ranges::heads, Unset()},
    {"attention.key_length", &Hyperparameters::headDim, ranges::headDim, Unset()},
    {"rope.freq_base", &Hyperparameters::theta, ranges::theta, 10000.0},
};

/// Where a file of the family has no default for rope's base that both llama.cpp and the family
/// agree on.
inline constexpr KeyRule thetaKey = {"rope.freq_base", &Hyperparameters::theta, ranges::theta};

/// How many elements of a head rope rotates, in families where that may be a part.
inline constexpr KeyRule rotatedKey = {"rope.dimension_count", &Hyperparameters::rotatedDim,
                                       ranges::headDim};

inline constexpr KeyRule windowKey = {"attention.sliding_window", &Hyperparameters::window,
                                      ranges::window, Unset()};

/// Experts as Qwen's architectures have them.
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

/// Where a key of a window says nothing by itself.
inline constexpr IgnoredKeyRow ignoredWindow = {
    "attention.sliding_window",
    "only applies with use_sliding_window, which such files do not have"};

} // namespace gguf

/// The fixed keys and the unread ones of all architectures.
llvm::ArrayRef<FixedKey> ggufCommonFixedKeys();
llvm::ArrayRef<IgnoredKeyRow> ggufCommonIgnoredKeys();

/// Why a key without an architecture in front has no influence; nothing where it may have some. A
/// star stands for anything.
std::optional<llvm::StringRef> reasonGgufKeyIsIrrelevant(llvm::StringRef key);

} // namespace mica

#endif // MICA_FRONTEND_FAMILIES_GGUFKEYS_H
