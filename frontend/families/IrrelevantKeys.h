//===- IrrelevantKeys.h - keys that do not affect results -------*- C++ -*-===//
#ifndef MICA_FRONTEND_FAMILIES_IRRELEVANTKEYS_H
#define MICA_FRONTEND_FAMILIES_IRRELEVANTKEYS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <optional>

namespace mica {

/// A key that is known and ignored, and the reason.
struct IgnoredKeyRow {
  llvm::StringLiteral name, reason;
};

/// Reasons that are also used by families.
namespace reasons {
inline constexpr llvm::StringLiteral bookkeeping =
    "describes who wrote the file or how to load it in Python";
inline constexpr llvm::StringLiteral implementation =
    "selects among implementations of the same arithmetic";
inline constexpr llvm::StringLiteral laterTokens =
    "belongs to a multi-token prediction (MTP) module, which is left out";
inline constexpr llvm::StringLiteral mtpHead =
    "describes the multi-token prediction (MTP) head, see --keep-mtp";
inline constexpr llvm::StringLiteral encoder =
    "describes an encoder, which the program omits: it reads text only";
/// The key is not ignored: it was read before the others.
inline constexpr llvm::StringLiteral used = "";
} // namespace reasons

/// The keys of config.json that have no effect for any family.
llvm::ArrayRef<IgnoredKeyRow> commonIgnoredKeys();

/// Why the tensor has no effect, for any type and shape; nullopt if it may have one.
std::optional<llvm::StringRef> reasonTensorIsIrrelevant(llvm::StringRef name);

} // namespace mica

#endif // MICA_FRONTEND_FAMILIES_IRRELEVANTKEYS_H
