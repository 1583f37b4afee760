//===- LineDiff.cpp - line diffs of two texts -----------------------------===//

#include "tools/explore/LineDiff.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace llvm;

namespace mica::explore {

/// The line without numbers of values, aliases and labels.
static std::string withoutNumbers(StringRef line) {
  std::string kept;
  for (size_t i = 0; i < line.size(); ++i) {
    StringRef rest = line.substr(i);
    kept += line[i];
    bool isName = line[i] == '%' || line[i] == '#';
    bool isLabel = rest.starts_with(".L");
    if (!isName && !isLabel)
      continue;
    StringRef name = rest.substr(1).take_while([](char c) { return isAlnum(c) || c == '_'; });
    for (char c : name)
      if (!isDigit(c) && c != '_')
        kept += c;
    i += name.size();
  }
  return kept;
}

namespace {

/// Lines [beginA, endA) of one text and [beginB, endB) of the other.
struct Range {
  size_t beginA, endA, beginB, endB;
  size_t sizeA() const { return endA - beginA; }
  size_t sizeB() const { return endB - beginB; }
};

using Match = std::pair<size_t, size_t>;

/// Matches equal lines in order: first lines that occur once in both texts (patience), then the
/// longest common subsequence between them.
class Matcher {
public:
  Matcher(ArrayRef<unsigned> a, ArrayRef<unsigned> b) : a(a), b(b) {}

  std::vector<Match> run() {
    SmallVector<Range> open{{0, a.size(), 0, b.size()}};
    while (!open.empty()) {
      Range range = open.pop_back_val();
      trim(range);
      if (range.sizeA() == 0 || range.sizeB() == 0)
        continue;
      std::vector<Match> anchors = findAnchors(range);
      if (anchors.empty()) {
        matchAll(range);
        continue;
      }
      anchors.emplace_back(range.endA, range.endB);
      for (auto [nextA, nextB] : anchors) {
        open.push_back({range.beginA, nextA, range.beginB, nextB});
        if (nextA != range.endA)
          matches.emplace_back(nextA, nextB);
        range.beginA = nextA + 1;
        range.beginB = nextB + 1;
      }
    }
    llvm::sort(matches);
    return std::move(matches);
  }

private:
  /// Matches equal lines at both ends.
  void trim(Range &range) {
    while (range.sizeA() > 0 && range.sizeB() > 0 && a[range.beginA] == b[range.beginB])
      matches.emplace_back(range.beginA++, range.beginB++);
    while (range.sizeA() > 0 && range.sizeB() > 0 && a[range.endA - 1] == b[range.endB - 1])
      matches.emplace_back(--range.endA, --range.endB);
  }

  /// The longest ascending sequence of pairs of lines that occur once in both ranges.
  std::vector<Match> findAnchors(const Range &range) const {
    struct Places {
      size_t countA = 0, countB = 0, inB = 0;
    };
    DenseMap<unsigned, Places> places;
    for (size_t i = range.beginA; i < range.endA; ++i)
      ++places[a[i]].countA;
    for (size_t i = range.beginB; i < range.endB; ++i) {
      Places &place = places[b[i]];
      ++place.countB;
      place.inB = i;
    }
    std::vector<Match> once;
    for (size_t i = range.beginA; i < range.endA; ++i)
      if (Places place = places[a[i]]; place.countA == 1 && place.countB == 1)
        once.emplace_back(i, place.inB);
    return longestAscending(once);
  }

  /// The longest subsequence of pairs, sorted by `first`, in which `second` is ascending too.
  static std::vector<Match> longestAscending(ArrayRef<Match> pairs) {
    std::vector<size_t> tails, before(pairs.size());
    for (size_t i = 0; i < pairs.size(); ++i) {
      auto place = llvm::lower_bound(tails, pairs[i].second, [&](size_t tail, size_t value) {
        return pairs[tail].second < value;
      });
      before[i] = place == tails.begin() ? pairs.size() : *std::prev(place);
      if (place == tails.end())
        tails.push_back(i);
      else
        *place = i;
    }
    std::vector<Match> chosen;
    for (size_t at = tails.empty() ? pairs.size() : tails.back(); at != pairs.size();
         at = before[at])
      chosen.push_back(pairs[at]);
    std::reverse(chosen.begin(), chosen.end());
    return chosen;
  }

  /// Computes the longest common subsequence by a table; ranges too large for one are not matched.
  void matchAll(const Range &range) {
    constexpr size_t kMaxCells = size_t(1) << 22;
    size_t n = range.sizeA(), m = range.sizeB();
    if (n * m > kMaxCells)
      return;
    std::vector<uint32_t> lengths((n + 1) * (m + 1), 0);
    auto at = [&](size_t i, size_t j) -> uint32_t & { return lengths[i * (m + 1) + j]; };
    auto equal = [&](size_t i, size_t j) { return a[range.beginA + i] == b[range.beginB + j]; };
    for (size_t i = n; i-- > 0;)
      for (size_t j = m; j-- > 0;)
        at(i, j) = equal(i, j) ? at(i + 1, j + 1) + 1 : std::max(at(i + 1, j), at(i, j + 1));
    for (size_t i = 0, j = 0; i < n && j < m;)
      if (equal(i, j))
        matches.emplace_back(range.beginA + i++, range.beginB + j++);
      else if (at(i + 1, j) >= at(i, j + 1))
        ++i;
      else
        ++j;
  }

  ArrayRef<unsigned> a, b;
  std::vector<Match> matches;
};

} // namespace

static SmallVector<StringRef> linesOf(StringRef text) {
  text.consume_back("\n");
  SmallVector<StringRef> lines;
  if (!text.empty())
    text.split(lines, '\n');
  return lines;
}

namespace {

/// Collects differences into hunks; changes with few equal lines between them are one hunk.
class HunkWriter {
public:
  HunkWriter(ArrayRef<StringRef> a, ArrayRef<StringRef> b, size_t context)
      : a(a), b(b), context(context) {}

  /// Lines [beginA, endA) of one text were replaced by [beginB, endB) of the other.
  void change(size_t beginA, size_t endA, size_t beginB, size_t endB) {
    if (hunks.empty() || beginA > nextA + 2 * context) {
      finish();
      size_t before = std::min(context, beginA - nextA);
      nextA = beginA - before;
      hunks.push_back({nextA + 1, beginB - before + 1, 0, 0, {}});
    }
    keep(beginA - nextA);
    Hunk &hunk = hunks.back();
    for (; nextA < endA; ++nextA, ++hunk.countA)
      hunk.lines.push_back(("-" + a[nextA]).str());
    for (; beginB < endB; ++beginB, ++hunk.countB)
      hunk.lines.push_back(("+" + b[beginB]).str());
  }

  /// Adds the context after the last change.
  void finish() {
    if (!hunks.empty())
      keep(std::min(context, a.size() - nextA));
  }

  std::vector<Hunk> hunks;

private:
  void keep(size_t count) {
    Hunk &hunk = hunks.back();
    hunk.countA += count;
    hunk.countB += count;
    for (; count > 0; --count)
      hunk.lines.push_back((" " + a[nextA++]).str());
  }

  ArrayRef<StringRef> a, b;
  size_t context, nextA = 0;
};

} // namespace

LineDiff diffLines(StringRef textA, StringRef textB, size_t context) {
  SmallVector<StringRef> linesA = linesOf(textA), linesB = linesOf(textB);
  StringMap<unsigned> known;
  auto numbers = [&](ArrayRef<StringRef> lines) {
    std::vector<unsigned> all;
    all.reserve(lines.size());
    for (StringRef line : lines)
      all.push_back(known.try_emplace(withoutNumbers(line), known.size()).first->second);
    return all;
  };
  std::vector<unsigned> a = numbers(linesA), b = numbers(linesB);
  std::vector<Match> matches = Matcher(a, b).run();
  LineDiff diff{linesA.size() - matches.size(), linesB.size() - matches.size(), {}};
  matches.emplace_back(linesA.size(), linesB.size());
  HunkWriter writer(linesA, linesB, context);
  size_t i = 0, j = 0;
  for (auto [nextA, nextB] : matches) {
    if (i < nextA || j < nextB)
      writer.change(i, nextA, j, nextB);
    i = nextA + 1;
    j = nextB + 1;
  }
  writer.finish();
  diff.hunks = std::move(writer.hunks);
  return diff;
}

} // namespace mica::explore
