//===- GgufArchitecture.h - what llama.cpp calls the things of a family
//----------------------------===//
//
// An architecture is data, as a family is: which of its keys is which key of config.json, what its
// code does whatever the file says. The family's own description reads and checks the values.
//
//===----------------------------------------------------------------------------------------------===//
#ifndef MICA_FRONTEND_CONFIG_GGUF_GGUFARCHITECTURE_H
#define MICA_FRONTEND_CONFIG_GGUF_GGUFARCHITECTURE_H

#include "frontend/config/NamingTable.h"
#include "ir/Mica/Mica.h"

#include "llvm/ADT/ArrayRef.h"

namespace mica {

/// A key behind the architecture's name and a dot, and the key of config.json that it stands for.
/// Where `values`, a JSON array, is not empty the key must have one of these and stands for none.
/// Where `reason` is not empty it has no influence.
struct GgufKey {
  llvm::StringLiteral name, config = "", values = "", reason = "";
};

/// A key of config.json that has no place in the metadata: `value` is JSON, or empty for whether
/// there is a `tensor` of that name.
struct GgufConstant {
  llvm::StringLiteral config, value, tensor = "";
};

struct GgufArchitecture {
  llvm::StringLiteral name;      ///< general.architecture
  llvm::StringLiteral modelType; ///< of config.json
  llvm::ArrayRef<GgufKey> keys;  ///< before those of all architectures
  llvm::ArrayRef<GgufConstant> constants = {};
  /// How the rows of q and k lie. For llama the converter reorders them so that neighbours turn
  /// with each other: read as they are with the interleaved pairing, they compute the same.
  Pairing pairing = Pairing::Half;
};

/// All architectures, sorted by name.
llvm::ArrayRef<GgufArchitecture> ggufArchitectures();

/// The keys that most architectures share.
llvm::ArrayRef<GgufKey> ggufCommonKeys();

/// Why a key without an architecture in front has no influence; nothing where it may have some. A
/// star stands for anything.
std::optional<llvm::StringRef> whyGgufKeyIsIrrelevant(llvm::StringRef key);

/// A module by llama.cpp's name, counted from the layer where there is one, and the member of a
/// naming table that it is. `stacked`: one tensor of all experts.
struct GgufModule {
  llvm::StringLiteral name;
  llvm::StringLiteral NamingTable::*module;
  bool stacked = false;
};
llvm::ArrayRef<GgufModule> ggufLayerModules();
llvm::ArrayRef<GgufModule> ggufModules();

} // namespace mica

#endif // MICA_FRONTEND_CONFIG_GGUF_GGUFARCHITECTURE_H
