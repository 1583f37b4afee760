//===- ReadTokenizer.h - the tokenizer of a model folder --------*- C++ -*-===//
#ifndef MICA_FRONTEND_TEXT_TOKENIZER_READTOKENIZER_H
#define MICA_FRONTEND_TEXT_TOKENIZER_READTOKENIZER_H

#include "frontend/text/tokenizer/TokenizerTable.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <optional>

namespace mica {

/// Reads tokenizer.json, else tokenizer.model, else vocab.json with merges.txt, and
/// tokenizer_config.json beside it; or, where `model` is a GGUF file, its metadata. Nothing when
/// there is none of them. The table is checked: the run time will open its bytes.
llvm::Expected<std::optional<TokenizerTable>> readTokenizer(llvm::StringRef model);

/// What a model lacks that has no tokenizer: "has no ...".
std::string reasonForNoTokenizer(llvm::StringRef model);

} // namespace mica

#endif // MICA_FRONTEND_TEXT_TOKENIZER_READTOKENIZER_H
