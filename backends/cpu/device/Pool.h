// The thread pool for generated code and oneDNN.
#ifndef MICA_BACKENDS_CPU_DEVICE_POOL_H
#define MICA_BACKENDS_CPU_DEVICE_POOL_H

#include "backends/runtime/abi/WorkPool.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace mica::rt {

/// A fork/join pool with work stealing. Each thread has a contiguous range of a fork's tasks, of
/// which it takes pieces from the front. A thread that is done steals pieces from the back of
/// others' ranges: processors are not equally fast all the time, in particular those of virtual
/// machines. Waiting threads spin for a short while, because the next fork is usually microseconds
/// away, then sleep in the kernel: an idle pool uses no processor time. With more threads than
/// processors, a spinning thread would delay the thread that it waits for, so they sleep at once.
class Pool final : public WorkPool {
public:
  /// `threads` is at least 1 and includes the caller: threads - 1 are started, or as many as the
  /// system allows.
  explicit Pool(unsigned threads);
  ~Pool() override;
  Pool(const Pool &) = delete;
  Pool &operator=(const Pool &) = delete;

  unsigned threads() const override { return static_cast<unsigned>(workers.size()) + 1; }
  /// Whether the calling thread is inside a body of any pool.
  static bool inParallelRegion();

  void parallelFor(Body body, void *context, int64_t tasks) override;
  void observe(Observer *newObserver) override { observer = newObserver; }
  void setOversubscribed(bool is) override;
  uint64_t forks() const override { return forked; }

private:
  struct Worker;
  struct Job {
    Body body;
    void *context;
    int64_t tasks;
    int64_t parts;
    int64_t unit; ///< tasks per index of a TaskRange
  };
  class TaskRange;

  void work(Worker &self, int64_t part);
  void cutIntoRanges();
  void runPieces(int64_t part);
  void runPart(int64_t part);
  void waitForWorkers();

  std::vector<std::unique_ptr<Worker>> workers;
  std::unique_ptr<TaskRange[]> ranges; ///< of the current job, one per thread
  std::chrono::microseconds forkSpin, joinSpin;
  Job job{};
  std::mutex busy;
  Observer *observer = nullptr;
  uint64_t forked = 0;
  struct Pending;
  std::unique_ptr<Pending> pending;
};

} // namespace mica::rt

#endif // MICA_BACKENDS_CPU_DEVICE_POOL_H
