//===- PostProcessorReader.h - reads post-processors ------------*- C++ -*-===//
#ifndef MICA_FRONTEND_TEXT_TOKENIZER_POSTPROCESSORREADER_H
#define MICA_FRONTEND_TEXT_TOKENIZER_POSTPROCESSORREADER_H

#include "frontend/text/tokenizer/JsonNode.h"
#include "frontend/text/tokenizer/TokenizerTable.h"

namespace mica {

/// Reads the ids around a prompt from the component at the node; null means none. Unknown types are
/// rejected with an error that names it. Needs the pieces of the table.
void readPostProcessor(const JsonNode &node, TokenizerTable &table);

} // namespace mica

#endif // MICA_FRONTEND_TEXT_TOKENIZER_POSTPROCESSORREADER_H
