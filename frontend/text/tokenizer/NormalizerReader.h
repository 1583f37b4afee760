//===- NormalizerReader.h - the normalizer of a tokenizer.json --*- C++ -*-===//
#ifndef MICA_FRONTEND_TEXT_TOKENIZER_NORMALIZERREADER_H
#define MICA_FRONTEND_TEXT_TOKENIZER_NORMALIZERREADER_H

#include "frontend/text/tokenizer/JsonNode.h"
#include "frontend/text/tokenizer/TokenizerTable.h"

namespace mica {

/// Appends the component at the node to `table`; null means none. Unknown types are rejected
/// with an error that names them.
void readNormalizer(const JsonNode &node, TokenizerTable &table);

} // namespace mica

#endif // MICA_FRONTEND_TEXT_TOKENIZER_NORMALIZERREADER_H
