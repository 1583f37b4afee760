//===- TokenizerJson.h - the vocabulary files of the tokenizers package
//-------------------------===//
#ifndef MICA_FRONTEND_TOKENIZER_TOKENIZERJSON_H
#define MICA_FRONTEND_TOKENIZER_TOKENIZERJSON_H

#include "frontend/tokenizer/TokenizerBuilder.h"

#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace mica {

/// Reads the root of a tokenizer.json; `file` names it in errors.
llvm::Expected<TokenizerBuilder> readTokenizerJson(const llvm::json::Value &root,
                                                   llvm::StringRef file);

/// Reads the older pair: the root of vocab.json and the text of merges.txt. The result is a
/// byte-level BPE with neither normaliser nor pre-tokenizer: those were code.
llvm::Expected<TokenizerBuilder> readVocabAndMerges(const llvm::json::Value &vocab,
                                                    llvm::StringRef vocabFile,
                                                    llvm::StringRef merges,
                                                    llvm::StringRef mergesFile);

} // namespace mica

#endif // MICA_FRONTEND_TOKENIZER_TOKENIZERJSON_H
