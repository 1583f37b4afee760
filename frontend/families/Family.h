//===- Family.h - how a model family is described ---------------*- C++ -*-===//
//
// A family is data: the keys of its config.json, its constants, its tensor names. One file in
// families/ holds it, with what llama.cpp calls all this (GgufArchitecture.h), and no other file
// names it.
//
//===----------------------------------------------------------------------------------------------===//
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

/// A slot that is true where the key's value is anything but null: MiniMind 1 asks only whether it
/// is None.
struct NotNull {
  std::optional<int64_t> Hyperparameters::*slot;
  bool operator==(const NotNull &) const = default;
};

/// The type of a key is the type of the slot that it fills. A list of integers may be given as a
/// single one.
using Slot = std::variant<
    std::optional<int64_t> Hyperparameters::*, std::optional<double> Hyperparameters::*,
    std::optional<bool> Hyperparameters::*, std::optional<std::string> Hyperparameters::*,
    std::vector<int64_t> Hyperparameters::*, const llvm::json::Object * Hyperparameters::*,
    const llvm::json::Array * Hyperparameters::*, NotNull>;

/// Bounds that are absurd for a decoder, yet keep every product of two sizes far from overflow.
namespace ranges {
inline constexpr Range width = {1, 1 << 20};
inline constexpr Range layers = {1, 4096};
inline constexpr Range heads = {1, 4096};
inline constexpr Range headDim = {2, 4096};
inline constexpr Range vocab = {1, 1 << 24};
inline constexpr Range positions = {bounds::maxPositions.least, bounds::maxPositions.most};
inline constexpr Range experts = {1, 4096};
inline constexpr Range maybeExperts = {0, 4096}; ///< 0 for none
inline constexpr Range eps = {1e-15, 0.1};
inline constexpr Range theta = {1.0001, 1e15};
inline constexpr Range token = {0, (1 << 24) - 1};
inline constexpr Range window = {0, bounds::maxPositions.most}; ///< 0 for none
inline constexpr Range share = {1e-3, 1};
inline constexpr Range multiplier = {1e-9, 1e9};
} // namespace ranges

/// What happens where a key is absent: refuse, leave the slot unset, or take a default.
struct Required {};
struct Unset {};
using Absent = std::variant<Required, Unset, int64_t, double, bool>;

/// Whether a key may be null, which leaves its slot unset.
enum class Null { Refused, Allowed };

/// A key that is read.
struct KeyRule {
  llvm::StringLiteral name;
  Slot slot;
  Range range;
  Absent absent = Required();
  Null null = Null::Refused;
};

/// A key that may as well be absent or null.
constexpr KeyRule optionalKey(llvm::StringLiteral name, Slot slot, Range range = {}) {
  return {name, slot, range, Unset(), Null::Allowed};
}

/// A key that is accepted with certain values only, because Mica computes nothing else: `values` is
/// a JSON array.
struct FixedKey {
  llvm::StringLiteral name;
  llvm::StringLiteral values;
};

/// YaRN as a family's own code has it, in place of transformers' rules. It is then the only scaling
/// there is, also where rope_scaling names no type; it acts only where the context is longer than
/// the original one, and its ramp ends at D/2 - 1. The numbers are those of a config without them.
struct OwnYarn {
  int64_t original;
  double factor, attentionFactor;
  /// An error where such numbers stand for another formula. May be null.
  llvm::Error (*check)(const YarnScaling &yarn, llvm::StringRef path) = nullptr;
};

/// What the family's code does whatever the config says.
struct FamilyTraits {
  Pairing pairing = Pairing::Half;
  NormKind norm = NormKind::Rms;
  NormRounding normRounding = NormRounding::BeforeGain;
  double weightOffset = 0;
  bool normBias = false;
  QkNorm qkNorm = QkNorm::None; ///< where a key does not say that there is none
  bool preNorms = true, postNorms = false;
  Parallel parallel = Parallel::No; ///< where a key does not say that it is not
  bool rope = true, learnedPositions = false, alibi = false, sinks = false;
  std::optional<int64_t> sinusoidOffset = std::nullopt;
  bool embeddingNorm = false;
  bool convLayers = false; ///< whether layers may have a short convolution in place of attention
  Scoring scoring = Scoring::Softmax;
  GroupScoring groupScoring = GroupScoring::Best;
  bool correctionBias = false, routerBias = false;
  bool yarnScalesScores = false;      ///< mscale_all_dim counts for attention's scale as well
  const OwnYarn *ownYarn = nullptr;   ///< where transformers' rules do not hold
  bool normalizesSingleExpert = true; ///< whether norm_topk_prob counts at k = 1
  bool sharedGate = false;
  bool expertBias = false;
  bool gated = true;
  Activation activation = Activation::Silu;           ///< where no key names one
  bool scalesEmbedding = false;                       ///< by the root of the hidden size
  double defaultTheta = 10000, defaultLocalTheta = 0; ///< no theta of its own where it is 0
  /// The share of a head that rope rotates where a config does not say it. Nothing where the
  /// family's code rotates whole heads and never looks at a share.
  std::optional<double> partialRotary = std::nullopt;
  /// Which layers have the window where `layer_types` does not say; null where none can have one.
  bool (*usesSlidingWindow)(const Hyperparameters &, int64_t layer) = nullptr;
};

/// Every layer has the window that there is.
inline bool everyLayerUsesSlidingWindow(const Hyperparameters &, int64_t) { return true; }

struct Family {
  llvm::StringLiteral name;                          ///< for people
  llvm::ArrayRef<llvm::StringLiteral> architectures; ///< the classes with this family's arithmetic
  llvm::ArrayRef<llvm::ArrayRef<KeyRule>> keys;      ///< of the same name, the first counts
  llvm::ArrayRef<FixedKey> fixed;                    ///< count before `keys`
  FamilyTraits traits;
  const NamingTable *names = &transformersNames;
  /// Fills in sizes that the family's code computes where the file has none. May be null.
  void (*derive)(Hyperparameters &) = nullptr;
  /// Refuses values that only their meaning for the family, or each other, rules out. May be null.
  llvm::Error (*check)(const Hyperparameters &, llvm::StringRef path) = nullptr;
  llvm::ArrayRef<IgnoredKeyRow> ignoredKeys = {}; ///< beside those of all families
};

/// What tells the families of one model_type apart.
struct FamilyEvidence {
  llvm::StringRef path;                       ///< of config.json
  const llvm::json::Object *config = nullptr; ///< null where the model has none: a GGUF file
  /// Whether the weights have a tensor of that name; null in a dry run without weights.
  llvm::function_ref<bool(llvm::StringRef)> hasTensor;
};

/// A row of the registry: a model_type and the choice among its families.
struct FamilyEntry {
  llvm::StringLiteral modelType;
  llvm::Expected<const Family *> (*choose)(const FamilyEvidence &evidence);
  const GgufArchitecture *gguf = nullptr; ///< of its GGUF files; null where there are none
};

/// All families that are known, sorted by model_type.
llvm::ArrayRef<FamilyEntry> familyEntries();

/// The keys that most families share: sizes, norm, rope.
llvm::ArrayRef<KeyRule> commonKeys();

/// The keys that every family has, after its own: types, ends of text.
llvm::ArrayRef<KeyRule> everyKeys();

/// Keys that say the same of every decoder and have one meaning that is computed.
llvm::ArrayRef<FixedKey> commonFixedKeys();

} // namespace mica

#endif // MICA_FRONTEND_FAMILIES_FAMILY_H
