// The interface of a thread pool that runs the tasks of kernels.
#ifndef MICA_BACKENDS_RUNTIME_ABI_WORKPOOL_H
#define MICA_BACKENDS_RUNTIME_ABI_WORKPOOL_H

#include <atomic>
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
    /// `part` is the thread's number; forks do not overlap.
    virtual void ran(int64_t part, Time begin, Time end) = 0;
  };

  virtual ~WorkPool() = default;
  /// The number of threads, including the caller.
  virtual unsigned threads() const = 0;

  /// Calls body(context, begin, end) with disjoint ranges that cover [0, tasks), of which each
  /// thread may run several. Ranges differ from call to call. Returns when all are done. Calls
  /// body(context, 0, tasks) with one task, one thread, inside a body, or while another thread uses
  /// the pool. Bodies must not throw.
  virtual void parallelFor(Body body, void *context, int64_t tasks) = 0;

  /// Sets the observer; null: none. Must not be called while a fork runs.
  virtual void observe(Observer *newObserver) = 0;
  /// The number of forks so far.
  virtual uint64_t forks() const = 0;
};

/// Calls function(i) for each i in [0, tasks). A thread that is done with a task takes the next
/// one: for tasks that take different times. Tasks must not throw.
template <typename Function>
void forEachTask(WorkPool &pool, int64_t tasks, const Function &function) {
  struct Tasks {
    const Function &function;
    int64_t count;
    std::atomic<int64_t> next = 0;
  } all{function, tasks};
  auto body = [](void *context, int64_t, int64_t) {
    Tasks &all = *static_cast<Tasks *>(context);
    for (int64_t i = all.next++; i < all.count; i = all.next++)
      all.function(i);
  };
  pool.parallelFor(body, &all, tasks);
}

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_ABI_WORKPOOL_H
