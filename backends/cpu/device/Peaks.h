// Peak memory bandwidth and compute throughput of this machine, which kernels are compared with.
#ifndef MICA_BACKENDS_CPU_DEVICE_PEAKS_H
#define MICA_BACKENDS_CPU_DEVICE_PEAKS_H

#include "backends/runtime/abi/Device.h"
#include "backends/runtime/support/Memory.h"

namespace mica::rt {

/// A buffer that all threads of a pool read repeatedly. If it is much larger than the caches, this
/// measures the memory bandwidth.
class ReadBandwidth {
public:
  ReadBandwidth(WorkPool &pool, int64_t bytes);
  ReadBandwidth(const ReadBandwidth &) = delete;
  ReadBandwidth &operator=(const ReadBandwidth &) = delete;

  /// Whether the memory could be allocated.
  explicit operator bool() const { return memory.data() != nullptr; }
  /// Plain: sequential reads. InterleavedPages: the same with page-interleaved prefetches of 8
  /// pages, which increases the bandwidth of some CPUs by half (see kernels/matmul/Prefetch.cpp).
  enum class Order { Plain, InterleavedPages };
  static constexpr Order orders[] = {Order::Plain, Order::InterleavedPages};

  /// Bytes per second of one pass over the whole buffer.
  double pass(Order order);

private:
  WorkPool &pool;
  int64_t bytes; ///< in bytes, a multiple of the piece size
  Memory memory;
};

/// Measures both in about a tenth of a second each, on all threads of the pool. The instruction is
/// the one that multiplies the program's weights in prefill, if its target or oneDNN on it has one.
Peaks measurePeaks(WorkPool &pool, const Manifest &manifest);

} // namespace mica::rt

#endif // MICA_BACKENDS_CPU_DEVICE_PEAKS_H
