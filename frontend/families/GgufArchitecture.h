//===- GgufArchitecture.h - a family as llama.cpp stores it -----*- C++ -*-===//
//
// An architecture is data, as a family is, and is in the family's file: which of its keys is
// which fact, what its tensors are called, what the converter did to them. The family's description
// has the arithmetic.
//
//===----------------------------------------------------------------------------------------------===//
#ifndef MICA_FRONTEND_FAMILIES_GGUFARCHITECTURE_H
#define MICA_FRONTEND_FAMILIES_GGUFARCHITECTURE_H

#include "frontend/families/GgufKeys.h"
#include "frontend/families/NamingTable.h"
#include "ir/Mica/Mica.h"

#include "llvm/ADT/ArrayRef.h"

namespace mica {

/// A flag that no key of the metadata tells: it is set where the file has `tensor`.
struct GgufFlag {
  std::optional<bool> Hyperparameters::*slot;
  llvm::StringLiteral tensor;
};

/// A key of rope and the parameter of transformers that it is, once it is multiplied by
/// `multiplier`. Lists of types of scaling are separated by spaces.
struct GgufRopeKey {
  llvm::StringLiteral name, parameter;
  llvm::StringLiteral types = ""; ///< that have it; all where that is empty
  /// The types that require it: without it llama.cpp and the original model compute different
  /// things.
  llvm::StringLiteral requiredBy = "";
  /// The values that other types may have, because they change nothing there: a JSON array.
  llvm::StringLiteral neutral = "[]";
  bool mayBeUnused = false; ///< whether any value may be beside no scaling
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

/// Whose product a module is.
enum class GgufOwner {
  Layer,        ///< or the model, of modules that count from nowhere
  Experts,      ///< one tensor of all experts
  SharedExpert, ///< the only one
};

/// A module by llama.cpp's name, counted from the layer where there is one, and the member of a
/// naming table that it is. `isRow`: a vector here, a matrix of one row there. Where `part` is not
/// empty the member names a tensor, which has that part of the module's name after it here.
struct GgufModule {
  llvm::StringLiteral name;
  llvm::StringLiteral NamingTable::*module;
  GgufOwner owner = GgufOwner::Layer;
  bool isRow = false;
  llvm::StringLiteral part = "";

  bool isOf(const NamingTable &names) const { return !(names.*module).empty(); }
};

struct GgufArchitecture {
  llvm::StringLiteral name; ///< general.architecture
  /// As those of a family, and before those of all architectures; Family::derive and ::check
  /// follow.
  llvm::ArrayRef<llvm::ArrayRef<KeyRule>> keys;
  llvm::ArrayRef<FixedKey> fixed = {};
  llvm::ArrayRef<IgnoredKeyRow> ignoredKeys = {};
  llvm::ArrayRef<GgufFlag> flags = {};
  llvm::ArrayRef<GgufRopeKey> ropeKeys = {};    ///< beside those of all architectures
  llvm::ArrayRef<GgufModule> modules = {};      ///< of layers, before those of all architectures
  llvm::ArrayRef<GgufModule> modelModules = {}; ///< the same of those that count from nowhere
  /// How the rows of q and k are stored, where not as the family has them. For llama and its kin
  /// the converter reorders them so that neighbors are rotated together: read as they are with the
  /// interleaved pairing, they compute the same.
  std::optional<Pairing> pairing = std::nullopt;
  bool truncatesYarn = true; ///< whether the ends of yarn's ramp are rounded
  bool addedToGains = false; ///< the converter added what the family's norms add to their gains
  /// Which of several architectures of one name a file has; null for the one that it has otherwise.
  bool (*isMeant)(const GgufKeys &keys) = nullptr;
  /// The table in place of the family's, where the converter stored tensors differently. May be
  /// null.
  const NamingTable *(*names)(const GgufModel &model) = nullptr;
  /// Adds facts that follow from several keys, and refuses keys that contradict each other. May be
  /// null.
  llvm::Error (*derive)(const GgufKeys &keys, Hyperparameters &h) = nullptr;
};

/// Queries, keys and values as one tensor, one after the other, and the names of transformers
/// otherwise.
inline constexpr NamingTable ggufJoinedNames = changed(transformersNames, [](NamingTable &names) {
  names.positions = "model.position_embeddings";
  names.embeddingNorm = "model.embed_layernorm";
  names.qkv = "self_attn.qkv_proj";
});
inline const NamingTable *joinedGgufNames(const GgufModel &) { return &ggufJoinedNames; }

/// The keys of rope that all architectures have.
llvm::ArrayRef<GgufRopeKey> ggufCommonRopeKeys();

/// The modules of layers and those of the model. Of two with a name the first counts that the
/// family has: what is joined in some is not in others.
llvm::ArrayRef<GgufModule> ggufLayerModules();
llvm::ArrayRef<GgufModule> ggufModules();

} // namespace mica

#endif // MICA_FRONTEND_FAMILIES_GGUFARCHITECTURE_H
