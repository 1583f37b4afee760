// BPE of the tokenizers package: pairs of ids are merged in order of rank, then from left to
// right.
#include "backends/runtime/text/base/Utf8.h"
#include "backends/runtime/text/tokenizer/Lookup.h"
#include "backends/runtime/text/tokenizer/MergeQueue.h"
#include "backends/runtime/text/tokenizer/Model.h"
#include "backends/runtime/text/tokenizer/Table.h"

namespace mica::rt::tokenizer {
namespace {

class BpeModel final : public Model {
public:
  explicit BpeModel(const Table &table) : table(table), pieces(table), pairs(table) {}

  void encode(std::string_view word, std::vector<int32_t> &ids) const override {
    if (table.has(ModelFlags::ignoreMerges)) {
      int32_t whole = pieces.find(word);
      if (whole != -1) {
        ids.push_back(whole);
        return;
      }
    }
    size_t first = ids.size();
    if (table.has(ModelFlags::byteLevel))
      startFromBytes(word, ids);
    else
      startFromChars(word, ids);
    if (ids.size() - first <= shortWord)
      mergeShort(ids, first);
    else
      mergeLong(ids, first);
  }

private:
  /// Below this number of symbols, rescanning all pairs is faster than a queue.
  static constexpr size_t shortWord = 32;

  struct Symbol {
    int32_t id, previous, next; // id -1: merged into its left neighbor; positions -1: none
  };
  /// Valid as long as the ids at and after `at` are those of the merge, whose rank is the key. Kept
  /// small: long words have one per byte.
  struct Candidate {
    int32_t at;
  };

  /// The id of unknown symbols, appended late so that adjacent ones can be fused.
  void flushUnknown(bool &unknown, std::vector<int32_t> &ids) const {
    if (unknown)
      ids.push_back(table.unknownId);
    unknown = false;
  }
  void appendUnknown(bool &unknown, std::vector<int32_t> &ids) const {
    if (table.unknownId == -1)
      return;
    if (!table.has(ModelFlags::fuseUnknown))
      flushUnknown(unknown, ids);
    unknown = true;
  }

  void startFromBytes(std::string_view word, std::vector<int32_t> &ids) const {
    bool unknown = false;
    for (char byte : word) {
      int32_t id = table.byteIds[static_cast<uint8_t>(byte)];
      if (id == -1) {
        appendUnknown(unknown, ids);
        continue;
      }
      flushUnknown(unknown, ids);
      ids.push_back(id);
    }
    flushUnknown(unknown, ids);
  }

  bool pushBytes(std::string_view symbol, std::vector<int32_t> &ids) const {
    for (char byte : symbol)
      if (table.byteIds[static_cast<uint8_t>(byte)] == -1)
        return false;
    for (char byte : symbol)
      ids.push_back(table.byteIds[static_cast<uint8_t>(byte)]);
    return true;
  }

  void startFromChars(std::string_view word, std::vector<int32_t> &ids) const {
    bool unknown = false;
    while (!word.empty()) {
      std::string_view symbol = word.substr(0, charLength(word[0]));
      word.remove_prefix(symbol.size());
      if (int32_t id = pieces.find(symbol); id != -1) {
        flushUnknown(unknown, ids);
        ids.push_back(id);
      } else if (!table.has(ModelFlags::byteFallback) || !pushBytes(symbol, ids)) {
        appendUnknown(unknown, ids);
      }
    }
    flushUnknown(unknown, ids);
  }

  void mergeShort(std::vector<int32_t> &ids, size_t first) const {
    PairIndex::Found found[shortWord]; // [i]: the pair that starts at symbol i
    int32_t *symbols = ids.data() + first;
    size_t count = ids.size() - first;
    for (size_t i = 0; i + 1 < count; ++i)
      found[i] = pairs.find(symbols[i], symbols[i + 1]);
    while (count > 1) {
      size_t best = 0;
      for (size_t i = 1; i + 1 < count; ++i)
        if (found[i].rank < found[best].rank)
          best = i;
      if (found[best].rank == ~0u)
        break;
      symbols[best] = found[best].merged;
      --count;
      for (size_t i = best + 1; i < count; ++i) {
        symbols[i] = symbols[i + 1];
        found[i - 1] = found[i];
      }
      if (best > 0)
        found[best - 1] = pairs.find(symbols[best - 1], symbols[best]);
      if (best + 1 < count)
        found[best] = pairs.find(symbols[best], symbols[best + 1]);
    }
    ids.resize(first + count);
  }

  void mergeLong(std::vector<int32_t> &ids, size_t first) const {
    auto count = static_cast<int32_t>(ids.size() - first);
    std::vector<Symbol> symbols(count);
    MergeQueue<Candidate> queue;
    for (int32_t i = 0; i < count; ++i)
      symbols[i] = {ids[first + i], i - 1, i + 1 < count ? i + 1 : -1};
    auto consider = [&](int32_t at) {
      int32_t next = at == -1 ? -1 : symbols[at].next;
      if (next == -1)
        return;
      PairIndex::Found found = pairs.find(symbols[at].id, symbols[next].id);
      if (found.merged != -1)
        queue.push(found.rank, {at});
    };
    for (int32_t i = 0; i < count; ++i)
      consider(i);
    uint32_t rank = 0;
    for (Candidate best{}; queue.pop(rank, best);) {
      Symbol &left = symbols[best.at];
      Merge merge = table.merges[rank];
      auto is = [](int32_t id, uint32_t wanted) { return id == static_cast<int32_t>(wanted); };
      if (!is(left.id, merge.left) || left.next == -1 || !is(symbols[left.next].id, merge.right))
        continue;
      Symbol &right = symbols[left.next];
      left.id = static_cast<int32_t>(merge.merged);
      left.next = right.next;
      right.id = -1;
      if (left.next != -1)
        symbols[left.next].previous = best.at;
      consider(left.previous);
      consider(best.at);
    }
    ids.resize(first);
    for (int32_t i = 0; i != -1; i = symbols[i].next)
      ids.push_back(symbols[i].id);
  }

  const Table &table;
  PieceIndex pieces;
  PairIndex pairs;
};

} // namespace

std::unique_ptr<Model> makeBpeModel(const Table &table) {
  return std::make_unique<BpeModel>(table);
}

} // namespace mica::rt::tokenizer
