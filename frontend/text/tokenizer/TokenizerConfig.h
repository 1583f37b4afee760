//===- TokenizerConfig.h - what tokenizer_config.json adds to a tokenizer -*- C++ -*-===//
#ifndef MICA_FRONTEND_TEXT_TOKENIZER_TOKENIZERCONFIG_H
#define MICA_FRONTEND_TEXT_TOKENIZER_TOKENIZERCONFIG_H

#include "frontend/text/tokenizer/TokenizerBuilder.h"

#include "llvm/Support/JSON.h"

namespace mica {

/// Where the vocabulary came from: what the config's class adds by itself depends on it.
enum class TokenizerSource { TokenizerJson, SentencePiece, VocabAndMerges, Ranks };

/// Applies tokenizer_config.json (`root` null: there is none): added tokens, bosId and eosId, which
/// of them are around a prompt, and for VocabAndMerges the normalizer and pre-tokenizer of the
/// tokenizer's class.
llvm::Error applyTokenizerConfig(const llvm::json::Value *root, llvm::StringRef file,
                                 TokenizerSource source, TokenizerBuilder &builder);

} // namespace mica

#endif // MICA_FRONTEND_TEXT_TOKENIZER_TOKENIZERCONFIG_H
