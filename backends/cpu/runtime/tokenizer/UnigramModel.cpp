// Unigram as sentencepiece computes it: the best path over all pieces, by dynamic programming. Sums
// are f32, as its are: which of two equal paths wins depends on how they round.
#include "backends/cpu/runtime/tokenizer/Lookup.h"
#include "backends/cpu/runtime/tokenizer/Model.h"
#include "backends/cpu/runtime/tokenizer/Table.h"
#include "backends/cpu/runtime/tokenizer/Utf8.h"

#include <algorithm>
#include <limits>

namespace mica::rt::tokenizer {
namespace {

class UnigramModel final : public Model {
public:
  explicit UnigramModel(const Table &table) : table(table) {
    constexpr uint8_t outside =
        PieceFlags::unknown | PieceFlags::control | PieceFlags::byte | PieceFlags::unmatched;
    std::vector<std::pair<std::string_view, int32_t>> entries;
    float lowest = std::numeric_limits<float>::max();
    for (uint32_t id = 0; id < table.pieces(); ++id) {
      if (table.pieceFlags[id] == PieceFlags::normal) {
        lowest = std::min(lowest, table.scores[id]);
        highest = std::max(highest, table.scores[id]);
      }
      if (!(table.pieceFlags[id] & outside))
        entries.emplace_back(table.piece(id), static_cast<int32_t>(id));
    }
    search = PrefixSearch(std::move(entries));
    unknownScore = lowest - 10.0f; // sentencepiece's penalty
  }

  void encode(std::string_view word, std::vector<int32_t> &ids) const override {
    std::vector<Node> nodes(word.size() + 1); // [i]: the best path over the first i bytes
    for (size_t at = 0; at < word.size(); at += charLength(word[at]))
      extend(word, at, nodes);
    std::vector<size_t> ends;
    for (size_t at = word.size(); at > 0; at = nodes[at].start)
      ends.push_back(at);
    bool afterUnknown = false;
    for (size_t i = ends.size(); i-- > 0;) {
      const Node &node = nodes[ends[i]];
      if (node.id == unknown) {
        encodeUnknown(table, word.substr(node.start, ends[i] - node.start), afterUnknown, ids);
        continue;
      }
      ids.push_back(node.id);
      afterUnknown = false;
    }
  }

private:
  static constexpr int32_t unreached = -2, unknown = -1;

  struct Node {
    int32_t id = unreached;
    float score = 0;
    size_t start = 0;
  };

  /// Carries the best path that ends at `at` over every piece that starts there.
  void extend(std::string_view word, size_t at, std::vector<Node> &nodes) const {
    size_t charBytes = charLength(word[at]);
    float here = nodes[at].score;
    bool coversChar = false;
    auto offer = [&](size_t length, int32_t id, float score) {
      Node &target = nodes[at + length];
      float candidate = score + here;
      if (target.id == unreached || candidate > target.score)
        target = {id, candidate, at};
    };
    search.forEach(word.substr(at), [&](size_t length, int32_t id) {
      uint8_t flags = table.pieceFlags[id];
      if (flags & PieceFlags::unused)
        return;
      // A user-defined piece gets a bonus that nothing can beat.
      bool always = (flags & PieceFlags::userDefined) != 0;
      offer(length, id, always ? static_cast<float>(length * highest - 0.1) : table.scores[id]);
      coversChar |= length == charBytes;
    });
    if (!coversChar)
      offer(charBytes, unknown, unknownScore);
  }

  const Table &table;
  PrefixSearch search;
  // sentencepiece starts its maximum of the (negative) log probabilities at the smallest positive
  // float.
  float unknownScore = 0, highest = std::numeric_limits<float>::min();
};

} // namespace

std::unique_ptr<Model> makeUnigramModel(const Table &table) {
  return std::make_unique<UnigramModel>(table);
}

std::unique_ptr<Model> makeModel(const Table &table) {
  switch (table.kind) {
  case ModelKind::MergesByRank:
    return makeRankModel(table);
  case ModelKind::MergesByScore:
    return makeScoreModel(table);
  case ModelKind::Unigram:
    return makeUnigramModel(table);
  }
  return nullptr;
}

void encodeUnknown(const Table &table, std::string_view text, bool &afterUnknown,
                   std::vector<int32_t> &ids) {
  if (table.has(ModelFlags::byteFallback)) {
    for (char byte : text)
      if (int32_t id = table.byteIds[static_cast<uint8_t>(byte)]; id != -1)
        ids.push_back(id);
  } else if (!afterUnknown && table.unknownId != -1) {
    ids.push_back(table.unknownId);
  }
  afterUnknown = true;
}

} // namespace mica::rt::tokenizer
