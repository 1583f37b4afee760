// Tokens that are written by a chat template and must not be produced from untrusted text.
#include "backends/runtime/text/tokenizer/ReservedTokens.h"
#include "backends/runtime/text/base/Utf8.h"

#include <algorithm>

namespace mica::rt::tokenizer {
namespace {

using Literals = std::span<const std::string>;

/// ASCII only, like roles.
bool isWordByte(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool marksNoStructure(std::string_view token) {
  if (token.empty() || token.size() <= charLength(token[0]))
    return true;
  auto isSpace = [](std::string_view character) {
    return character == " " || character == "\t" || character == "\n" || character == "\r" ||
           character == "\xE2\x96\x81";
  };
  while (!token.empty() && isSpace(token.substr(0, charLength(token[0]))))
    token.remove_prefix(charLength(token[0]));
  return token.empty();
}

/// Whether the template may write `token` with a word such as a role between two literals: whether
/// it is the end of a literal, a word and the beginning of a literal.
bool surroundsWord(std::string_view token, Literals literals) {
  auto any = [&](auto holds) { return std::any_of(literals.begin(), literals.end(), holds); };
  for (size_t begin = 1; begin < token.size(); ++begin) {
    size_t end = begin;
    while (end < token.size() && isWordByte(token[end]))
      ++end;
    if (end == begin || end == token.size())
      continue;
    auto before = token.substr(0, begin), after = token.substr(end);
    if (any([&](std::string_view literal) { return literal.ends_with(before); }) &&
        any([&](std::string_view literal) { return literal.starts_with(after); }))
      return true;
  }
  return false;
}

bool isWritten(std::string_view token, Literals literals) {
  if (marksNoStructure(token))
    return false;
  return std::any_of(literals.begin(), literals.end(),
                     [&](std::string_view text) { return text.find(token) != text.npos; }) ||
         surroundsWord(token, literals);
}

} // namespace

void reserveTokens(Table &table, Literals literals) {
  for (AddedToken &token : table.addedTokens)
    if (isWritten(token.content, literals))
      token.flags |= AddedTokenFlags::reserved;
  std::vector<bool> known(table.pieces(), false);
  for (const AddedToken &token : table.addedTokens)
    known[static_cast<size_t>(token.id)] = true;
  constexpr uint8_t flags =
      AddedTokenFlags::normalized | AddedTokenFlags::reserved | AddedTokenFlags::piece;
  for (uint32_t id = 0; id < table.pieces(); ++id)
    if ((table.pieceFlags[id] & PieceFlags::userDefined) && !known[id] &&
        isWritten(table.piece(id), literals))
      table.addedTokens.push_back({static_cast<int32_t>(id), flags, table.piece(id)});
}

} // namespace mica::rt::tokenizer
