// Unigram: the best path over all pieces, by dynamic programming, as in two packages. Which of two
// equal paths is chosen depends on rounding: sums are f32 in sentencepiece, and f64 in the
// tokenizers package.
#include "backends/runtime/text/base/Utf8.h"
#include "backends/runtime/text/tokenizer/Lookup.h"
#include "backends/runtime/text/tokenizer/Model.h"
#include "backends/runtime/text/tokenizer/Table.h"
#include "backends/runtime/text/tokenizer/Unknown.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <string>

namespace mica::rt::tokenizer {
namespace {

class UnigramModel final : public Model {
public:
  explicit UnigramModel(const Table &table)
      : table(table), exact(table.kind == ModelKind::ExactUnigram) {
    search = PrefixSearch(exact ? exactEntries() : entries());
  }

  void encode(std::string_view word, std::vector<int32_t> &ids) const override {
    std::vector<Node> nodes(word.size() + 1); // [i]: the best path over the first i bytes
    size_t reached = 0;
    for (size_t at = 0; at < word.size(); at += charLength(word[at])) {
      if (!exact)
        keepSmall(nodes, at, reached);
      extend(word, at, nodes, reached);
    }
    std::vector<size_t> ends;
    for (size_t at = word.size(); at > 0; at -= nodes[at].length)
      ends.push_back(at);
    bool afterUnknown = false;
    size_t run = 0; // where the unknown text that ends here began
    for (size_t i = ends.size(); i-- > 0;) {
      const Node &node = nodes[ends[i]];
      if (isUnknown(node.id)) {
        run = exact && afterUnknown ? run : ends[i] - node.length;
        bool extendsUnknown = exact && i > 0 && isUnknown(nodes[ends[i - 1]].id);
        if (!extendsUnknown)
          encodeRun(word.substr(run, ends[i] - run), afterUnknown, ids);
        afterUnknown = true;
        continue;
      }
      ids.push_back(node.id);
      afterUnknown = false;
    }
  }

private:
  static constexpr int32_t unreached = -2, unknown = -1;
  using Entries = std::vector<std::pair<std::string_view, int32_t>>;

  /// Kept small: there is one per byte.
  struct Node {
    double score = 0; // a float in all but ExactUnigram
    int32_t id = unreached;
    uint32_t length = 0; // in bytes, of the last piece
  };

  Entries entries() {
    constexpr uint8_t outside =
        PieceFlags::unknown | PieceFlags::control | PieceFlags::byte | PieceFlags::unmatched;
    Entries out;
    float lowest = std::numeric_limits<float>::max();
    std::vector<bool> special = specialIds(table);
    for (uint32_t id = 0; id < table.pieces(); ++id) {
      if (table.pieceFlags[id] == PieceFlags::normal)
        lowest = std::min(lowest, table.scores[id]);
      if (!(table.pieceFlags[id] & outside) && !special[id])
        out.emplace_back(table.piece(id), static_cast<int32_t>(id));
    }
    unknownScore = lowest - 10.0f; // sentencepiece's penalty, in its precision
    return out;
  }

  /// The tokenizers package matches every piece, byte pieces by their spelling. Special tokens
  /// are matched before words; the remaining ones are ordinary text.
  Entries exactEntries() {
    Entries out;
    std::vector<bool> special = specialIds(table);
    double lowest = std::numeric_limits<double>::max();
    for (uint32_t id = 0; id < table.pieces(); ++id) {
      if (table.pieceFlags[id] & PieceFlags::unmatched)
        continue;
      lowest = std::min(lowest, table.exactScores[id]);
      if (special[id] && static_cast<int32_t>(id) != table.unknownId)
        continue;
      std::string_view piece = table.piece(id);
      if (table.pieceFlags[id] & PieceFlags::byte)
        piece = spellings.emplace_back(spelling(piece));
      out.emplace_back(piece, static_cast<int32_t>(id));
    }
    unknownScore = lowest - 10.0;
    return out;
  }

  static std::string spelling(std::string_view byte) {
    constexpr char digits[] = "0123456789ABCDEF";
    auto value = static_cast<uint8_t>(byte.empty() ? 0 : byte[0]);
    return {'<', '0', 'x', digits[value >> 4], digits[value & 15], '>'};
  }

  /// If adjacent unknown texts are fused, the spelling of the unknown piece is part of them.
  bool isUnknown(int32_t id) const { return id == unknown || (exact && id == table.unknownId); }

  void encodeRun(std::string_view text, bool afterUnknown, std::vector<int32_t> &ids) const {
    if (!exact)
      return encodeUnknown(table, text, afterUnknown, ids);
    bool bytes = table.has(ModelFlags::byteFallback) &&
                 (table.unknownId == -1 || text != table.piece(table.unknownId)) &&
                 std::all_of(text.begin(), text.end(), [this](char byte) {
                   return table.byteIds[static_cast<uint8_t>(byte)] != -1;
                 });
    afterUnknown = false;
    if (bytes)
      encodeUnknown(table, text, afterUnknown, ids);
    else if (table.unknownId != -1)
      ids.push_back(table.unknownId);
  }

  /// In a long text, sums grow until floats cannot distinguish paths: sentencepiece 0.2.3 restarts
  /// them from 0.
  static void keepSmall(std::vector<Node> &nodes, size_t at, size_t reached) {
    constexpr double maxOffset = 100000;
    double offset = nodes[at].score;
    if (std::abs(offset) <= maxOffset)
      return;
    for (size_t i = at; i <= reached; ++i)
      if (nodes[i].id != unreached)
        nodes[i].score = static_cast<float>(nodes[i].score - offset);
  }

  /// Extends the best path that ends at `at` by every piece that starts there; `reached` is the
  /// end of the longest path.
  void extend(std::string_view word, size_t at, std::vector<Node> &nodes, size_t &reached) const {
    size_t charBytes = charLength(word[at]);
    double here = nodes[at].score;
    bool coversChar = false;
    auto offer = [&](size_t length, int32_t id, double candidate) {
      reached = std::max(reached, at + length);
      Node &target = nodes[at + length];
      if (target.id == unreached || candidate > target.score)
        target = {candidate, id, static_cast<uint32_t>(length)};
    };
    search.forEach(word.substr(at), [&](size_t length, int32_t id) {
      uint8_t flags = table.pieceFlags[id];
      if (flags & PieceFlags::unused)
        return;
      // A user-defined piece gets a bonus that no sum of logarithms can beat (sentencepiece 0.2.3),
      // rounded once.
      bool always = (flags & PieceFlags::userDefined) != 0;
      double score =
          always ? static_cast<float>(0.1 * static_cast<double>(length - 1)) : scoreOf(id);
      offer(length, id, rounded(score + here));
      coversChar |= length == charBytes;
    });
    if (!coversChar)
      offer(charBytes, unknown, rounded(unknownScore + here));
  }

  double rounded(double sum) const { return exact ? sum : static_cast<float>(sum); }
  double scoreOf(int32_t id) const { return exact ? table.exactScores[id] : table.scores[id]; }

  const Table &table;
  bool exact;
  PrefixSearch search;
  std::deque<std::string> spellings; // of bytes; the search refers to them
  double unknownScore = 0;
};

} // namespace

std::unique_ptr<Model> makeUnigramModel(const Table &table) {
  return std::make_unique<UnigramModel>(table);
}

} // namespace mica::rt::tokenizer
