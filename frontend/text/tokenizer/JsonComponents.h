//===- JsonComponents.h - the parts of a tokenizer.json around its model -*- C++ -*-===//
#ifndef MICA_FRONTEND_TEXT_TOKENIZER_JSONCOMPONENTS_H
#define MICA_FRONTEND_TEXT_TOKENIZER_JSONCOMPONENTS_H

#include "frontend/text/tokenizer/JsonNode.h"
#include "frontend/text/tokenizer/TokenizerTable.h"

namespace mica {

/// Each appends the component at the node to `table`; null means none. Unknown types are rejected
/// by name.
void readNormalizer(const JsonNode &node, TokenizerTable &table);
/// Sets ModelFlags::byteLevel if the words are passed to the model as bytes.
void readPreTokenizer(const JsonNode &node, TokenizerTable &table);
/// Rejects pieces that would be split if digits were matched in the spelling of bytes.
void checkDigitsOfBytes(const JsonNode &node, const TokenizerTable &table);
/// Reads the ids around a prompt. Needs the pieces of the table.
void readPostProcessor(const JsonNode &node, TokenizerTable &table);
/// Needs the flags of the table. `bytePieces`: pieces spelled <0xAB> are printed as bytes.
void readDecoder(const JsonNode &node, TokenizerTable &table, bool &bytePieces);

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

#endif // MICA_FRONTEND_TEXT_TOKENIZER_JSONCOMPONENTS_H
