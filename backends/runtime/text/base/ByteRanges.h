// Parts of a text as byte ranges.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_BASE_BYTERANGES_H
#define MICA_BACKENDS_RUNTIME_TEXT_BASE_BYTERANGES_H

#include <algorithm>
#include <cstddef>
#include <vector>

namespace mica::rt {

/// Ranges [begin, end) in ascending order that neither overlap nor touch.
class ByteRanges {
public:
  struct Range {
    size_t begin, end;
    bool operator==(const Range &) const = default;
  };

  bool empty() const { return ranges.empty(); }
  size_t size() const { return ranges.size(); }
  auto begin() const { return ranges.begin(); }
  auto end() const { return ranges.end(); }
  bool operator==(const ByteRanges &) const = default;

  /// Adds a range that does not begin before the last one.
  void add(size_t begin, size_t end) {
    if (begin == end)
      return;
    if (!ranges.empty() && begin <= ranges.back().end)
      ranges.back().end = std::max(ranges.back().end, end);
    else
      ranges.push_back({begin, end});
  }

  /// Adds the parts of `others` within [begin, end), shifted so that `begin` is at `offset`.
  void add(const ByteRanges &others, size_t begin, size_t end, size_t offset) {
    for (auto it = others.endingAfter(begin); it != others.ranges.end() && it->begin < end; ++it)
      add(std::max(it->begin, begin) - begin + offset, std::min(it->end, end) - begin + offset);
  }

  /// Whether a byte of [begin, end) is in a range.
  bool overlaps(size_t begin, size_t end) const { return next(begin) < end; }

  /// The first byte at or after `at` that is in a range; ~0: none.
  size_t next(size_t at) const {
    auto it = endingAfter(at);
    return it == ranges.end() ? ~size_t(0) : std::max(it->begin, at);
  }

private:
  std::vector<Range>::const_iterator endingAfter(size_t at) const {
    return std::partition_point(ranges.begin(), ranges.end(),
                                [at](const Range &range) { return range.end <= at; });
  }

  std::vector<Range> ranges;
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_TEXT_BASE_BYTERANGES_H
