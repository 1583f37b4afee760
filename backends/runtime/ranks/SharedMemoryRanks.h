// Ranks that share memory: the processes of one host, or threads.
#ifndef MICA_BACKENDS_RUNTIME_RANKS_SHAREDMEMORYRANKS_H
#define MICA_BACKENDS_RUNTIME_RANKS_SHAREDMEMORYRANKS_H

#include "backends/runtime/abi/Communicator.h"

#include <cstddef>
#include <memory>
#include <vector>

namespace mica::rt {

/// An exchange is two copies and a few words that ranks wait for. A rank that waits spins for a
/// short while, unless the processors are oversubscribed, then leaves the processor to other
/// threads, then sleeps.
class SharedMemoryRanks final : public Communicator {
public:
  /// The number of bytes that `size` ranks share.
  static uint64_t bytesFor(int64_t size);

  /// `memory`: bytesFor(size) bytes, aligned to 64, zero before the first rank is created, which
  /// must outlive all ranks.
  SharedMemoryRanks(void *memory, int64_t rank, int64_t size);

  int64_t rank() const override { return self; }
  int64_t size() const override { return count; }
  Status allGather(const void *part, uint64_t bytes, void *all) override;
  Status allGatherInPieces(const void *part, uint64_t bytes,
                           const std::function<void(const Received &)> &take) override;
  Status broadcast(void *data, uint64_t bytes) override;
  void setOversubscribed(bool is) override { oversubscribed = is; }
  [[noreturn]] void fail(const Error &error) override;
  /// Whether the process of a rank has ended; false for ranks in other PID namespaces.
  bool hasEnded(int64_t rank) const;
  /// Tells the others that this rank has reported a failure and ends; what they observe afterwards
  /// is a consequence.
  void announceFailure();
  bool isFailureAnnounced() const;

private:
  struct Shared;
  struct Slot;

  /// What an exchange is: ranks that disagree about it are at different ones.
  enum class Kind : uint64_t { Gather, Broadcast };

  Slot &slotOf(int64_t rank) const;
  std::byte *bytesOf(int64_t rank) const;
  Status waitFor(int64_t rank, uint64_t exchange) const;
  Status requireSame(int64_t rank, Kind kind, uint64_t bytes) const;
  void arrive(Kind kind, uint64_t bytes);
  template <typename Take> Status gather(const void *part, uint64_t bytes, const Take &take);

  Shared *shared;
  int64_t self, count;
  bool oversubscribed = false;
  uint64_t exchange = 0; ///< the number of the current one
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_RANKS_SHAREDMEMORYRANKS_H
