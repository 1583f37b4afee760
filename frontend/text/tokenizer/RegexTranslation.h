//===- RegexTranslation.h - patterns of tokenizer files as PCRE2 reads them -*- C++ -*-===//
#ifndef MICA_FRONTEND_TEXT_TOKENIZER_REGEXTRANSLATION_H
#define MICA_FRONTEND_TEXT_TOKENIZER_REGEXTRANSLATION_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>

namespace mica {

/// Rewrites what Oniguruma (the engine that tokenizer files are written for) and PCRE2 read
/// differently: \s, \S, \w and
/// \W become explicit classes. What has no equivalent is refused; the error is the problem alone,
/// without a place.
llvm::Expected<std::string> translateRegex(llvm::StringRef pattern);

/// A pattern that matches exactly `text`.
std::string escapeRegex(llvm::StringRef text);

} // namespace mica

#endif // MICA_FRONTEND_TEXT_TOKENIZER_REGEXTRANSLATION_H
