//===- ReadTokenizer.h - the tokenizer of a model folder --------*- C++ -*-===//
#ifndef MICA_FRONTEND_TEXT_TOKENIZER_READTOKENIZER_H
#define MICA_FRONTEND_TEXT_TOKENIZER_READTOKENIZER_H

#include "frontend/text/tokenizer/TokenizerTable.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <optional>

namespace mica {

/// Reads tokenizer.json, else tokenizer.model, else vocab.json with merges.txt, together with
/// tokenizer_config.json; or, if `model` is a GGUF file, its metadata. Nothing if there is none of
/// these. The table is valid: the runtime will accept its bytes.
llvm::Expected<std::optional<TokenizerTable>> readTokenizer(llvm::StringRef model);

/// The problem of a model without a tokenizer: "has no ...".
std::string reasonForNoTokenizer(llvm::StringRef model);

} // namespace mica

#endif // MICA_FRONTEND_TEXT_TOKENIZER_READTOKENIZER_H
