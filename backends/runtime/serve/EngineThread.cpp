#include "backends/runtime/serve/EngineThread.h"
#include "backends/runtime/serve/ApiError.h"
#include "backends/runtime/support/Process.h"

#include <algorithm>

namespace mica::rt::serve {

/// More than a scheduler ever has.
static constexpr Scheduler::RequestId idsOfScheduler = Scheduler::RequestId(1) << 40;

/// Forwards events to a listener, and shares its ownership as long as the scheduler may call it. An
/// exception, for lack of memory for example, fails only this request.
class EngineThread::ListenerAdapter final : public RequestListener {
public:
  ListenerAdapter(EngineThread &engine, std::shared_ptr<RequestListener> listener)
      : engine(engine), listener(std::move(listener)) {}

  void started() override {
    hasSlot = true;
    engine.begin();
    listener->started();
  }
  Status sampled(int32_t token, std::span<const float> logits) override {
    try {
      return listener->sampled(token, logits);
    } catch (const std::exception &failure) {
      return Error{internalError(failure).message};
    }
  }
  Result<bool> token(int32_t token, std::span<const float> logits) override {
    try {
      return listener->token(token, logits);
    } catch (const std::exception &failure) {
      return Error{internalError(failure).message};
    }
  }
  bool shouldContinue() override { return listener->shouldContinue(); }
  Status logits(std::span<const float> row) override { return listener->logits(row); }
  void finished(const RequestResult &result) override {
    // First: a client that has its answer must not be told that the queue is still full.
    engine.finish(this, hasSlot, /*hasRun=*/!result.tokens.empty());
    notify(result);
  }
  /// Called instead of `finished` if the scheduler does not know the request any more.
  void fail(const Error &error) {
    RequestResult result;
    result.finish = Finish::Failed;
    result.error = error;
    notify(result);
  }

private:
  void notify(const RequestResult &result) {
    try {
      listener->finished(result);
    } catch (const std::exception &) {
      // Not even an error could be sent; the request ends when its client gives up.
    }
  }

  EngineThread &engine;
  std::shared_ptr<RequestListener> listener;
  bool hasSlot = false;
};

Result<std::unique_ptr<EngineThread>>
EngineThread::start(const Model &model, const Scheduler::Options &options, size_t maxQueued) {
  Result<std::unique_ptr<Scheduler>> scheduler = Scheduler::create(model, options);
  if (!scheduler)
    return scheduler.error();
  std::unique_ptr<EngineThread> engine(
      new EngineThread(model, options, *std::move(scheduler), maxQueued));
  engine->thread = std::thread([self = engine.get()] { self->run(); });
  return engine;
}

EngineThread::EngineThread(const Model &model, const Scheduler::Options &options,
                           std::unique_ptr<Scheduler> scheduler, size_t maxQueued)
    : loaded(model), options(options), maxQueued(maxQueued), scheduler(std::move(scheduler)) {}

EngineThread::~EngineThread() {
  {
    std::lock_guard lock(mutex);
    stopping = true;
  }
  changed.notify_one();
  if (thread.joinable())
    thread.join();
}

void EngineThread::wake() {
  {
    std::lock_guard lock(mutex);
    hasWork = true;
  }
  changed.notify_one();
}

std::optional<std::vector<Scheduler::RequestId>>
EngineThread::submit(std::vector<Submission> submissions) {
  std::vector<Scheduler::RequestId> ids;
  ids.reserve(submissions.size());
  {
    std::lock_guard lock(mutex);
    if (requests.size() + submissions.size() > maxUnfinished())
      return std::nullopt;
    if (requests.empty())
      waitEstimate.begin(WaitEstimate::Clock::now());
    ListenerAdapter *next = nullptr; // which the scheduler does not know yet
    try {
      for (auto &[request, listener] : submissions) {
        auto adapter = std::make_unique<ListenerAdapter>(*this, std::move(listener));
        next = adapter.get();
        requests.emplace(next, std::move(adapter));
        std::optional<Scheduler::RequestId> leader;
        if (!ids.empty())
          leader = ids.front() - firstId;
        ids.push_back(firstId + scheduler->submit(std::move(request), *next, leader));
        next = nullptr;
      }
    } catch (const std::exception &) {
      requests.erase(next);
      hasWork = true; // the cancellations
      for (Scheduler::RequestId id : ids)
        scheduler->cancel(id - firstId);
      changed.notify_one();
      throw;
    }
  }
  wake();
  return ids;
}

void EngineThread::cancel(Scheduler::RequestId id) {
  {
    std::lock_guard lock(mutex);
    if (id < firstId)
      return;
    scheduler->cancel(id - firstId);
  }
  wake();
}

EngineThread::Load EngineThread::load() const {
  std::lock_guard lock(mutex);
  return {.running = numRunning, .waiting = requests.size() - numRunning};
}

int64_t EngineThread::secondsToWait() const {
  std::lock_guard lock(mutex);
  size_t waiting = requests.size() - std::min(requests.size(), numSlots());
  return waitEstimate.seconds(waiting, WaitEstimate::Clock::now());
}

void EngineThread::begin() {
  std::lock_guard lock(mutex);
  ++numRunning;
}

/// Called by a request's listener, which must therefore exist until the step is over.
void EngineThread::finish(const ListenerAdapter *request, bool hasSlot, bool hasRun) {
  std::lock_guard lock(mutex);
  numRunning -= hasSlot;
  // Those that were canceled while they waited say nothing about the time that others need.
  if (hasRun)
    waitEstimate.end(WaitEstimate::Clock::now());
  auto found = requests.find(request);
  ended.push_back(std::move(found->second));
  requests.erase(found);
}

/// Calls a function of the scheduler that returns whether to call it again.
template <typename Function> bool EngineThread::advance(const Function &function) {
  try {
    Scheduler::Totals before = scheduler->totals();
    bool again = function();
    Scheduler::Totals made = scheduler->totals() - before;
    counted.copiedTokens += made.copiedTokens;
    counted.recomputedAnswerTokens += made.recomputedAnswerTokens;
    counted.drafted += made.drafted;
    counted.accepted += made.accepted;
    int64_t positions = 0;
    for (int64_t slot = 0; slot < options.slots; ++slot)
      positions += scheduler->cachedTokens(slot);
    usedPositions = positions;
    return again;
  } catch (const std::exception &failure) {
    restart({internalError(failure).message});
    return false;
  }
}

bool EngineThread::step() {
  return advance([&] { return scheduler->step(); });
}

bool EngineThread::recomputeAnswers() {
  return advance([&] { return scheduler->recomputeAnswers(); });
}

/// A step has failed half-way, in an unknown state: ends all requests, and continues with a new
/// scheduler and empty caches.
void EngineThread::restart(const Error &error) {
  decltype(requests) failed;
  {
    std::lock_guard lock(mutex);
    failed.swap(requests);
    numRunning = 0;
    firstId += idsOfScheduler;
    scheduler.reset(); // its caches are needed for the new one
    Result<std::unique_ptr<Scheduler>> created = Scheduler::create(loaded, options);
    if (!created)
      exitOutOfMemory();
    scheduler = *std::move(created);
  }
  for (auto &[key, request] : failed)
    request->fail(error);
}

void EngineThread::run() {
  for (;;) {
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return hasWork || stopping; });
      if (stopping)
        return;
      hasWork = false;
    }
    for (bool unfinished = true; unfinished;) {
      unfinished = step();
      ended.clear();
      std::lock_guard lock(mutex);
      if (stopping)
        return;
    }
    // A client that sends one request after the other does not wait for answers to be recomputed.
    std::chrono::milliseconds pause{500};
    for (bool remaining = true; remaining; pause = {}) {
      {
        std::unique_lock lock(mutex);
        if (changed.wait_for(lock, pause, [&] { return hasWork || stopping; }))
          break;
      }
      remaining = recomputeAnswers();
    }
  }
}

} // namespace mica::rt::serve
