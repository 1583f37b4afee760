// What the machine can do at most, measured now: clouds share memory controllers, so yesterday's
// figure means nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

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
  void readPart(unsigned part) const;

  unsigned threads;
  size_t bytes;
  uint64_t *buffer = nullptr;
};

} // namespace mica::bench
