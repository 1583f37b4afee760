// The exchanges between ranks that generated code calls.
#ifndef MICA_BACKENDS_CPU_DEVICE_COLLECTIVES_H
#define MICA_BACKENDS_CPU_DEVICE_COLLECTIVES_H

#include "backends/runtime/abi/Communicator.h"
#include "backends/runtime/abi/WorkPool.h"

#include <cstddef>
#include <vector>

namespace mica::rt {

/// Rows in memory; sizes in bytes.
struct Rows {
  std::byte *data;
  int64_t stride, bytes, count;

  std::byte *operator[](int64_t row) const { return data + row * stride; }
  /// Whether there is nothing between two rows.
  bool isContiguous() const { return count <= 1 || stride == bytes; }
};

/// Implements the functions of RuntimeCalls.def with the same names.
class Collectives {
public:
  Collectives(WorkPool &pool, Communicator &communicator) : pool(pool), ranks(communicator) {}

  Status allGather(Rows part, Rows whole);
  void allSlice(Rows whole, Rows part) const;
  void localRows(const int32_t *indices, int32_t *local, int64_t rows, int64_t n) const;
  Status shareRows(const int32_t *indices, Rows rows, int64_t n);
  /// The number of bytes that this rank has received so far.
  uint64_t bytesReceived() const { return totalReceived; }

private:
  Status gather(const void *part, int64_t bytes, std::byte *all);
  void addReceived(int64_t bytes) {
    totalReceived += static_cast<uint64_t>((ranks.size() - 1) * bytes);
  }
  const void *packed(Rows rows);
  /// Calls body(row) for all rows, by several threads if there is much to copy.
  template <typename Body> void forEachRow(int64_t rows, int64_t bytes, const Body &body) const;

  WorkPool &pool;
  Communicator &ranks;
  std::vector<std::byte> sent, received;
  std::vector<int64_t> places; ///< of shared rows, among those of their rank
  uint64_t totalReceived = 0;
};

} // namespace mica::rt

#endif // MICA_BACKENDS_CPU_DEVICE_COLLECTIVES_H
