//===- SentencePieceModel.h - sentencepiece's tokenizer.model ---*- C++ -*-===//
#ifndef MICA_FRONTEND_TEXT_TOKENIZER_SENTENCEPIECEMODEL_H
#define MICA_FRONTEND_TEXT_TOKENIZER_SENTENCEPIECEMODEL_H

#include "frontend/text/tokenizer/TokenizerBuilder.h"

namespace mica {

/// Reads the bytes of a tokenizer.model of type BPE or Unigram; `file` is its name in errors. The
/// ids around a prompt are left empty; bosId and eosId are set if the model has them.
llvm::Expected<TokenizerBuilder> readSentencePieceModel(llvm::StringRef bytes,
                                                        llvm::StringRef file);

/// Parses a character map: u32 size of the trie, the trie, zero-terminated replacements. False:
/// it is invalid. An empty map is valid.
bool setCharsMap(llvm::StringRef map, TokenizerTable::NormalizerStep &step);

} // namespace mica

#endif // MICA_FRONTEND_TEXT_TOKENIZER_SENTENCEPIECEMODEL_H
