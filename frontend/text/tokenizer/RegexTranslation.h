//===- RegexTranslation.h - Oniguruma to PCRE2 patterns ---------*- C++ -*-===//
#ifndef MICA_FRONTEND_TEXT_TOKENIZER_REGEXTRANSLATION_H
#define MICA_FRONTEND_TEXT_TOKENIZER_REGEXTRANSLATION_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>

namespace mica {

/// Translates a pattern from Oniguruma, the regex engine of tokenizer files, to PCRE2: \s, \S, \w
/// and \W become explicit classes. Syntax without an equivalent is rejected.
///
/// The error contains only the problem, without its location.
llvm::Expected<std::string> translateRegex(llvm::StringRef pattern);

/// A pattern that matches `text` literally.
std::string escapeRegex(llvm::StringRef text);

} // namespace mica

#endif // MICA_FRONTEND_TEXT_TOKENIZER_REGEXTRANSLATION_H
