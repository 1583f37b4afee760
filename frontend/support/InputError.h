//===- InputError.h - errors about user input -------------------*- C++ -*-===//
#ifndef MICA_FRONTEND_SUPPORT_INPUTERROR_H
#define MICA_FRONTEND_SUPPORT_INPUTERROR_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"

#include <string>

namespace mica {

/// The generic hint for a file with invalid content.
namespace hints {
inline constexpr llvm::StringLiteral correct = "correct it";
inline constexpr llvm::StringLiteral fetch = "download it again";
inline constexpr llvm::StringLiteral notQuantized =
    "use the model's original checkpoint with --weights int4 or int8, or a GGUF file of it";
} // namespace hints

/// The error `FILE: what; hint`, on one line: control characters are replaced. `what` describes the
/// problem, with its location in parentheses; `hint` begins with a verb.
llvm::Error inputError(llvm::StringRef file, const llvm::Twine &what, const llvm::Twine &hint);

/// `text` in double quotes for messages: control and non-ASCII bytes are escaped, and it is
/// truncated after 120 bytes. For all text that comes from a file.
std::string inQuotes(llvm::StringRef text);

/// "A", "A and B" or "A, B and C"; `names` are not empty.
std::string joinWithAnd(llvm::ArrayRef<llvm::StringRef> names);
std::string joinWithOr(llvm::ArrayRef<llvm::StringRef> names);

/// `error` with every double-quoted text replaced by `rename(text)`, for readers that convert the
/// names of a file before checking them.
llvm::Error renameQuoted(llvm::Error error,
                         llvm::function_ref<std::string(llvm::StringRef)> rename);

} // namespace mica

#endif // MICA_FRONTEND_SUPPORT_INPUTERROR_H
