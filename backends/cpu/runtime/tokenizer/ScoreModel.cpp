// BPE as sentencepiece defines it: neighbours whose joined text is a piece merge, the highest score
// first, then the leftmost. Pieces marked unused may be merged through and are split again at the
// end.
#include "backends/cpu/runtime/tokenizer/Lookup.h"
#include "backends/cpu/runtime/tokenizer/MergeQueue.h"
#include "backends/cpu/runtime/tokenizer/Model.h"
#include "backends/cpu/runtime/tokenizer/Table.h"
#include "backends/cpu/runtime/tokenizer/Utf8.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

namespace mica::rt::tokenizer {
namespace {

using Text = std::string_view;

struct Symbol {
  Text text; // empty: merged into its left neighbour
  int32_t previous, next;
  bool frozen; // a user-defined piece
};

struct Candidate {
  int32_t at, right;
  uint32_t length; // of the joined text: valid while the two symbols still have it
};

/// A number that is the lower, the higher the score.
uint32_t keyOf(float score) {
  auto bits = std::bit_cast<uint32_t>(score + 0.0f); // -0 is 0
  return bits >> 31 ? bits : ~(bits | 1u << 31);
}

class ScoreModel final : public Model {
public:
  explicit ScoreModel(const Table &table) : table(table), pieces(table) {
    std::vector<std::pair<Text, int32_t>> userDefined;
    for (uint32_t id = 0; id < table.pieces(); ++id)
      if (table.pieceFlags[id] & PieceFlags::userDefined)
        userDefined.emplace_back(table.piece(id), static_cast<int32_t>(id));
    kept = PrefixSearch(std::move(userDefined));
  }

  void encode(Text word, std::vector<int32_t> &ids) const override {
    if (int32_t whole = table.has(ModelFlags::ignoreMerges) ? pieces.find(word) : -1; whole != -1) {
      ids.push_back(whole);
      return;
    }
    Merging merging(*this, word);
    merging.run(ids);
  }

private:
  /// The state of one call.
  class Merging {
  public:
    Merging(const ScoreModel &model, Text word) : model(model) {
      while (!word.empty()) {
        auto found = model.kept.longest(word);
        // A user-defined piece that ends inside a character leaves its rest to be met here.
        size_t rest = std::min<size_t>(charLength(word[0]), word.size());
        if (model.table.has(ModelFlags::byteLevel))
          rest = 1;
        size_t length = found.length ? found.length : rest;
        auto at = static_cast<int32_t>(symbols.size());
        symbols.push_back({word.substr(0, length), at - 1, at + 1, found.length != 0});
        word.remove_prefix(length);
      }
      symbols.back().next = -1;
      for (int32_t i = 0; i + 1 < static_cast<int32_t>(symbols.size()); ++i)
        consider(i, i + 1);
    }

    void run(std::vector<int32_t> &ids) {
      for (Candidate best{}; queue.pop(best);) {
        Symbol &left = symbols[best.at], &right = symbols[best.right];
        if (left.text.empty() || right.text.empty() ||
            left.text.size() + right.text.size() != best.length)
          continue;
        left.text = joined(left, right);
        left.next = right.next;
        right.text = {};
        if (left.next != -1)
          symbols[left.next].previous = best.at;
        consider(left.previous, best.at);
        consider(best.at, left.next);
      }
      bool afterUnknown = false;
      for (int32_t i = 0; i != -1; i = symbols[i].next)
        emit(symbols[i].text, afterUnknown, ids);
    }

  private:
    static Text joined(const Symbol &left, const Symbol &right) { // neighbours in one text
      return {left.text.data(), left.text.size() + right.text.size()};
    }

    void consider(int32_t left, int32_t right) {
      if (left == -1 || right == -1 || symbols[left].frozen || symbols[right].frozen)
        return;
      Text text = joined(symbols[left], symbols[right]);
      int32_t id = model.pieces.find(text);
      if (id == -1)
        return;
      queue.push(keyOf(model.table.scores[id]), {left, right, static_cast<uint32_t>(text.size())});
      if (model.table.pieceFlags[id] & PieceFlags::unused)
        halves[text] = {symbols[left].text, symbols[right].text};
    }

    /// Ids of `text`, an unused piece replaced by what it was merged from.
    void emit(Text text, bool &afterUnknown, std::vector<int32_t> &ids) const {
      std::vector<Text> rest{text};
      while (!rest.empty()) {
        Text part = rest.back();
        rest.pop_back();
        int32_t id = model.pieces.find(part);
        if (id == -1) {
          encodeUnknown(model.table, part, afterUnknown, ids);
          continue;
        }
        auto split =
            (model.table.pieceFlags[id] & PieceFlags::unused) ? halves.find(part) : halves.end();
        if (split != halves.end()) {
          rest.push_back(split->second.second);
          rest.push_back(split->second.first);
          continue;
        }
        ids.push_back(id);
        afterUnknown = false;
      }
    }

    const ScoreModel &model;
    std::vector<Symbol> symbols;
    MergeQueue<Candidate> queue;
    std::unordered_map<Text, std::pair<Text, Text>> halves; // of unused pieces
  };

  const Table &table;
  PieceIndex pieces;
  PrefixSearch kept;
};

} // namespace

std::unique_ptr<Model> makeScoreModel(const Table &table) {
  return std::make_unique<ScoreModel>(table);
}

} // namespace mica::rt::tokenizer
