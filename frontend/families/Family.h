//===- Family.h - how a model family is described ---------------*- C++ -*-===//
//
// A family is data: the keys of its config.json, its constants, its tensor names. It is defined in
// one file in families/, together with llama.cpp's names (GgufArchitecture.h); no other file refers
// to it.
//
//===----------------------------------------------------------------------===//
#ifndef MICA_FRONTEND_FAMILIES_FAMILY_H
#define MICA_FRONTEND_FAMILIES_FAMILY_H

#include "frontend/families/Hyperparameters.h"
#include "frontend/families/IrrelevantKeys.h"
#include "frontend/families/KeySource.h"
#include "frontend/families/ModelConfig.h"
#include "ir/Mica/ModelDescription.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"

#include <variant>

namespace mica {

struct GgufArchitecture;

/// A field that is true if the key's value is not null: MiniMind 1 only tests whether it is None.
struct NotNull {
  std::optional<int64_t> Hyperparameters::*slot;
  bool operator==(const NotNull &) const = default;
};

/// The type of a key is the type of the field that it sets. A list of integers may be given as a
/// single integer.
using Slot = std::variant<
    std::optional<int64_t> Hyperparameters::*, std::optional<double> Hyperparameters::*,
    std::optional<bool> Hyperparameters::*, std::optional<std::string> Hyperparameters::*,
    std::vector<int64_t> Hyperparameters::*, const llvm::json::Object * Hyperparameters::*,
    const llvm::json::Array * Hyperparameters::*, NotNull>;

/// Bounds far beyond any real decoder, so that no product of two sizes overflows.
namespace ranges {
inline constexpr Range width = {1, 1 << 20};
inline constexpr Range layers = {1, 4096};
inline constexpr Range heads = {1, 4096};
inline constexpr Range headDim = {2, 4096};
inline constexpr Range vocab = {1, 1 << 24};
inline constexpr Range positions = {bounds::maxPositions.min, bounds::maxPositions.max};
inline constexpr Range taps = {2, 32};
inline constexpr Range experts = {1, 4096};
inline constexpr Range maybeExperts = {0, 4096}; ///< 0 for none
inline constexpr Range eps = {1e-15, 0.1};
inline constexpr Range theta = {1.0001, 1e15};
inline constexpr Range token = {0, (1 << 24) - 1};
inline constexpr Range window = {0, bounds::maxPositions.max}; ///< 0 for none
inline constexpr Range share = {1e-3, 1};
inline constexpr Range multiplier = {1e-9, 1e9};
} // namespace ranges

/// What happens if a key is absent: an error, an unset field, or a default.
struct Required {};
struct Unset {};
using Absent = std::variant<Required, Unset, int64_t, double, bool>;

/// Whether a key may be null, which leaves its field unset.
enum class Null { Refused, Allowed };

/// A supported key.
struct KeyRule {
  llvm::StringLiteral name;
  Slot slot;
  Range range;
  Absent absent = Required();
  Null null = Null::Refused;
};

/// A key that may be absent or null.
constexpr KeyRule optionalKey(llvm::StringLiteral name, Slot slot, Range range = {}) {
  return {name, slot, range, Unset(), Null::Allowed};
}

/// A key that is accepted only with certain values, because others are not implemented: `values` is
/// a JSON array.
struct FixedKey {
  llvm::StringLiteral name;
  llvm::StringLiteral values;
};

/// YaRN with the rules of a family's own code instead of transformers'. It is then the only
/// supported scaling, even if rope_scaling has no type; it applies only if the context is longer
/// than the original one, and its ramp ends at D/2 - 1. The numbers are the defaults of a config.
struct OwnYarn {
  int64_t original;
  double factor, attentionFactor;
  /// Returns an error if such numbers imply another formula. May be null.
  llvm::Error (*check)(const YarnScaling &yarn, llvm::StringRef path) = nullptr;
};

/// The sequence mixer of a layer.
enum class Mixer { None, Attention, ShortConv, Mamba, DeltaNet };

/// Properties of the family's code that do not depend on the config.
struct FamilyTraits {
  Pairing pairing = Pairing::Half;
  NormKind norm = NormKind::Rms;
  NormRounding normRounding = NormRounding::BeforeWeight;
  double weightOffset = 0;
  bool normBias = false;
  QkNorm qkNorm = QkNorm::None; ///< unless disabled by a key
  bool preNorms = true, postNorms = false;
  Parallel parallel = Parallel::No; ///< unless disabled by a key
  bool rope = true, learnedPositions = false, alibi = false, sinks = false;
  bool outputGate = false;         ///< of attention
  bool valueNorm = false;          ///< values are normalized per head, without a weight
  bool layerScalar = false;        ///< layers end with a multiplication by a number of the model
  bool denseBesideExperts = false; ///< layers with experts have a dense network as well
  std::optional<int64_t> sinusoidOffset = std::nullopt;
  bool embeddingNorm = false;
  Mixer otherMixer = Mixer::Attention; ///< of layers without attention
  bool parallelToAttention = false;    ///< layers have both Mamba and attention
  bool isOneBlock = false;             ///< layers have either a mixer or a feed-forward network
  Scoring scoring = Scoring::Softmax;
  GroupScoring groupScoring = GroupScoring::Best;
  bool correctionBias = false, routerBias = false;
  /// Whether rope may have image positions (M-RoPE); for text, all three components are the same.
  bool imagePositions = false;
  bool yarnScalesScores = false;      ///< mscale_all_dim also applies to the scale of attention
  const OwnYarn *ownYarn = nullptr;   ///< if transformers' rules do not apply
  bool normalizesSingleExpert = true; ///< whether norm_topk_prob applies at k = 1
  /// What is added to the sum by which the weights of experts are divided; none: negligible.
  std::optional<double> normalizeEps = std::nullopt;
  bool sharedGate = false;
  bool expertBias = false;
  bool gated = true;
  Activation activation = Activation::Silu;           ///< unless set by a key
  bool scalesEmbedding = false;                       ///< by the square root of the hidden size
  double defaultTheta = 10000, defaultLocalTheta = 0; ///< 0: no separate theta
  /// The default share of a head that rope rotates. None if the family's code rotates whole heads
  /// and ignores a share.
  std::optional<double> partialRotary = std::nullopt;
  bool proportionalRope = false; ///< whether rope may rotate some pairs of a whole head
  /// Which layers have the window if `layer_types` is absent; null if no layer can have one.
  bool (*usesSlidingWindow)(const Hyperparameters &, int64_t layer) = nullptr;
};

/// The window applies to every layer.
inline bool everyLayerUsesSlidingWindow(const Hyperparameters &, int64_t) { return true; }

/// The location of the text part's config, which has the family's keys, in the config of a larger
/// model.
struct TextPart {
  llvm::StringLiteral key, modelType;         ///< the object, and the model_type in it
  llvm::ArrayRef<KeyRule> keys;               ///< surrounding keys; they take precedence
  llvm::ArrayRef<IgnoredKeyRow> ignoredKeys;  ///< around it
  llvm::ArrayRef<IgnoredKeyRow> leftOutParts; ///< surrounding keys of parts that programs omit
};

struct Family {
  llvm::StringLiteral name;                          ///< for messages
  llvm::ArrayRef<llvm::StringLiteral> architectures; ///< the classes with this family's arithmetic
  llvm::ArrayRef<llvm::ArrayRef<KeyRule>> keys;      ///< the first of the same name applies
  llvm::ArrayRef<FixedKey> fixed;                    ///< take precedence over `keys`
  FamilyTraits traits;
  const NamingTable *names = &transformersNames;
  /// Sets sizes that the family's code computes if they are absent in the file. May be null.
  void (*derive)(Hyperparameters &) = nullptr;
  /// Rejects values that are invalid for the family or in combination. May be null.
  llvm::Error (*check)(const Hyperparameters &, llvm::StringRef path) = nullptr;
  llvm::ArrayRef<IgnoredKeyRow> ignoredKeys = {}; ///< in addition to those of all families
  /// Set for models of which only the text part is supported; else null.
  const TextPart *textPart = nullptr;
};

/// The evidence that distinguishes families with the same model_type.
struct FamilyEvidence {
  llvm::StringRef path;                       ///< of config.json
  const llvm::json::Object *config = nullptr; ///< null for GGUF files
  /// Whether the weights have a tensor of that name; null in a dry run without weights.
  llvm::function_ref<bool(llvm::StringRef)> hasTensor;
};

} // namespace mica

#endif // MICA_FRONTEND_FAMILIES_FAMILY_H
