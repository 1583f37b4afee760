//===- KeyReader.h - the keys of a file, by rule ----------------*- C++ -*-===//
#ifndef MICA_FRONTEND_CONFIG_KEYREADER_H
#define MICA_FRONTEND_CONFIG_KEYREADER_H

#include "frontend/families/Family.h"
#include "frontend/families/KeySource.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace mica {

/// Known keys: those that are read, those with required values, those that are ignored.
struct KeyTable {
  llvm::ArrayRef<llvm::ArrayRef<KeyRule>> keys; ///< the first one with a name applies
  llvm::ArrayRef<FixedKey> fixed;
  llvm::ArrayRef<IgnoredKeyRow> ignoredKeys;
};

/// The tables for a model's file: those of the family or architecture (`own`), and the common ones.
/// Precedence: own fixed keys, keys that are read, common fixed keys. A family may fix a key that
/// is read for others, and read one that is fixed for others.
struct KeyTables {
  llvm::StringRef subject; ///< for messages: the family or architecture
  KeyTable own, common;
};

/// Reads the keys of `source` by `tables`; ignored keys are listed in `ignored`. Errors name the
/// key: one in no table, or a value that its rule does not allow.
llvm::Expected<Hyperparameters> readKeys(const KeySource &source, const KeyTables &tables,
                                         std::vector<IgnoredKey> &ignored);

/// The keys from which hyperparameters were read, for diagnostics about contradictions between
/// them.
class KeyNames {
public:
  KeyNames(const KeySource &source, const KeyTables &tables) : source(source), tables(tables) {}

  llvm::StringRef path() const { return source.path(); }
  /// The key of `slot`, whether or not the file has it; nothing if the tables have none.
  std::optional<std::string> keyOf(Slot slot) const;
  /// The key of `slot` that the file has with a value other than null.
  std::optional<std::string> presentKeyOf(Slot slot) const;
  /// The hint to correct the keys of some slots: `correct "n_group" or "topk_group"`.
  std::string hintToCorrect(std::initializer_list<Slot> slots) const;

private:
  std::optional<std::string> findKey(Slot slot,
                                     llvm::function_ref<bool(llvm::StringRef)> isSought) const;

  const KeySource &source;
  const KeyTables &tables;
};

} // namespace mica

#endif // MICA_FRONTEND_CONFIG_KEYREADER_H
