#include "frontend/text/tokenizer/TokenizerBuilder.h"

#include "frontend/support/InputError.h"
#include "frontend/text/tokenizer/ByteAlphabet.h"

#include "llvm/ADT/StringExtras.h"

namespace mica {

using namespace rt::tokenizer;

namespace {

/// The byte of a spelling such as <0x0A>.
std::optional<uint8_t> byteOfSpelling(llvm::StringRef spelling) {
  uint8_t byte = 0;
  if (spelling.size() != 6 || !spelling.consume_front("<0x") || !spelling.consume_back(">") ||
      spelling.getAsInteger(16, byte))
    return std::nullopt;
  return byte;
}

TokenizerTable::Piece makePiece(const TokenizerBuilder &builder, llvm::StringRef spelling) {
  if (builder.table.flags & ModelFlags::byteLevel) {
    if (auto bytes = byteLevelBytes(spelling))
      return {std::move(*bytes)};
    return {spelling.str(), PieceFlags::unmatched}; // decoded literally, never matched in text
  }
  if (auto byte = builder.bytePieces ? byteOfSpelling(spelling) : std::nullopt)
    return {std::string(1, static_cast<char>(*byte)), PieceFlags::byte};
  return {spelling.str()};
}

} // namespace

std::optional<int32_t> TokenizerBuilder::find(llvm::StringRef spelling) const {
  auto found = spellings.find(spelling);
  return found == spellings.end() ? std::nullopt : std::optional(found->second);
}

void TokenizerBuilder::addPiece(llvm::StringRef spelling, int64_t id, const JsonNode &where) {
  auto &pieces = table.pieces;
  // Ids may have gaps (those of added tokens often do), but only small ones.
  int64_t maxId = std::min<int64_t>(maxPieces, 4 * static_cast<int64_t>(spellings.size()) + 65536);
  if (id < 0 || id >= maxId)
    return where.refuse("the id " + llvm::Twine(id) + " of " + inQuotes(spelling) +
                        " is out of range");
  if (spelling.size() > maxPieceBytes)
    return where.refuse("piece too long");
  if (!spellings.try_emplace(spelling, static_cast<int32_t>(id)).second)
    return where.refuse("the piece " + inQuotes(spelling) + " occurs twice", "keep one");
  if (static_cast<size_t>(id) >= pieces.size())
    pieces.resize(id + 1, {"", PieceFlags::unmatched});
  TokenizerTable::Piece &piece = pieces[id];
  if (!piece.bytes.empty())
    return where.refuse("the id " + llvm::Twine(id) + " is used twice, also for " +
                            inQuotes(spelling),
                        "assign each piece its own id");
  piece = makePiece(*this, spelling);
}

void TokenizerBuilder::addToken(TokenizerTable::AddedToken token, const JsonNode &where) {
  if (token.content.empty())
    return where.refuse("an added token without text");
  for (const TokenizerTable::AddedToken &other : table.addedTokens)
    if (other.content == token.content) {
      if (other.id != token.id)
        where.refuse("the added token " + inQuotes(token.content) + " has two ids", "keep one");
      return;
    }
  auto known = find(token.content);
  if (!known) {
    addPiece(token.content, token.id, where);
    if (static_cast<size_t>(token.id) < table.pieces.size())
      table.pieces[token.id].flags |= PieceFlags::unmatched;
  } else if (*known != token.id) {
    return where.refuse("the added token " + inQuotes(token.content) + " has the id " +
                            llvm::Twine(token.id) + ", but its piece has " + llvm::Twine(*known),
                        "use the same id for both");
  }
  table.addedTokens.push_back(std::move(token));
}

void TokenizerBuilder::readAddedToken(const JsonNode &node, int64_t id) {
  node.allowKeys(
      {"id", "content", "special", "single_word", "lstrip", "rstrip", "normalized", "__type"});
  uint8_t flags = 0;
  auto flag = [&](llvm::StringRef key, uint8_t bit, bool fallback) {
    flags |= node[key].boolean(fallback) ? bit : 0;
  };
  bool special = node["special"].boolean(false);
  flags |= special ? AddedTokenFlags::special : 0;
  flag("single_word", AddedTokenFlags::singleWord, false);
  flag("lstrip", AddedTokenFlags::stripLeft, false);
  flag("rstrip", AddedTokenFlags::stripRight, false);
  flag("normalized", AddedTokenFlags::normalized, !special);
  addToken({static_cast<int32_t>(id), flags, node["content"].string()}, node);
}

} // namespace mica
