//===- GgufArchitecture.h - a family as llama.cpp stores it -----*- C++ -*-===//
//
// An architecture is data, as is a family, and defined in the family's file: the meaning of its
// keys, the names of its tensors, the changes made by the converter. The family's description has
// the arithmetic.
//
//===----------------------------------------------------------------------===//
#ifndef MICA_FRONTEND_FAMILIES_GGUFARCHITECTURE_H
#define MICA_FRONTEND_FAMILIES_GGUFARCHITECTURE_H

#include "frontend/families/GgufKeys.h"
#include "frontend/families/NamingTable.h"
#include "ir/Mica/Mica.h"

#include "llvm/ADT/ArrayRef.h"

namespace mica {

/// A flag without a metadata key: it is set if a tensor of the file matches the pattern `tensor`,
/// such as "blk.*.attn_q.bias".
struct GgufFlag {
  std::optional<bool> Hyperparameters::*slot;
  llvm::StringLiteral tensor;
};

/// A rope key and the equivalent parameter of transformers, which is the key's value times
/// `multiplier`. Lists of scaling types are separated by spaces.
struct GgufRopeKey {
  llvm::StringLiteral name, parameter;
  llvm::StringLiteral types = ""; ///< scaling types with this key; empty: all
  /// The types that require it, because llama.cpp and the original model have different defaults.
  llvm::StringLiteral requiredBy = "";
  /// The values that are allowed for other types, because they have no effect: a JSON array.
  llvm::StringLiteral neutral = "[]";
  bool mayBeUnused = false; ///< whether any value is allowed without scaling
  double multiplier = 1;

  bool belongsTo(llvm::StringRef type) const { return types.empty() || isIn(types, type); }
  bool isRequiredBy(llvm::StringRef type) const { return isIn(requiredBy, type); }

private:
  static bool isIn(llvm::StringRef list, llvm::StringRef type) {
    llvm::SmallVector<llvm::StringRef> types;
    list.split(types, ' ');
    return llvm::is_contained(types, type);
  }
};

/// The owner of a module.
enum class GgufOwner {
  Layer,        ///< a layer, or the model for modules outside of layers
  Experts,      ///< all experts, in one tensor
  AllExperts,   ///< the same, where it is one tensor for the family as well
  SharedExpert, ///< the only shared expert
};

/// Maps a module by llama.cpp's name (relative to its layer, if it is in one) to a member of the
/// naming table. `isRow`: a vector in the checkpoint of the family, a matrix with one row in GGUF.
/// If `part` is not empty, the member names a tensor, which in GGUF has that suffix, or none, after
/// the module's name.
struct GgufModule {
  llvm::StringLiteral name;
  llvm::StringLiteral NamingTable::*module;
  GgufOwner owner = GgufOwner::Layer;
  bool isRow = false;
  std::optional<llvm::StringLiteral> part = std::nullopt;
  bool isBare = false;       ///< the weight has no ".weight" after the name here
  bool isNegatedExp = false; ///< -exp(x) here is x there

  bool isOf(const NamingTable &names) const { return !(names.*module).empty(); }
};

struct GgufArchitecture {
  llvm::StringLiteral name;            ///< general.architecture
  llvm::StringLiteral sparseName = ""; ///< the same for models with experts, if it differs
  /// As in Family, applied before those of all architectures; Family::derive and Family::check are
  /// called afterwards.
  llvm::ArrayRef<llvm::ArrayRef<KeyRule>> keys;
  llvm::ArrayRef<FixedKey> fixed = {};
  llvm::ArrayRef<IgnoredKeyRow> ignoredKeys = {};
  llvm::ArrayRef<GgufFlag> flags = {};
  llvm::ArrayRef<GgufRopeKey> ropeKeys = {};    ///< in addition to those of all architectures
  llvm::ArrayRef<GgufModule> modules = {};      ///< of layers; searched before those of all
                                                ///< architectures
  llvm::ArrayRef<GgufModule> modelModules = {}; ///< the same for modules outside of layers
  /// The order of the rows of q and k, if it differs from the family's. For llama and related
  /// architectures, the converter reorders them so that adjacent pairs are rotated: used unchanged
  /// with the interleaved pairing, they compute the same.
  std::optional<Pairing> pairing = std::nullopt;
  /// The converter reorders the rows of q and k in the same way, but rope rotates only a part of a
  /// head, so that the pairs are not adjacent: the original order is restored.
  bool restoresHeads = false;
  bool truncatesYarn = true;     ///< whether the ends of yarn's ramp are rounded
  bool proportionalRope = false; ///< the tensor of rope factors has those of proportional rope
  bool addedToNormWeights =
      false; ///< the converter has added the family's weight_offset to norm weights
  /// Value head i of gated delta nets shares key head i mod the number of key heads.
  bool valueHeadsInterleaved = false;
  /// Distinguishes several architectures with the same name; null for the default one.
  bool (*matches)(const GgufKeys &keys) = nullptr;
  /// Replaces the family's naming table if the converter stores tensors differently. May be null.
  const NamingTable *(*names)(const GgufModel &model) = nullptr;
  /// Derives hyperparameters from several keys, and rejects contradictory keys. May be null.
  llvm::Error (*derive)(const GgufKeys &keys, Hyperparameters &h) = nullptr;

  bool isNamed(llvm::StringRef other) const {
    return other == name || (!sparseName.empty() && other == sparseName);
  }
};

/// The naming table for queries, keys and values concatenated in one tensor; otherwise the names of
/// transformers.
inline constexpr NamingTable ggufJoinedNames = changed(transformersNames, [](NamingTable &names) {
  names.positions = "model.position_embeddings";
  names.embeddingNorm = "model.embed_layernorm";
  names.qkv = "self_attn.qkv_proj";
});
inline const NamingTable *joinedGgufNames(const GgufModel &) { return &ggufJoinedNames; }

/// The rope keys of all architectures.
llvm::ArrayRef<GgufRopeKey> ggufCommonRopeKeys();

/// The modules of layers and of the model. If several have the same name, the first one that the
/// family has applies, because some architectures merge what others have separately.
llvm::ArrayRef<GgufModule> ggufLayerModules();
llvm::ArrayRef<GgufModule> ggufModules();

} // namespace mica

#endif // MICA_FRONTEND_FAMILIES_GGUFARCHITECTURE_H
