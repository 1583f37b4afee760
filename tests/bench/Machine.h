// What the machine can do at most, measured now: clouds share memory controllers, so yesterday's
// figure means nothing.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mica::bench {

/// A buffer that many threads read over and over; it should be far larger than the caches.
class ReadBandwidth {
public:
  ReadBandwidth(unsigned threads, size_t bytes);
  ~ReadBandwidth();
  ReadBandwidth(const ReadBandwidth &) = delete;
  ReadBandwidth &operator=(const ReadBandwidth &) = delete;

  /// False where the memory could not be had.
  explicit operator bool() const { return buffer != nullptr; }
  /// GB/s (1e9 bytes) of one pass over the whole buffer.
  double pass();

private:
  unsigned threads;
  size_t bytes;
  uint64_t *buffer = nullptr;
};

/// Multiplications and additions per second, in units of 1e9, of fused multiply-add, vdpbf16ps and
/// vpdpbusd, and of AMX. 0 where the processor has none.
struct Peaks {
  double f32 = 0, bf16 = 0, int8 = 0, bf16Tiles = 0, int8Tiles = 0;
};

Peaks measurePeaks(unsigned threads);

} // namespace mica::bench
