//===- PreTokenizerReader.h - reads pre-tokenizers --------------*- C++ -*-===//
#ifndef MICA_FRONTEND_TEXT_TOKENIZER_PRETOKENIZERREADER_H
#define MICA_FRONTEND_TEXT_TOKENIZER_PRETOKENIZERREADER_H

#include "frontend/text/tokenizer/JsonNode.h"
#include "frontend/text/tokenizer/TokenizerTable.h"

namespace mica {

/// Appends the component at the node to `table`; null means none. Unknown types are rejected
/// with an error that names them. Sets ModelFlags::byteLevel if the words are passed to the model
/// as bytes.
void readPreTokenizer(const JsonNode &node, TokenizerTable &table);

/// Rejects pieces that would be split if digits were matched in the spelling of bytes.
void checkDigitsOfBytes(const JsonNode &node, const TokenizerTable &table);

/// The pattern at `node` for the runtime. It is rejected here, where its location is known, if the
/// runtime would reject it.
std::string readRegex(const JsonNode &node);

/// GPT-2's pre-tokenizer pattern, which ByteLevel implies, in PCRE2's syntax.
std::string gpt2Pattern();
/// The built-in pattern of the class Qwen2Tokenizer, similar to Llama 3's.
std::string qwen2Pattern();

/// A step that splits every match of `pattern` off as a word.
TokenizerTable::PreTokenizerStep isolate(std::string pattern);

} // namespace mica

#endif // MICA_FRONTEND_TEXT_TOKENIZER_PRETOKENIZERREADER_H
