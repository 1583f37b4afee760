//===- IrrelevantKeys.h - keys that cannot change what a model computes -*- C++ -*-===//
#ifndef MICA_FRONTEND_FAMILIES_IRRELEVANTKEYS_H
#define MICA_FRONTEND_FAMILIES_IRRELEVANTKEYS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <optional>

namespace mica {

/// A key that is known and ignored, and why.
struct IgnoredKeyRow {
  llvm::StringLiteral name, reason;
};

/// Reasons that families have as well.
namespace reasons {
inline constexpr llvm::StringLiteral bookkeeping =
    "describes who wrote the file or how to load it in Python";
inline constexpr llvm::StringLiteral implementation =
    "selects among implementations of the same arithmetic";
/// Not ignored: it was read before the others.
inline constexpr llvm::StringLiteral used = "";
} // namespace reasons

/// The keys of config.json that have no influence, whatever the family.
llvm::ArrayRef<IgnoredKeyRow> commonIgnoredKeys();

/// Why the tensor has no influence, whatever its type and shape; nothing where it may have some.
std::optional<llvm::StringRef> reasonTensorIsIrrelevant(llvm::StringRef name);

} // namespace mica

#endif // MICA_FRONTEND_FAMILIES_IRRELEVANTKEYS_H
