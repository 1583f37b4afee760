//===- GgufTokenizer.h - the tokenizer in a GGUF file's metadata -*- C++ -*-===//
#ifndef MICA_FRONTEND_TEXT_TOKENIZER_GGUFTOKENIZER_H
#define MICA_FRONTEND_TEXT_TOKENIZER_GGUFTOKENIZER_H

#include "frontend/formats/gguf/GgufModel.h"
#include "frontend/text/tokenizer/TokenizerBuilder.h"

namespace mica {

/// Reads the keys `tokenizer.*`: byte-level BPE ("gpt2") with a pre-tokenizer that is known by
/// name, or sentencepiece's BPE ("llama"). Nothing where the file has no tokenizer. Every other
/// kind, and every key that is not known, is refused by name.
llvm::Expected<std::optional<TokenizerBuilder>> readGgufTokenizer(const GgufModel &model);

} // namespace mica

#endif // MICA_FRONTEND_TEXT_TOKENIZER_GGUFTOKENIZER_H
