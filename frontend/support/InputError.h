//===- InputError.h - errors about what the user handed in
//-------------------------------------===//
#ifndef MICA_FRONTEND_SUPPORT_INPUTERROR_H
#define MICA_FRONTEND_SUPPORT_INPUTERROR_H

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"

#include <string>

namespace mica {

/// The error `FILE: message`, on one line: control characters of either are escaped. `message` says
/// what is wrong, where in brackets, and after a comma what to do.
llvm::Error inputError(llvm::StringRef file, const llvm::Twine &message);

/// `text` in double quotes as it may stand in a message: control and non-ASCII bytes escaped, cut
/// after 120 bytes. For everything that comes out of a file.
std::string inQuotes(llvm::StringRef text);

} // namespace mica

#endif // MICA_FRONTEND_SUPPORT_INPUTERROR_H
