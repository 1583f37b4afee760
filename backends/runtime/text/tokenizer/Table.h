// A tokenizer table opened for reading. All offsets, counts, ids and flags are checked.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_TABLE_H
#define MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_TABLE_H

#include "backends/runtime/support/Result.h"
#include "backends/runtime/text/tokenizer/TableFormat.h"

#include <array>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace mica::rt::tokenizer {

/// Little-endian numbers at unaligned addresses.
template <typename T> class Array {
  static_assert(std::is_trivially_copyable_v<T>);

public:
  Array() = default;
  Array(const std::byte *data, size_t count) : data(data), count(count) {}
  size_t size() const { return count; }
  bool empty() const { return count == 0; }
  T operator[](size_t index) const {
    T value;
    std::memcpy(&value, data + index * sizeof(T), sizeof(T));
    return value;
  }

private:
  const std::byte *data = nullptr;
  size_t count = 0;
};

struct Merge {
  uint32_t left, right, merged;
};

/// One step of the normalizer; the fields that are used depend on `kind` (TableFormat.h).
struct NormalizerStep {
  NormalizerKind kind = NormalizerKind::Prepend;
  std::string_view text, replacement; // Prepend, Replace, ReplacePattern
  size_t minBytes = 0;                // ReplacePattern: the fewest bytes that it replaces
  bool compose = false;               // UnicodeForm
  Array<uint32_t> classes, decompositions, compositions;
  Array<uint32_t> characters;          // CharacterMap
  bool left = false, right = false;    // Strip
  uint8_t rules = 0;                   // SentencePiece
  std::string_view trie, replacements; // SentencePiece, CharsMap
};

struct PreTokenizerStep {
  PreTokenizerKind kind = PreTokenizerKind::Split;
  SplitBehavior behavior = SplitBehavior::Isolated;
  bool invert = false, split = false;
  PrependScheme scheme = PrependScheme::Never;
  std::string_view text; // Split: the pattern; Metaspace: the replacement
};

struct AddedToken {
  int32_t id;
  uint8_t flags;
  std::string_view content;
};

struct Replacement {
  std::string_view from, to;
};

struct Table {
  ModelKind kind = ModelKind::MergesByRank;
  uint32_t flags;
  int32_t unknownId;
  std::array<int32_t, 256> byteIds;
  Array<uint32_t> pieceEnds;
  std::string_view pieceBytes;
  Array<uint8_t> pieceFlags;
  Array<float> scores;
  Array<double> exactScores; // ExactUnigram
  Array<Merge> merges;
  std::vector<NormalizerStep> normalizer;
  std::vector<PreTokenizerStep> preTokenizer;
  std::vector<AddedToken> addedTokens;
  std::vector<int32_t> prefixIds, suffixIds;
  DecoderStart decoderStart;
  uint32_t stripCount;
  std::string_view stripped, unknownText;
  std::vector<Replacement> replacements;

  uint32_t pieces() const { return static_cast<uint32_t>(pieceEnds.size()); }
  std::string_view piece(uint32_t id) const {
    uint32_t begin = id == 0 ? 0 : pieceEnds[id - 1];
    return pieceBytes.substr(begin, pieceEnds[id] - begin);
  }
  bool has(uint32_t modelFlag) const { return (flags & modelFlag) != 0; }
};

/// The maximum growth of a text by normalization, as a factor; published normalizers reach 14, for
/// U+FDFA.
inline constexpr size_t kMaxGrowth = 64;

/// For each id, whether it belongs to an added token with one of these AddedTokenFlags.
std::vector<bool> idsWith(const Table &table, uint8_t flags);
/// Special and reserved tokens: the models never produce one from text, with the exception of the
/// unknown id.
std::vector<bool> specialIds(const Table &table);

/// Opens `bytes`, which must outlive the result. Every table is either rejected or safe to use.
Result<Table> openTable(std::span<const std::byte> bytes);

} // namespace mica::rt::tokenizer

#endif // MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_TABLE_H
