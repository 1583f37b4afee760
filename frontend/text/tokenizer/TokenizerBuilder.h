//===- TokenizerBuilder.h - a tokenizer table under construction -*- C++ -*-===//
#ifndef MICA_FRONTEND_TEXT_TOKENIZER_TOKENIZERBUILDER_H
#define MICA_FRONTEND_TEXT_TOKENIZER_TOKENIZERBUILDER_H

#include "frontend/text/tokenizer/JsonNode.h"
#include "frontend/text/tokenizer/TokenizerTable.h"

#include "llvm/ADT/StringMap.h"

namespace mica {

struct TokenizerBuilder {
  TokenizerTable table;
  /// Every piece and added token as its file spells it -> id.
  llvm::StringMap<int32_t> spellings;
  /// Pieces spelled <0xAB> print as that byte.
  bool bytePieces = false;

  std::optional<int32_t> find(llvm::StringRef spelling) const;
  /// Makes `spelling` the piece with `id`, reporting at `where` a spelling or an id that is taken.
  void addPiece(llvm::StringRef spelling, int64_t id, const JsonNode &where);
  /// Adds a token; a piece of the same spelling must have the same id. A token that is there
  /// already stays as it is.
  void addToken(TokenizerTable::AddedToken token, const JsonNode &where);
  /// Reads the object of an added token, as tokenizer.json and tokenizer_config.json write it.
  void readAddedToken(const JsonNode &node, int64_t id);
};

} // namespace mica

#endif // MICA_FRONTEND_TEXT_TOKENIZER_TOKENIZERBUILDER_H
