// The interface of a thread pool that runs the tasks of kernels.
#ifndef MICA_BACKENDS_RUNTIME_ABI_WORKPOOL_H
#define MICA_BACKENDS_RUNTIME_ABI_WORKPOOL_H

#include <chrono>
#include <cstdint>

namespace mica::rt {

class WorkPool {
public:
  using Body = void (*)(void *context, int64_t begin, int64_t end);

  /// Called for every thread that runs tasks of a fork, on that thread.
  class Observer {
  public:
    using Time = std::chrono::steady_clock::time_point;
    virtual ~Observer() = default;
    /// `thread` is below threads(); forks do not overlap.
    virtual void ran(int64_t thread, Time begin, Time end) = 0;
  };

  virtual ~WorkPool() = default;
  /// The number of threads, including the caller.
  virtual unsigned threads() const = 0;

  /// Calls body(context, begin, end) with disjoint ranges that cover [0, tasks), of which each
  /// thread may run several. Ranges differ from call to call; those of threads that are behind are
  /// taken over by others. Returns when all are done. Calls body(context, 0, tasks) with one task,
  /// one thread, inside a body, or while another thread uses the pool. Bodies must not throw.
  virtual void parallelFor(Body body, void *context, int64_t tasks) = 0;

  /// Sets the observer; null: none. Must not be called while a fork runs.
  virtual void observe(Observer *newObserver) = 0;
  /// Whether other processes have threads for the same processors: one that waits then sleeps at
  /// once. Must be called before the first fork.
  virtual void setOversubscribed(bool is) = 0;
  /// The number of forks so far.
  virtual uint64_t forks() const = 0;
};

/// Calls function(i) for each i in [0, tasks). Tasks must not throw.
template <typename Function>
void forEachTask(WorkPool &pool, int64_t tasks, const Function &function) {
  auto body = [](void *context, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      (*static_cast<const Function *>(context))(i);
  };
  pool.parallelFor(body, const_cast<Function *>(&function), tasks);
}

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_ABI_WORKPOOL_H
