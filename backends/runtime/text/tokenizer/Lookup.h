// Hash tables and prefix search for encoding, built once when a table is opened.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_LOOKUP_H
#define MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_LOOKUP_H

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::rt::tokenizer {

struct Table;

uint64_t hashBytes(std::string_view bytes);

/// Maps the bytes of a piece to its id, for the pieces that the model may match.
class PieceIndex {
public:
  /// Of two pieces with the same bytes, the one with the lower id is found. Refers to the bytes of
  /// `table`.
  explicit PieceIndex(const Table &table);
  /// -1: no such piece.
  int32_t find(std::string_view bytes) const;

private:
  const Table &table;
  std::vector<int32_t> slots; // -1: empty; power of two, at most half full
  uint32_t longest = 0;       // of a piece, in bytes
};

/// Maps a pair of adjacent ids to the rank and the result of their merge.
class PairIndex {
public:
  explicit PairIndex(const Table &table);

  struct Found {
    uint32_t rank = ~0u; // ~0u: they do not merge
    int32_t merged = -1;
  };
  Found find(int32_t left, int32_t right) const;

private:
  struct Slot {
    uint32_t left, right, rank, merged;
  };
  std::vector<Slot> slots; // rank ~0u: empty; power of two, at most half full
};

/// A sorted map from strings to values with prefix search.
class PrefixSearch {
public:
  PrefixSearch() = default;
  /// Of equal strings, the one with the lowest value is kept. Empty strings are dropped.
  explicit PrefixSearch(std::vector<std::pair<std::string_view, int32_t>> entries);

  bool empty() const { return entries.empty(); }
  bool mayStart(char byte) const { return starts[static_cast<uint8_t>(byte)]; }

  /// Calls `visit(length, value)` for each entry that `text` starts with, shortest first.
  template <typename Visit> void forEach(std::string_view text, Visit visit) const {
    size_t first = 0, last = entries.size();
    for (size_t length = 1; length <= text.size() && first < last; ++length) {
      narrow(first, last, length - 1, text[length - 1]);
      if (first < last && entries[first].first.size() == length)
        visit(length, entries[first].second);
    }
  }

  struct Match {
    size_t length = 0; // 0: none
    int32_t value = -1;
  };
  Match longest(std::string_view text) const;

private:
  /// Narrows entries [first, last), which share `depth` bytes, to those whose next byte is `byte`.
  void narrow(size_t &first, size_t &last, size_t depth, char byte) const;

  std::vector<std::pair<std::string_view, int32_t>> entries;
  std::array<bool, 256> starts{};
};

} // namespace mica::rt::tokenizer

#endif // MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_LOOKUP_H
