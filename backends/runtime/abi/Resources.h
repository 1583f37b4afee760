// What a process may use of its machine.
#ifndef MICA_BACKENDS_RUNTIME_ABI_RESOURCES_H
#define MICA_BACKENDS_RUNTIME_ABI_RESOURCES_H

#include <cstdint>
#include <optional>

namespace mica::rt {

/// What a process may use of its machine, which it may share with other ranks.
struct Resources {
  Resources(unsigned threads) : threads(threads) {}

  unsigned threads; ///< at least 1, including the caller
  /// Whether these are, with those of other ranks, more than the processors that they may use.
  bool areOversubscribed = false;
  uint64_t ranksOnHost = 1; ///< the number of ranks of this machine, this one included
  /// Bytes, before the model is loaded: the same for all ranks. Absent: what is available.
  std::optional<uint64_t> memory;
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_ABI_RESOURCES_H
