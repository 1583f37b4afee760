//===- GgufTokenizer.h - tokenizers of GGUF files ---------------*- C++ -*-===//
#ifndef MICA_FRONTEND_TEXT_TOKENIZER_GGUFTOKENIZER_H
#define MICA_FRONTEND_TEXT_TOKENIZER_GGUFTOKENIZER_H

#include "frontend/formats/gguf/GgufModel.h"
#include "frontend/text/tokenizer/TokenizerBuilder.h"

namespace mica {

/// Reads the keys `tokenizer.*`: byte-level BPE ("gpt2") with a known pre-tokenizer, or the BPE of
/// sentencepiece ("llama"). Nothing if the file has no tokenizer. Other kinds and unknown keys are
/// rejected with an error that names it.
llvm::Expected<std::optional<TokenizerBuilder>> readGgufTokenizer(const GgufModel &model);

} // namespace mica

#endif // MICA_FRONTEND_TEXT_TOKENIZER_GGUFTOKENIZER_H
