// Unicode normalization forms (Unicode 15, section 3.11), with tables that the compiler extracts
// from ICU.
#include "backends/runtime/text/tokenizer/UnicodeForm.h"
#include "backends/runtime/text/base/Utf8.h"
#include "backends/runtime/text/tokenizer/Table.h"

#include <algorithm>
#include <unordered_map>

namespace mica::rt::tokenizer {
namespace {

using CodePoint = uint32_t;

// Hangul syllables are composed by arithmetic (section 3.12).
constexpr CodePoint hangulBase = 0xAC00, leadBase = 0x1100, vowelBase = 0x1161, tailBase = 0x11A7;
constexpr uint32_t leads = 19, vowels = 21, tails = 28, syllables = leads * vowels * tails;

class UnicodeForm final : public NormalizerStage {
public:
  explicit UnicodeForm(const NormalizerStep &step)
      : list(step.decompositions), compose(step.compose) {
    for (size_t i = 0; i + 1 < step.classes.size(); i += 2)
      classes[step.classes[i]] = static_cast<uint8_t>(step.classes[i + 1]);
    for (size_t i = 0; i + 1 < list.size(); i += 2 + list[i + 1])
      decompositions[list[i]] = static_cast<uint32_t>(i);
    for (size_t i = 0; i + 2 < step.compositions.size(); i += 3)
      compositions[pairKey(step.compositions[i], step.compositions[i + 1])] =
          step.compositions[i + 2];
  }

  Result<std::string> apply(std::string text, NormalizerTrace &trace) const override {
    // Letters of Latin-1 decompose, but are unchanged in composed forms.
    if (std::all_of(text.begin(), text.end(),
                    [](char c) { return static_cast<uint8_t>(c) < 0x80; }))
      return text;
    std::vector<CodePoint> points;
    points.reserve(text.size());
    for (size_t at = 0; at < text.size(); at += charLength(text[at])) {
      size_t first = points.size();
      decompose(decodeChar(std::string_view(text).substr(at)), points);
      if (trace.untrusted.overlaps(at, at + charLength(text[at])))
        for (CodePoint &point : std::span(points).subspan(first))
          point |= untrustedMark;
    }
    reorder(points);
    if (compose)
      recompose(points);
    std::string out;
    out.reserve(text.size());
    ByteRanges untrusted;
    for (CodePoint point : points) {
      size_t before = out.size();
      appendChar(out, point & ~untrustedMark);
      if (point & untrustedMark)
        untrusted.add(before, out.size());
    }
    trace.untrusted = std::move(untrusted);
    return out;
  }

private:
  /// Marks a code point that comes from an untrusted range.
  static constexpr CodePoint untrustedMark = 1u << 31;

  static uint64_t pairKey(CodePoint first, CodePoint second) {
    return uint64_t(first) << 32 | second;
  }

  uint8_t classOf(CodePoint point) const {
    point &= ~untrustedMark;
    auto found = point < 0x300 ? classes.end() : classes.find(point);
    return found == classes.end() ? 0 : found->second;
  }

  void decompose(CodePoint point, std::vector<CodePoint> &out) const {
    if (point < 0x80) {
      out.push_back(point);
    } else if (point - hangulBase < syllables) {
      uint32_t index = point - hangulBase;
      out.push_back(leadBase + index / (vowels * tails));
      out.push_back(vowelBase + index / tails % vowels);
      if (index % tails != 0)
        out.push_back(tailBase + index % tails);
    } else if (auto found = decompositions.find(point); found != decompositions.end()) {
      for (uint32_t i = 0; i < list[found->second + 1]; ++i)
        out.push_back(list[found->second + 2 + i]);
    } else {
      out.push_back(point);
    }
  }

  /// Sorts each run of combining marks by class, stably (D109).
  void reorder(std::vector<CodePoint> &points) const {
    for (size_t begin = 0; begin < points.size();) {
      if (classOf(points[begin]) == 0) {
        ++begin;
        continue;
      }
      size_t end = begin + 1;
      while (end < points.size() && classOf(points[end]) != 0)
        ++end;
      if (end - begin > 1)
        sortByClass(std::span(points).subspan(begin, end - begin));
      begin = end;
    }
  }

  void sortByClass(std::span<CodePoint> run) const {
    struct Key {
      uint8_t itsClass;
      size_t order;
      CodePoint point;
      auto operator<=>(const Key &) const = default;
    };
    std::vector<Key> keys;
    for (CodePoint point : run)
      keys.push_back({classOf(point), keys.size(), point});
    std::sort(keys.begin(), keys.end());
    std::transform(keys.begin(), keys.end(), run.begin(), [](const Key &key) { return key.point; });
  }

  CodePoint composed(CodePoint first, CodePoint second) const { // 0: they do not compose
    if (CodePoint mark = (first | second) & untrustedMark) {
      CodePoint joined = composed(first & ~mark, second & ~mark);
      return joined == 0 ? 0 : joined | mark;
    }
    if (first - leadBase < leads && second - vowelBase < vowels)
      return hangulBase + ((first - leadBase) * vowels + second - vowelBase) * tails;
    if (first - hangulBase < syllables && (first - hangulBase) % tails == 0 &&
        second - tailBase - 1 < tails - 1)
      return first + (second - tailBase);
    auto found = compositions.find(pairKey(first, second));
    return found == compositions.end() ? 0 : found->second;
  }

  /// Composes each character with the last starter before it unless a character between blocks it
  /// (D115, D117).
  void recompose(std::vector<CodePoint> &points) const {
    size_t out = 0, starter = ~size_t(0);
    uint8_t previous = 0; // the class of the last character kept after the starter
    for (CodePoint point : points) {
      uint8_t itsClass = classOf(point);
      bool adjacent = starter != ~size_t(0) && out == starter + 1;
      bool blocked = starter == ~size_t(0) || (!adjacent && previous >= itsClass);
      if (CodePoint joined = blocked ? 0 : composed(points[starter], point)) {
        points[starter] = joined;
        continue;
      }
      if (itsClass == 0)
        starter = out;
      previous = itsClass;
      points[out++] = point;
    }
    points.resize(out);
  }

  Array<uint32_t> list;
  bool compose;
  std::unordered_map<CodePoint, uint8_t> classes;
  std::unordered_map<CodePoint, uint32_t> decompositions; // index into `list`
  std::unordered_map<uint64_t, CodePoint> compositions;
};

} // namespace

std::unique_ptr<NormalizerStage> makeUnicodeForm(const NormalizerStep &step) {
  return std::make_unique<UnicodeForm>(step);
}

} // namespace mica::rt::tokenizer
