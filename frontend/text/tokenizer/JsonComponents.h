//===- JsonComponents.h - the parts of a tokenizer.json around its model -*- C++ -*-===//
#ifndef MICA_FRONTEND_TEXT_TOKENIZER_JSONCOMPONENTS_H
#define MICA_FRONTEND_TEXT_TOKENIZER_JSONCOMPONENTS_H

#include "frontend/text/tokenizer/JsonNode.h"
#include "frontend/text/tokenizer/TokenizerTable.h"

namespace mica {

/// Each appends to `table` what the node says; null means nothing. Unknown types are refused by
/// name.
void readNormalizer(const JsonNode &node, TokenizerTable &table);
/// Sets ModelFlags::byteLevel where the words reach the model as bytes.
void readPreTokenizer(const JsonNode &node, TokenizerTable &table);
/// Refuses pieces that would be split where digits are looked for in the spelling of bytes.
void checkDigitsOfBytes(const JsonNode &node, const TokenizerTable &table);
/// The ids around a prompt. Needs the table's pieces.
void readPostProcessor(const JsonNode &node, TokenizerTable &table);
/// Needs the table's flags. `bytePieces` tells whether pieces spelled <0xAB> print as bytes.
void readDecoder(const JsonNode &node, TokenizerTable &table, bool &bytePieces);

/// The pattern at `node` as the run time takes it; refused here, where its place is known, if the
/// run time would refuse it.
std::string readRegex(const JsonNode &node);

/// GPT-2's pre-tokenizer pattern, which ByteLevel stands for, as PCRE2 reads it.
std::string gpt2Pattern();
/// Qwen2's and Llama-3's kin: the pattern that the class Qwen2Tokenizer has built in.
std::string qwen2Pattern();

/// A step that makes every match of `pattern` a word.
TokenizerTable::PreTokenizerStep isolate(std::string pattern);

} // namespace mica

#endif // MICA_FRONTEND_TEXT_TOKENIZER_JSONCOMPONENTS_H
