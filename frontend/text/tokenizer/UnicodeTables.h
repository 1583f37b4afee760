//===- UnicodeTables.h - Unicode data from ICU ------------------*- C++ -*-===//
#ifndef MICA_FRONTEND_TEXT_TOKENIZER_UNICODETABLES_H
#define MICA_FRONTEND_TEXT_TOKENIZER_UNICODETABLES_H

#include "frontend/text/tokenizer/TokenizerTable.h"

namespace mica {

enum class UnicodeForm { NFC, NFD, NFKC, NFKD };

/// The normalizer step of a Unicode form, with its tables.
TokenizerTable::NormalizerStep unicodeFormStep(UnicodeForm form);

/// The normalizer step that lower-cases each character in isolation: there is no final sigma.
TokenizerTable::NormalizerStep lowercaseStep();

/// The numbers that are known to ICU but not to PCRE2, whose Unicode version may be older: they are
/// added to \p{N} in character classes.
const std::string &numbersBesidePcre2();

} // namespace mica

#endif // MICA_FRONTEND_TEXT_TOKENIZER_UNICODETABLES_H
