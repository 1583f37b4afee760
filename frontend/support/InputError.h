//===- InputError.h - errors about what the user handed in ------*- C++ -*-===//
#ifndef MICA_FRONTEND_SUPPORT_INPUTERROR_H
#define MICA_FRONTEND_SUPPORT_INPUTERROR_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"

#include <string>

namespace mica {

/// What to do about a file of which nothing better is known.
namespace hints {
inline constexpr llvm::StringLiteral correct = "correct it";
inline constexpr llvm::StringLiteral fetch = "fetch it again";
inline constexpr llvm::StringLiteral notQuantized =
    "use the model's original checkpoint with --weights int4 or int8, or a GGUF file of it";
} // namespace hints

/// The error `FILE: what; hint`, on one line: control characters are replaced. `what` says what
/// is wrong, where in brackets; `hint` what to do about it, beginning with a verb.
llvm::Error inputError(llvm::StringRef file, const llvm::Twine &what, const llvm::Twine &hint);

/// `text` in double quotes as it may be in a message: control and non-ASCII bytes escaped, cut
/// after 120 bytes. For everything that comes out of a file.
std::string inQuotes(llvm::StringRef text);

/// `error` with `rename(text)` for every text that is in double quotes: for readers that put
/// what a file says into other words and have them judged.
llvm::Error renameQuoted(llvm::Error error,
                         llvm::function_ref<std::string(llvm::StringRef)> rename);

} // namespace mica

#endif // MICA_FRONTEND_SUPPORT_INPUTERROR_H
