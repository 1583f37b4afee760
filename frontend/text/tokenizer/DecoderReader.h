//===- DecoderReader.h - the decoder of a tokenizer.json --------*- C++ -*-===//
#ifndef MICA_FRONTEND_TEXT_TOKENIZER_DECODERREADER_H
#define MICA_FRONTEND_TEXT_TOKENIZER_DECODERREADER_H

#include "frontend/text/tokenizer/JsonNode.h"
#include "frontend/text/tokenizer/TokenizerTable.h"

namespace mica {

/// Appends the component at the node to `table`; null means none. Unknown types are rejected
/// with an error that names them. Needs the flags of the table. `bytePieces`: pieces spelled <0xAB>
/// are printed as bytes.
void readDecoder(const JsonNode &node, TokenizerTable &table, bool &bytePieces);

} // namespace mica

#endif // MICA_FRONTEND_TEXT_TOKENIZER_DECODERREADER_H
