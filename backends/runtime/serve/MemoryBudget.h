// The memory that requests, or their answers, may take together.
#ifndef MICA_BACKENDS_RUNTIME_SERVE_MEMORYBUDGET_H
#define MICA_BACKENDS_RUNTIME_SERVE_MEMORYBUDGET_H

#include <atomic>
#include <cstdint>

namespace mica::rt::serve {

/// A maximum number of bytes, and the bytes in use. May be used from any thread.
class MemoryBudget {
public:
  explicit MemoryBudget(uint64_t max) : limit(max) {}
  uint64_t used() const { return total; }
  uint64_t max() const { return limit; }
  /// What is reserved already may be more.
  void setMax(uint64_t max) { limit = max; }

private:
  friend class Reservation;
  std::atomic<uint64_t> limit, total = 0;
};

/// A share of a budget, which is released when it is destroyed. May be used from any thread, but
/// from one at a time.
class Reservation {
public:
  /// `budget` must outlive it.
  explicit Reservation(MemoryBudget &budget) : budget(budget) {}
  Reservation(const Reservation &) = delete;
  ~Reservation() { budget.total -= bytes; }

  /// Changes the size. Returns false, without a change, if the budget has no room for more.
  bool resize(uint64_t size) {
    for (uint64_t before = budget.total;;) {
      uint64_t after = before - bytes + size;
      if (size > bytes && after > budget.limit)
        return false;
      if (!budget.total.compare_exchange_weak(before, after))
        continue;
      bytes = size;
      return true;
    }
  }
  uint64_t size() const { return bytes; }
  /// Whether the budget has room for `size` bytes if nothing else is reserved.
  bool canHold(uint64_t size) const { return size <= budget.limit; }

private:
  MemoryBudget &budget;
  uint64_t bytes = 0;
};

} // namespace mica::rt::serve

#endif // MICA_BACKENDS_RUNTIME_SERVE_MEMORYBUDGET_H
