// The order in which memory is prefetched ahead of a loop that reads it sequentially.
//
// A hardware prefetcher follows a stream to the end of its page and starts over on the next one; it
// follows several pages at once. Therefore the loop prefetches, unit by unit, the units of the next
// 8 pages alternately: one of the first page, one of the second, and so on. In bits of an address:
// [chunk][page of 8][unit of 16][byte of 256] is prefetched when [chunk - 1][unit of 16][page of
// 8][byte of 256] is read.
#ifndef MICA_BACKENDS_CPU_FEATURES_INTERLEAVEDPAGES_H
#define MICA_BACKENDS_CPU_FEATURES_INTERLEAVEDPAGES_H

#include <cstdint>

namespace mica::rt::interleaved_pages {

/// Sizes in bytes, except `pages`. A unit of four lines is about what one iteration of a loop reads
/// for most formats.
inline constexpr int64_t line = 64, unit = 4 * line, page = 4096, pages = 8, chunk = pages * page;

/// The offset that is prefetched when byte `at` of a stream is read; both are from the beginning of
/// the stream.
constexpr int64_t prefetchOffset(int64_t at) {
  int64_t inChunk = at % chunk, number = inChunk / unit;
  return at - inChunk + chunk + number % pages * page + number / pages * unit + at % unit;
}

} // namespace mica::rt::interleaved_pages

#endif // MICA_BACKENDS_CPU_FEATURES_INTERLEAVEDPAGES_H
