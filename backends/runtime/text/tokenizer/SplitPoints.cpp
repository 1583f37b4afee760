#include "backends/runtime/text/tokenizer/SplitPoints.h"
#include "backends/runtime/text/tokenizer/Table.h"

#include <algorithm>

namespace mica::rt::tokenizer {
namespace {

constexpr std::string_view space = "\xE2\x96\x81";

/// Flags of pieces that the models do not match, or split again.
constexpr uint8_t outside =
    PieceFlags::unknown | PieceFlags::control | PieceFlags::byte | PieceFlags::unmatched;

bool hasKnownSpace(const Table &table) {
  for (uint32_t id = 0; id < table.pieces(); ++id)
    if (table.piece(id) == space && !(table.pieceFlags[id] & (outside | PieceFlags::unused)))
      return true;
  return false;
}

/// Whether `piece` contains a space that is not at its start.
bool crosses(std::string_view piece) {
  for (size_t at = piece.find(space, 1); at != piece.npos; at = piece.find(space, at + 1))
    if (!piece.substr(0, at).ends_with(space))
      return true;
  return false;
}

bool anyCrosses(const Table &table) {
  for (uint32_t id = 0; id < table.pieces(); ++id) {
    // If pieces are split again, the result depends on the whole text.
    if (table.pieceFlags[id] & PieceFlags::unused)
      return true;
    if (!(table.pieceFlags[id] & outside) && crosses(table.piece(id)))
      return true;
  }
  for (size_t i = 0; i < table.merges.size(); ++i) {
    Merge merge = table.merges[i];
    if (!table.piece(merge.left).ends_with(space) && table.piece(merge.right).starts_with(space))
      return true;
  }
  return false;
}

} // namespace

SplitPoints::SplitPoints(const Table &table) {
  bool whole = table.kind == ModelKind::Unigram ||
               table.kind == ModelKind::ExactUnigram || // sums of scores round by the whole text
               table.has(ModelFlags::byteLevel) || table.has(ModelFlags::ignoreMerges);
  present = !whole && hasKnownSpace(table) && !anyCrosses(table);
}

size_t SplitPoints::find(std::string_view text) {
  size_t at = text.starts_with(space) ? space.size() : 1;
  for (at = text.find(space, at); at != text.npos; at = text.find(space, at + space.size()))
    if (!text.substr(0, at).ends_with(space))
      return at;
  return text.size();
}

} // namespace mica::rt::tokenizer
