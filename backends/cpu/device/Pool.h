// The work-sharing pool that generated code and oneDNN run on.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace mica::rt {

/// A fork/join pool. Waiting threads spin for a short while, because the next fork is usually
/// microseconds away, then sleep in the kernel: an idle pool uses no processor time.
class Pool {
public:
  using Body = void (*)(void *context, int64_t begin, int64_t end);

  /// `threads` counts the caller: threads - 1 are started, or as many as the system allows. At
  /// least 1.
  explicit Pool(unsigned threads);
  ~Pool();
  Pool(const Pool &) = delete;
  Pool &operator=(const Pool &) = delete;

  /// Hears of every part that a fork runs, on the thread that runs it.
  class Observer {
  public:
    using Time = std::chrono::steady_clock::time_point;
    virtual ~Observer() = default;
    /// Parts of one fork differ in their number, and no two forks run at once.
    virtual void ran(int64_t part, Time begin, Time end) = 0;
  };

  unsigned threads() const { return static_cast<unsigned>(workers.size()) + 1; }
  /// Whether the calling thread is inside a body of any pool.
  static bool insideBody();

  /// Calls body(context, begin, end) with disjoint ranges that cover [0, tasks): one contiguous
  /// range per thread, cut the same way every time. Returns when all are done. Runs inline with one
  /// task, one thread, inside a body, or while another thread uses the pool. Bodies must not throw.
  void parallelFor(Body body, void *context, int64_t tasks);

  /// Null: nobody. Not while a fork runs.
  void observe(Observer *who) { observer = who; }
  /// How often parallelFor has forked.
  uint64_t forks() const { return forked; }

private:
  struct Worker;
  struct Job {
    Body body;
    void *context;
    int64_t tasks;
    int64_t parts;
  };

  void work(Worker &self, int64_t part);
  void runPart(int64_t part) const;
  void waitForWorkers();

  std::vector<std::unique_ptr<Worker>> workers;
  std::chrono::microseconds forkSpin, joinSpin;
  Job job{};
  std::mutex busy;
  Observer *observer = nullptr;
  uint64_t forked = 0;
  struct Pending;
  std::unique_ptr<Pending> pending;
};

} // namespace mica::rt
