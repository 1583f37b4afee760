// Tokens that are written by a chat template and must not be produced from untrusted text.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_RESERVEDTOKENS_H
#define MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_RESERVEDTOKENS_H

#include "backends/runtime/text/tokenizer/Table.h"

#include <span>
#include <string>

namespace mica::rt::tokenizer {

/// Reserves the added tokens and user-defined pieces that a chat template writes: those contained
/// in one of its `literals`, and those composed of the end of a literal, a word such as a role and
/// the beginning of a literal. White space and single characters are never reserved. Reserved
/// user-defined pieces become added tokens, because the models do not know which text is untrusted.
void reserveTokens(Table &table, std::span<const std::string> literals);

} // namespace mica::rt::tokenizer

#endif // MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_RESERVEDTOKENS_H
