// Threads that share the tasks of a kernel.
#ifndef MICA_BACKENDS_RUNTIME_ABI_WORKPOOL_H
#define MICA_BACKENDS_RUNTIME_ABI_WORKPOOL_H

#include <chrono>
#include <cstdint>

namespace mica::rt {

class WorkPool {
public:
  using Body = void (*)(void *context, int64_t begin, int64_t end);

  /// Is called for every part that a fork runs, on the thread that runs it.
  class Observer {
  public:
    using Time = std::chrono::steady_clock::time_point;
    virtual ~Observer() = default;
    /// Parts of one fork differ in their number, and no two forks run at once.
    virtual void ran(int64_t part, Time begin, Time end) = 0;
  };

  virtual ~WorkPool() = default;
  /// The caller counts.
  virtual unsigned threads() const = 0;

  /// Calls body(context, begin, end) with disjoint ranges that cover [0, tasks): one contiguous
  /// range per thread, cut the same way every time. Returns when all are done. Runs inline with one
  /// task, one thread, inside a body, or while another thread uses the pool. Bodies must not throw.
  virtual void parallelFor(Body body, void *context, int64_t tasks) = 0;

  /// Null: none. Not while a fork runs.
  virtual void observe(Observer *newObserver) = 0;
  /// How often parallelFor has forked.
  virtual uint64_t forks() const = 0;
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_ABI_WORKPOOL_H
