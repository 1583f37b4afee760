// BPE of sentencepiece: adjacent symbols whose joined text is a piece are merged, highest score
// first, then leftmost. Unused pieces can be intermediate results, and are split again at the
// end.
#include "backends/runtime/text/base/Utf8.h"
#include "backends/runtime/text/tokenizer/Lookup.h"
#include "backends/runtime/text/tokenizer/MergeQueue.h"
#include "backends/runtime/text/tokenizer/Model.h"
#include "backends/runtime/text/tokenizer/Table.h"
#include "backends/runtime/text/tokenizer/Unknown.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

namespace mica::rt::tokenizer {
namespace {

using Text = std::string_view;

/// Kept small: long texts have one per character.
struct Symbol {
  uint32_t begin, length : 31, frozen : 1; // frozen: a user-defined piece
  int32_t previous, next;
  bool merged() const { return length == 0; } // into its left neighbor
};

struct Candidate {
  int32_t at, right;
  uint32_t length; // of the joined text: valid while the two symbols still have it
};

/// A number that decreases as the score increases.
uint32_t keyOf(float score) {
  auto bits = std::bit_cast<uint32_t>(score + 0.0f); // -0 is 0
  return bits >> 31 ? bits : ~(bits | 1u << 31);
}

class SentencePieceBpe final : public Model {
public:
  explicit SentencePieceBpe(const Table &table) : table(table), pieces(table) {
    std::vector<std::pair<Text, int32_t>> userDefined;
    std::vector<bool> special = specialIds(table);
    for (uint32_t id = 0; id < table.pieces(); ++id)
      if ((table.pieceFlags[id] & PieceFlags::userDefined) && !special[id])
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
    Merging(const SentencePieceBpe &model, Text word) : model(model), word(word) {
      auto begins = [&](char byte) {
        return model.table.has(ModelFlags::byteLevel) || (byte & 0xC0) != 0x80;
      };
      // Growing would copy the symbols of a long text repeatedly.
      symbols.reserve(std::count_if(word.begin(), word.end(), begins));
      for (size_t begin = 0; begin < word.size();) {
        Text ahead = word.substr(begin);
        auto found = model.kept.longest(ahead);
        // The rest of a character in which a user-defined piece has ended.
        size_t rest = std::min<size_t>(charLength(ahead[0]), ahead.size());
        if (model.table.has(ModelFlags::byteLevel))
          rest = 1;
        size_t length = found.length ? found.length : rest;
        auto at = static_cast<int32_t>(symbols.size());
        symbols.push_back({static_cast<uint32_t>(begin), static_cast<uint32_t>(length),
                           found.length != 0, at - 1, at + 1});
        begin += length;
      }
      symbols.back().next = -1;
      for (int32_t i = 0; i + 1 < static_cast<int32_t>(symbols.size()); ++i)
        consider(i, i + 1);
    }

    void run(std::vector<int32_t> &ids) {
      for (Candidate best{}; queue.pop(best);) {
        Symbol &left = symbols[best.at], &right = symbols[best.right];
        if (left.merged() || right.merged() || left.length + right.length != best.length)
          continue;
        left.length = best.length;
        left.next = right.next;
        right.length = 0;
        if (left.next != -1)
          symbols[left.next].previous = best.at;
        consider(left.previous, best.at);
        consider(best.at, left.next);
      }
      bool afterUnknown = false;
      for (int32_t i = 0; i != -1; i = symbols[i].next)
        emit(text(symbols[i]), afterUnknown, ids);
    }

  private:
    Text text(const Symbol &symbol) const { return word.substr(symbol.begin, symbol.length); }

    void consider(int32_t left, int32_t right) {
      if (left == -1 || right == -1 || symbols[left].frozen || symbols[right].frozen)
        return;
      Text joined = word.substr(symbols[left].begin, symbols[left].length + symbols[right].length);
      int32_t id = model.pieces.find(joined);
      if (id == -1)
        return;
      queue.push(keyOf(model.table.scores[id]),
                 {left, right, static_cast<uint32_t>(joined.size())});
      if (model.table.pieceFlags[id] & PieceFlags::unused)
        halves[joined] = {text(symbols[left]), text(symbols[right])};
    }

    /// Appends the ids of `text`; an unused piece is split into the pieces that it was merged from.
    void emit(Text text, bool &afterUnknown, std::vector<int32_t> &ids) {
      rest.push_back(text);
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

    const SentencePieceBpe &model;
    Text word;
    std::vector<Symbol> symbols;
    MergeQueue<Candidate> queue;
    std::unordered_map<Text, std::pair<Text, Text>> halves; // of unused pieces
    std::vector<Text> rest;                                 // of what is emitted
  };

  const Table &table;
  PieceIndex pieces;
  PrefixSearch kept;
};

} // namespace

std::unique_ptr<Model> makeSentencePieceBpe(const Table &table) {
  return std::make_unique<SentencePieceBpe>(table);
}

} // namespace mica::rt::tokenizer
