// The thread that advances the scheduler while requests are unfinished.
#ifndef MICA_BACKENDS_RUNTIME_SERVE_ENGINETHREAD_H
#define MICA_BACKENDS_RUNTIME_SERVE_ENGINETHREAD_H

#include "backends/runtime/engine/Scheduler.h"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>

namespace mica::rt::serve {

class EngineThread {
public:
  /// `model` must outlive it. `maxQueued`: requests that may wait beside those that have slots.
  static Result<std::unique_ptr<EngineThread>>
  start(const Model &model, const Scheduler::Options &options, size_t maxQueued);
  /// Unfinished requests hear nothing.
  ~EngineThread();

  using Submission = std::pair<Request, std::shared_ptr<RequestListener>>;
  /// Submits all or none, from any thread. A listener is kept until its request is finished, and is
  /// called on the engine's thread. Absent: too many requests are waiting. Errors are those of
  /// Scheduler::submit.
  Result<std::optional<std::vector<Scheduler::RequestId>>>
  submit(std::vector<Submission> submissions);
  /// From any thread.
  void cancel(Scheduler::RequestId id);

  /// Requests without an end.
  size_t unfinished() const;
  size_t numSlots() const { return slots; }
  const Model &model() const { return scheduler->model(); }

private:
  class Kept;

  EngineThread(std::unique_ptr<Scheduler> scheduler, size_t slots, size_t maxQueued);
  void run();
  void wake();
  void finish(const Kept *request);

  std::unique_ptr<Scheduler> scheduler;
  size_t slots, maxQueued;
  mutable std::mutex mutex;
  std::condition_variable changed;
  bool hasWork = false, stopping = false;
  std::unordered_map<const Kept *, std::unique_ptr<Kept>> requests;
  std::vector<std::unique_ptr<Kept>> ended; ///< In this step.
  std::thread thread;
};

} // namespace mica::rt::serve

#endif // MICA_BACKENDS_RUNTIME_SERVE_ENGINETHREAD_H
