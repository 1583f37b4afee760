//===- SentencePieceModel.h - sentencepiece's tokenizer.model ---*- C++ -*-===//
#ifndef MICA_FRONTEND_TEXT_TOKENIZER_SENTENCEPIECEMODEL_H
#define MICA_FRONTEND_TEXT_TOKENIZER_SENTENCEPIECEMODEL_H

#include "frontend/text/tokenizer/TokenizerBuilder.h"

namespace mica {

/// Reads the bytes of a tokenizer.model of type BPE or Unigram; `file` names it in errors. No ids
/// are put around a prompt yet; bosId and eosId are set where the model has them.
llvm::Expected<TokenizerBuilder> readSentencePieceModel(llvm::StringRef bytes,
                                                        llvm::StringRef file);

/// Takes a character map apart: u32 size of the trie, the trie, zero-terminated replacements.
/// False: it is broken. None is none.
bool setCharsMap(llvm::StringRef map, TokenizerTable::NormalizerStep &step);

} // namespace mica

#endif // MICA_FRONTEND_TEXT_TOKENIZER_SENTENCEPIECEMODEL_H
