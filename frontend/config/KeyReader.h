//===- KeyReader.h - the keys of a file, by rule ----------------*- C++ -*-===//
#ifndef MICA_FRONTEND_CONFIG_KEYREADER_H
#define MICA_FRONTEND_CONFIG_KEYREADER_H

#include "frontend/families/Family.h"
#include "frontend/families/KeySource.h"

namespace mica {

/// What is known of keys: which are read, which must have certain values, which are ignored.
struct KeyTable {
  llvm::ArrayRef<llvm::ArrayRef<KeyRule>> keys; ///< of the same name, the first counts
  llvm::ArrayRef<FixedKey> fixed;
  llvm::ArrayRef<IgnoredKeyRow> ignoredKeys;
};

/// The tables by which a file of a model is read: the family's or architecture's `own`, and those
/// of all. Own fixed keys count before all keys that are read, which count before the common fixed
/// ones: a family may fix what is read for others, and read what is fixed for others.
struct KeyTables {
  llvm::StringRef subject; ///< for people: the family, the architecture
  KeyTable own, common;
};

/// Reads the keys of `source` by `tables`; ignored keys are listed in `ignored`. Refuses,
/// naming it, a key that is neither read nor known to be irrelevant, and a value outside its key's
/// rule.
llvm::Expected<Hyperparameters> readKeys(const KeySource &source, const KeyTables &tables,
                                         std::vector<IgnoredKey> &ignored);

/// What a file calls the facts that were read from it, for diagnostics about facts that contradict
/// each other.
class KeyNames {
public:
  KeyNames(const KeySource &source, const KeyTables &tables) : source(source), tables(tables) {}

  llvm::StringRef path() const { return source.path(); }
  /// The key of `slot`, whether or not the file has it; nothing where the tables have none.
  std::optional<std::string> keyOf(Slot slot) const;

private:
  const KeySource &source;
  const KeyTables &tables;
};

} // namespace mica

#endif // MICA_FRONTEND_CONFIG_KEYREADER_H
