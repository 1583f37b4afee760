//===- GgufArchitecture.h - what llama.cpp calls the things of a family
//----------------------------===//
//
// An architecture is data, as a family is: which of its keys is which key of config.json, what its
// code does whatever the file says. The family's own description reads and checks the values.
//
//===----------------------------------------------------------------------------------------------===//
#ifndef MICA_FRONTEND_FAMILIES_GGUFARCHITECTURE_H
#define MICA_FRONTEND_FAMILIES_GGUFARCHITECTURE_H

#include "frontend/families/NamingTable.h"
#include "frontend/formats/gguf/GgufModel.h"
#include "ir/Mica/Mica.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/JSON.h"

namespace mica {

/// A key behind the architecture's name and a dot, and the key of config.json that it stands for.
/// Where `values`, a JSON array, is not empty the key must have one of these and stands for none.
/// Where `reason` is not empty it has no influence. A name alone is a key that `derive` reads, or
/// that the shape must agree with.
struct GgufKey {
  llvm::StringLiteral name, config = "", values = "", reason = "";
};

/// A key of config.json that has no place in the metadata: `value` is JSON, or empty for whether
/// there is a `tensor` of that name.
struct GgufConstant {
  llvm::StringLiteral config, value, tensor = "";
};

/// Whose product a module is.
enum class GgufOwner {
  Layer,        ///< or the model, of modules that count from nowhere
  Experts,      ///< one tensor of all experts
  SharedExpert, ///< the only one
};

/// A module by llama.cpp's name, counted from the layer where there is one, and the member of a
/// naming table that it is. `isRow`: a vector here, a matrix of one row there. Where `part` is not
/// empty the member names a tensor, which has that part of the module's name behind it here.
/// `only`: of the one table whose module it is; of all where it is null.
struct GgufModule {
  llvm::StringLiteral name;
  llvm::StringLiteral NamingTable::*module;
  GgufOwner owner = GgufOwner::Layer;
  bool isRow = false;
  llvm::StringLiteral part = "";
  const NamingTable *only = nullptr;

  bool isOf(const NamingTable &names) const {
    return !(names.*module).empty() && (!only || only == &names);
  }
};

struct GgufArchitecture {
  llvm::StringLiteral name;          ///< general.architecture
  llvm::StringLiteral modelType;     ///< of config.json
  llvm::ArrayRef<GgufKey> keys = {}; ///< before those of all architectures
  llvm::ArrayRef<GgufKey> own = {};  ///< before `keys`, which other architectures share
  llvm::ArrayRef<GgufConstant> constants = {};
  /// How the rows of q and k lie. For llama and its kin the converter reorders them so that
  /// neighbours turn with each other: read as they are with the interleaved pairing, they compute
  /// the same.
  Pairing pairing = Pairing::Half;
  bool addedToGains = false; ///< the converter added what the family's norms add to their gains
  /// The key of config.json that says which part of a head turns, in families where that is not the
  /// whole head by default.
  llvm::StringLiteral turnedPart = "";
  /// Of several architectures of one name the last that is meant, or the first.
  bool (*isMeant)(const GgufModel &model) = nullptr;
  /// A key behind the architecture's name that the file lacks though it has no default; empty where
  /// it has all. May be null.
  llvm::StringRef (*lacking)(const GgufModel &model) = nullptr;
  /// The table in place of the family's, where the converter laid tensors differently. May be null.
  const NamingTable *(*names)(const GgufModel &model) = nullptr;
  /// Adds to the config what the architecture's code computes. May be null.
  void (*derive)(const GgufModel &model, llvm::json::Object &config) = nullptr;
};

/// All architectures, sorted by name.
llvm::ArrayRef<GgufArchitecture> ggufArchitectures();

/// The keys that most architectures share.
llvm::ArrayRef<GgufKey> ggufCommonKeys();

/// Why a key without an architecture in front has no influence; nothing where it may have some. A
/// star stands for anything.
std::optional<llvm::StringRef> whyGgufKeyIsIrrelevant(llvm::StringRef key);

/// The modules of layers and those of the model. Of two with a name the first counts that the
/// family has: what is joined in some is not in others.
llvm::ArrayRef<GgufModule> ggufLayerModules();
llvm::ArrayRef<GgufModule> ggufModules();

} // namespace mica

#endif // MICA_FRONTEND_FAMILIES_GGUFARCHITECTURE_H
