//===- RankFile.h - the vocabulary files of the tiktoken package -*- C++ -*-===//
#ifndef MICA_FRONTEND_TEXT_TOKENIZER_RANKFILE_H
#define MICA_FRONTEND_TEXT_TOKENIZER_RANKFILE_H

#include "frontend/text/tokenizer/TokenizerBuilder.h"

#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace mica {

/// Reads a rank file: on each line a piece in base64, a space and its rank, which is its id. What
/// splits text and which special tokens follow is code: the class that `config`
/// (tokenizer_config.json; null: there is none) names decides, else the file's own name. Those that
/// are not known are refused.
/// `published`: also those that have not as many ranks as the published file.
llvm::Expected<TokenizerBuilder> readRankFile(llvm::StringRef text, llvm::StringRef file,
                                              const llvm::json::Value *config,
                                              bool published = true);

/// Whether the file's name says how text is split before its ranks are used.
bool isKnownRankFile(llvm::StringRef file);

} // namespace mica

#endif // MICA_FRONTEND_TEXT_TOKENIZER_RANKFILE_H
