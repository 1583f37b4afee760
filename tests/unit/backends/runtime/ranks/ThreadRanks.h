// Ranks that are threads of one process.
#ifndef MICA_TESTS_UNIT_BACKENDS_RUNTIME_RANKS_THREADRANKS_H
#define MICA_TESTS_UNIT_BACKENDS_RUNTIME_RANKS_THREADRANKS_H

#include "backends/runtime/ranks/SharedMemoryRanks.h"

#include <cstring>
#include <memory>
#include <new>
#include <thread>
#include <vector>

namespace mica::rt {

/// Calls run(ranks) for each of `size` ranks: rank 0 on the calling thread, the others on one
/// thread each.
template <typename Run> void runRanks(int64_t size, const Run &run) {
  constexpr std::align_val_t alignment{64};
  uint64_t bytes = SharedMemoryRanks::bytesFor(size);
  std::unique_ptr<void, void (*)(void *)> memory(
      ::operator new(bytes, alignment), [](void *memory) { ::operator delete(memory, alignment); });
  std::memset(memory.get(), 0, bytes);
  auto runRank = [&](int64_t rank) {
    SharedMemoryRanks ranks(memory.get(), rank, size);
    run(ranks);
  };
  std::vector<std::thread> threads;
  for (int64_t rank = 1; rank < size; ++rank)
    threads.emplace_back(runRank, rank);
  runRank(0);
  for (std::thread &thread : threads)
    thread.join();
}

} // namespace mica::rt

#endif // MICA_TESTS_UNIT_BACKENDS_RUNTIME_RANKS_THREADRANKS_H
