// The thread that runs the scheduler while there are unfinished requests, and then recomputes
// cached answers so that they can be reused.
#ifndef MICA_BACKENDS_RUNTIME_SERVE_ENGINETHREAD_H
#define MICA_BACKENDS_RUNTIME_SERVE_ENGINETHREAD_H

#include "backends/runtime/engine/Scheduler.h"
#include "backends/runtime/serve/WaitEstimate.h"

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>

namespace mica::rt::serve {

class EngineThread {
public:
  /// Starts the thread. `model` must outlive it. `maxQueued`: the maximum number of requests that
  /// wait for a slot.
  static Result<std::unique_ptr<EngineThread>>
  start(const Model &model, const Scheduler::Options &options, size_t maxQueued);
  /// Listeners of unfinished requests are not notified.
  ~EngineThread();

  using Submission = std::pair<SharedRequest, std::shared_ptr<RequestListener>>;
  /// Submits all requests, which have passed checkRequest, or none. They count as one where slots
  /// are given round-robin to those that wait. May be called from any thread. Listeners are kept
  /// until their requests have finished, and are called on the engine's thread, except `sampled`.
  /// Absent if too many requests are waiting. A listener's exception fails its request, one of the
  /// scheduler (std::bad_alloc) all unfinished ones.
  std::optional<std::vector<Scheduler::RequestId>> submit(std::vector<Submission> submissions);
  /// May be called from any thread.
  void cancel(Scheduler::RequestId id);

  /// The number of unfinished requests: with a slot, and waiting for one. May be called from any
  /// thread.
  struct Load {
    size_t running = 0, waiting = 0;
  };
  Load load() const;
  size_t unfinished() const {
    Load now = load();
    return now.running + now.waiting;
  }
  size_t numSlots() const { return static_cast<size_t>(options.slots); }
  /// An estimate of the time until a request that is submitted now has a slot, from 1 to 60
  /// seconds. May be called from any thread.
  int64_t secondsToWait() const;
  /// The maximum number of unfinished requests.
  size_t maxUnfinished() const { return numSlots() + maxQueued; }
  const Model &model() const { return loaded; }
  /// The share of the positions of all caches that is in use, from 0 to 1. May be called from any
  /// thread.
  double cacheUse() const {
    return static_cast<double>(usedPositions) /
           static_cast<double>(options.slots * loaded.manifest().maxSeq);
  }
  /// The same as in Scheduler::Totals.
  struct Counters {
    std::atomic<int64_t> recomputedAnswerTokens = 0, copiedTokens = 0, drafted = 0, accepted = 0;
  };
  /// What all requests so far have caused. May be called from any thread.
  const Counters &counters() const { return counted; }
  /// The bytes of all checkpoints; may be called from any thread.
  uint64_t checkpointBytes() const {
    std::lock_guard lock(mutex);
    return scheduler->checkpointBytes();
  }

private:
  class ListenerAdapter;

  EngineThread(const Model &model, const Scheduler::Options &options,
               std::unique_ptr<Scheduler> scheduler, size_t maxQueued);
  void run();
  template <typename Function> bool advance(const Function &function);
  bool step();
  bool recomputeAnswers();
  void restart(const Error &error);
  void wake();
  void begin();
  void finish(const ListenerAdapter *request, bool hasSlot, bool hasRun);

  const Model &loaded;
  const Scheduler::Options options;
  const size_t maxQueued;
  std::atomic<int64_t> usedPositions = 0;
  Counters counted;
  mutable std::mutex mutex;
  std::unique_ptr<Scheduler> scheduler; ///< protected by the mutex except on the engine's thread
  Scheduler::RequestId firstId = 0;     ///< of the requests of this scheduler
  std::condition_variable changed;
  bool hasWork = false, stopping = false;
  size_t numRunning = 0; ///< of `requests`: those with a slot
  std::unordered_map<const ListenerAdapter *, std::unique_ptr<ListenerAdapter>> requests;
  std::vector<std::unique_ptr<ListenerAdapter>> ended; ///< in this step
  WaitEstimate waitEstimate;                           ///< protected by the mutex
  std::thread thread;
};

} // namespace mica::rt::serve

#endif // MICA_BACKENDS_RUNTIME_SERVE_ENGINETHREAD_H
