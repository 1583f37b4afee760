//===- UnicodeTables.h - facts about Unicode for the program, taken from ICU -*- C++ -*-===//
#ifndef MICA_FRONTEND_TEXT_TOKENIZER_UNICODETABLES_H
#define MICA_FRONTEND_TEXT_TOKENIZER_UNICODETABLES_H

#include "frontend/text/tokenizer/TokenizerTable.h"

namespace mica {

enum class UnicodeForm { NFC, NFD, NFKC, NFKD };

/// The normalizer step of a form, with its tables.
TokenizerTable::NormalizerStep unicodeFormStep(UnicodeForm form);

/// The normalizer step that makes each character lower case, by itself: no sigma is a last one.
TokenizerTable::NormalizerStep lowercaseStep();

/// The numbers that ICU knows and PCRE2, whose Unicode may be older, does not: what is beside
/// \p{N} in a character class to make it complete.
const std::string &numbersBesidePcre2();

} // namespace mica

#endif // MICA_FRONTEND_TEXT_TOKENIZER_UNICODETABLES_H
