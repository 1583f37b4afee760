#include "backends/runtime/text/tokenizer/Lookup.h"
#include "backends/runtime/text/tokenizer/Table.h"

#include <algorithm>
#include <bit>

namespace mica::rt::tokenizer {
namespace {

/// Multiplies and folds both halves, so that every input bit affects every output bit.
uint64_t mix(uint64_t a, uint64_t b) {
  unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

constexpr uint64_t oddA = 0x9E3779B97F4A7C15ull, oddB = 0xD1B54A32D192ED03ull;

uint64_t hashPair(uint32_t left, uint32_t right) {
  return mix((uint64_t(left) << 32 | right) ^ oddA, oddB);
}

constexpr uint8_t unmatchable =
    PieceFlags::unknown | PieceFlags::control | PieceFlags::byte | PieceFlags::unmatched;

} // namespace

uint64_t hashBytes(std::string_view bytes) {
  uint64_t state = oddB ^ bytes.size();
  while (bytes.size() >= 8) {
    uint64_t word;
    std::memcpy(&word, bytes.data(), 8);
    state = mix(state ^ word, oddA);
    bytes.remove_prefix(8);
  }
  uint64_t rest = 0;
  std::memcpy(&rest, bytes.data(), bytes.size());
  return mix(state ^ rest, oddA);
}

PieceIndex::PieceIndex(const Table &table)
    : table(table), slots(std::bit_ceil(size_t(table.pieces()) * 2 + 2), -1) {
  std::vector<bool> special = specialIds(table);
  for (uint32_t id = 0; id < table.pieces(); ++id) {
    std::string_view bytes = table.piece(id);
    if (bytes.empty() || (table.pieceFlags[id] & unmatchable) || special[id])
      continue;
    longest = std::max(longest, static_cast<uint32_t>(bytes.size()));
    size_t slot = hashBytes(bytes) & (slots.size() - 1);
    while (slots[slot] != -1 && table.piece(slots[slot]) != bytes)
      slot = (slot + 1) & (slots.size() - 1);
    if (slots[slot] == -1)
      slots[slot] = static_cast<int32_t>(id);
  }
}

int32_t PieceIndex::find(std::string_view bytes) const {
  if (bytes.empty() || bytes.size() > longest)
    return -1;
  size_t slot = hashBytes(bytes) & (slots.size() - 1);
  while (slots[slot] != -1 && table.piece(slots[slot]) != bytes)
    slot = (slot + 1) & (slots.size() - 1);
  return slots[slot];
}

PairIndex::PairIndex(const Table &table)
    : slots(std::bit_ceil(table.merges.size() * 2 + 2), Slot{0, 0, ~0u, 0}) {
  std::vector<bool> special = specialIds(table);
  for (uint32_t rank = 0; rank < table.merges.size(); ++rank) {
    Merge merge = table.merges[rank];
    if (special[merge.merged])
      continue;
    size_t slot = hashPair(merge.left, merge.right) & (slots.size() - 1);
    auto occupied = [&] {
      const Slot &other = slots[slot];
      return other.rank != ~0u && (other.left != merge.left || other.right != merge.right);
    };
    while (occupied())
      slot = (slot + 1) & (slots.size() - 1);
    slots[slot] = {merge.left, merge.right, rank, merge.merged};
  }
}

PairIndex::Found PairIndex::find(int32_t left, int32_t right) const {
  auto wantedLeft = static_cast<uint32_t>(left), wantedRight = static_cast<uint32_t>(right);
  size_t slot = hashPair(wantedLeft, wantedRight) & (slots.size() - 1);
  for (;; slot = (slot + 1) & (slots.size() - 1)) {
    const Slot &entry = slots[slot];
    if (entry.rank == ~0u)
      return {};
    if (entry.left == wantedLeft && entry.right == wantedRight)
      return {entry.rank, static_cast<int32_t>(entry.merged)};
  }
}

PrefixSearch::PrefixSearch(std::vector<std::pair<std::string_view, int32_t>> given)
    : entries(std::move(given)) {
  auto equal = [](const auto &a, const auto &b) { return a.first == b.first; };
  std::erase_if(entries, [](const auto &entry) { return entry.first.empty(); });
  std::sort(entries.begin(), entries.end());
  entries.erase(std::unique(entries.begin(), entries.end(), equal), entries.end());
  for (const auto &entry : entries)
    starts[static_cast<uint8_t>(entry.first[0])] = true;
}

void PrefixSearch::narrow(size_t &first, size_t &last, size_t depth, char byte) const {
  auto at = static_cast<uint8_t>(byte);
  // An entry that ends here sorts before all longer ones.
  auto key = [depth](const auto &entry) {
    return entry.first.size() == depth ? -1
                                       : static_cast<int>(static_cast<uint8_t>(entry.first[depth]));
  };
  auto begin = entries.begin() + first, end = entries.begin() + last;
  begin = std::partition_point(begin, end, [&](const auto &entry) { return key(entry) < at; });
  end = std::partition_point(begin, end, [&](const auto &entry) { return key(entry) == at; });
  first = begin - entries.begin();
  last = end - entries.begin();
}

PrefixSearch::Match PrefixSearch::longest(std::string_view text) const {
  Match match;
  if (!text.empty() && mayStart(text[0]))
    forEach(text, [&](size_t length, int32_t value) { match = {length, value}; });
  return match;
}

} // namespace mica::rt::tokenizer
