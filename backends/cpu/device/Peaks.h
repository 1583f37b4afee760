// What this machine could do: the two limits that kernels are measured against.
#ifndef MICA_BACKENDS_CPU_DEVICE_PEAKS_H
#define MICA_BACKENDS_CPU_DEVICE_PEAKS_H

#include "backends/runtime/abi/Device.h"
#include "backends/runtime/support/Memory.h"

namespace mica::rt {

/// A buffer that all threads of a pool read over and over: memory's bandwidth, where it is far
/// larger than the caches.
class ReadBandwidth {
public:
  ReadBandwidth(WorkPool &pool, int64_t bytes);
  ReadBandwidth(const ReadBandwidth &) = delete;
  ReadBandwidth &operator=(const ReadBandwidth &) = delete;

  /// False where the memory could not be had.
  explicit operator bool() const { return memory.data() != nullptr; }
  /// Plain: from front to back. InterleavedPages: the same, asking ahead for lines of 8 pages in
  /// turn, which some memories answer half as fast again (see kernels/matmul/Prefetch.cpp).
  enum class Order { Plain, InterleavedPages };
  static constexpr Order orders[] = {Order::Plain, Order::InterleavedPages};

  /// Bytes per second of one pass over the whole buffer.
  double pass(Order order);

private:
  WorkPool &pool;
  int64_t bytes; ///< Whole pieces.
  Memory memory;
};

/// Measures both by loops of about a tenth of a second on all threads of the pool. The instruction
/// is that of the program's weights, as far as its target has it, or oneDNN on it.
Peaks measurePeaks(WorkPool &pool, const Manifest &manifest);

} // namespace mica::rt

#endif // MICA_BACKENDS_CPU_DEVICE_PEAKS_H
