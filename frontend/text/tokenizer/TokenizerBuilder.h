//===- TokenizerBuilder.h - a table under construction ----------*- C++ -*-===//
#ifndef MICA_FRONTEND_TEXT_TOKENIZER_TOKENIZERBUILDER_H
#define MICA_FRONTEND_TEXT_TOKENIZER_TOKENIZERBUILDER_H

#include "frontend/text/tokenizer/JsonNode.h"
#include "frontend/text/tokenizer/TokenizerTable.h"

#include "llvm/ADT/StringMap.h"

namespace mica {

struct TokenizerBuilder {
  TokenizerTable table;
  /// Maps every piece and added token, as spelled in its file, to its id.
  llvm::StringMap<int32_t> spellings;
  /// Pieces spelled <0xAB> are printed as this byte.
  bool bytePieces = false;

  std::optional<int32_t> find(llvm::StringRef spelling) const;
  /// Adds the piece `spelling` with `id`; reports duplicate spellings and ids at `where`.
  void addPiece(llvm::StringRef spelling, int64_t id, const JsonNode &where);
  /// Adds a token; a piece with the same spelling must have the same id. An existing token is
  /// left unchanged.
  void addToken(TokenizerTable::AddedToken token, const JsonNode &where);
  /// Reads an added token, an object of tokenizer.json or tokenizer_config.json.
  void readAddedToken(const JsonNode &node, int64_t id);
};

} // namespace mica

#endif // MICA_FRONTEND_TEXT_TOKENIZER_TOKENIZERBUILDER_H
