// What this machine could do: the two limits that kernels are measured against.
#pragma once

#include "backends/cpu/device/Pool.h"
#include "backends/runtime/abi/Manifest.h"
#include "backends/runtime/support/Memory.h"

namespace mica::rt {

/// A buffer that all threads of a pool read over and over: memory's bandwidth, where it is far
/// larger than the caches.
class ReadBandwidth {
public:
  ReadBandwidth(Pool &pool, int64_t bytes);
  ReadBandwidth(const ReadBandwidth &) = delete;
  ReadBandwidth &operator=(const ReadBandwidth &) = delete;

  /// False where the memory could not be had.
  explicit operator bool() const { return memory.data() != nullptr; }
  /// Plain: from front to back. PagesInTurn: the same, asking ahead for lines of 8 pages in turn,
  /// which some memories answer half as fast again (see kernels/matmul/Prefetch.cpp).
  enum class Order { Plain, PagesInTurn };
  static constexpr Order orders[] = {Order::Plain, Order::PagesInTurn};

  /// Bytes per second of one pass over the whole buffer.
  double pass(Order order);

private:
  Pool &pool;
  int64_t bytes; ///< Whole pieces.
  Memory memory;
};

struct Peaks {
  double bytesPerSecond = 0; ///< Reading memory that no cache holds.
  double flopsPerSecond = 0; ///< Products, by the best instruction that the program may use.
  std::string instruction;   ///< Its name, or "given".
};

/// Measures both by loops of about a tenth of a second on all threads of the pool. The instruction
/// is that of the program's weights, as far as its target has it, or oneDNN on it.
Peaks measurePeaks(Pool &pool, const Manifest &manifest);

/// The share of the peaks that `seconds` for that work amounts to: how much longer than the nearer
/// limit allows it took. Above 1 where the caches hold what is read.
double shareOfRoofline(const Peaks &peaks, double bytes, double flops, double seconds);

} // namespace mica::rt
