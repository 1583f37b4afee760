//===- RankFile.h - vocabulary files of tiktoken ----------------*- C++ -*-===//
#ifndef MICA_FRONTEND_TEXT_TOKENIZER_RANKFILE_H
#define MICA_FRONTEND_TEXT_TOKENIZER_RANKFILE_H

#include "frontend/text/tokenizer/TokenizerBuilder.h"

#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace mica {

/// Reads a rank file: each line has a piece in base64, a space and its rank, which is its id.
/// Pre-tokenizer and special tokens are code: they follow from the class named by `config`
/// (tokenizer_config.json; null: there is none), else from the name of the file. Unknown classes
/// and names are rejected.
/// `published`: files whose number of ranks differs from the published file are rejected as well.
llvm::Expected<TokenizerBuilder> readRankFile(llvm::StringRef text, llvm::StringRef file,
                                              const llvm::json::Value *config,
                                              bool published = true);

/// Whether the name of the file determines the pre-tokenizer.
bool isKnownRankFile(llvm::StringRef file);

} // namespace mica

#endif // MICA_FRONTEND_TEXT_TOKENIZER_RANKFILE_H
