//===- TokenizerConfig.h - tokenizer_config.json ----------------*- C++ -*-===//
#ifndef MICA_FRONTEND_TEXT_TOKENIZER_TOKENIZERCONFIG_H
#define MICA_FRONTEND_TEXT_TOKENIZER_TOKENIZERCONFIG_H

#include "frontend/text/tokenizer/TokenizerBuilder.h"

#include "llvm/Support/JSON.h"

namespace mica {

/// The source of the vocabulary, on which the defaults of the config's class depend.
enum class TokenizerSource { TokenizerJson, SentencePiece, VocabAndMerges, Ranks };

/// Applies tokenizer_config.json (`root` null: there is none): added tokens, bosId and eosId, which
/// of these are added to a prompt, and for VocabAndMerges the normalizer and pre-tokenizer of the
/// tokenizer's class.
llvm::Error applyTokenizerConfig(const llvm::json::Value *root, llvm::StringRef file,
                                 TokenizerSource source, TokenizerBuilder &builder);

} // namespace mica

#endif // MICA_FRONTEND_TEXT_TOKENIZER_TOKENIZERCONFIG_H
