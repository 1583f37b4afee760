//===- TokenizerJson.h - files of the tokenizers package --------*- C++ -*-===//
#ifndef MICA_FRONTEND_TEXT_TOKENIZER_TOKENIZERJSON_H
#define MICA_FRONTEND_TEXT_TOKENIZER_TOKENIZERJSON_H

#include "frontend/text/tokenizer/TokenizerBuilder.h"

#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace mica {

/// Reads the root of a tokenizer.json; `file` is its name in errors.
llvm::Expected<TokenizerBuilder> readTokenizerJson(const llvm::json::Value &root,
                                                   llvm::StringRef file);

/// Reads the older format: the root of vocab.json and the text of merges.txt. The result is a
/// byte-level BPE without normalizer and pre-tokenizer, which are code in this format.
llvm::Expected<TokenizerBuilder> readVocabAndMerges(const llvm::json::Value &vocab,
                                                    llvm::StringRef vocabFile,
                                                    llvm::StringRef merges,
                                                    llvm::StringRef mergesFile);

/// Adds merges, each two pieces separated by a space, in order of rank.
void addMergeLines(llvm::ArrayRef<llvm::StringRef> lines, TokenizerBuilder &builder,
                   const JsonNode &where);

/// Assigns its piece to every byte, if there is one.
void setByteIds(TokenizerBuilder &builder);

} // namespace mica

#endif // MICA_FRONTEND_TEXT_TOKENIZER_TOKENIZERJSON_H
