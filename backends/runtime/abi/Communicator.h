// The interface between the ranks of a program.
#ifndef MICA_BACKENDS_RUNTIME_ABI_COMMUNICATOR_H
#define MICA_BACKENDS_RUNTIME_ABI_COMMUNICATOR_H

#include "backends/runtime/support/Result.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace mica::rt {

/// Moves bytes between ranks: processes that run the same code on parts of the weights. All ranks
/// call the same functions in the same order, one at a time. Errors name the rank that has failed
/// and its host; after an error no function may be called.
class Communicator {
public:
  virtual ~Communicator() = default;
  /// From 0 to size() - 1.
  virtual int64_t rank() const = 0;
  virtual int64_t size() const = 0;
  /// For messages: the rank, and its host if that is known.
  virtual std::string describe(int64_t rank) const { return "rank " + std::to_string(rank); }
  /// `all` gets the `bytes` at `part` of each rank, in the order of ranks: size() * bytes.
  virtual Status allGather(const void *part, uint64_t bytes, void *all) = 0;
  /// Some of the bytes of a rank, from byte `at` on.
  struct Received {
    int64_t rank;
    uint64_t at, bytes;
    const std::byte *data;
  };
  /// allGather that calls `take` with the bytes of all ranks, this one included, in pieces: those
  /// of a rank in their order. They exist until `take` returns.
  virtual Status allGatherInPieces(const void *part, uint64_t bytes,
                                   const std::function<void(const Received &)> &take) {
    gathered.resize(static_cast<size_t>(size()) * bytes);
    if (Status done = allGather(part, bytes, gathered.data()); !done)
      return done;
    for (int64_t rank = 0; rank < size(); ++rank)
      take({rank, 0, bytes, gathered.data() + static_cast<uint64_t>(rank) * bytes});
    return {};
  }
  /// Copies the `bytes` at `data` of rank 0 to `data` of all other ranks, which may wait for long:
  /// until there is something to compute.
  virtual Status broadcast(void *data, uint64_t bytes) = 0;
  /// Whether the ranks have more threads than processors. One that waits for others then leaves its
  /// processor at once: they may need it.
  virtual void setOversubscribed(bool) {}
  /// Whether this rank computes, or loads what it needs for that: see Computation. One that is
  /// asleep meanwhile, except in the functions above, hangs.
  virtual void setComputing(bool) {}
  /// If the failure of a rank ends this process, `callback` is called before, on any thread, with
  /// the reason; it must return soon. Empty: nothing is called.
  virtual void onFailure(std::function<void(const Error &)>) {}
  /// Reports the error and ends the process, and so the run: in the middle of what all ranks do,
  /// this one cannot continue.
  [[noreturn]] virtual void fail(const Error &error) = 0;

private:
  std::vector<std::byte> gathered;
};

/// While it lives, this rank computes; does nothing without ranks.
class Computation {
public:
  explicit Computation(Communicator *ranks) : ranks(ranks) {
    if (ranks)
      ranks->setComputing(true);
  }
  ~Computation() {
    if (ranks)
      ranks->setComputing(false);
  }
  Computation(const Computation &) = delete;
  Computation &operator=(const Computation &) = delete;

private:
  Communicator *ranks;
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_ABI_COMMUNICATOR_H
