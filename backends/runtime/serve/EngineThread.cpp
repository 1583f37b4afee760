#include "backends/runtime/serve/EngineThread.h"

namespace mica::rt::serve {

/// Forwards events to a listener, and shares its ownership as long as the scheduler may call it.
class EngineThread::Kept final : public RequestListener {
public:
  Kept(EngineThread &engine, std::shared_ptr<RequestListener> listener)
      : engine(engine), listener(std::move(listener)) {}

  Result<bool> token(int32_t token, std::span<const float> logits) override {
    return listener->token(token, logits);
  }
  bool shouldContinue() override { return listener->shouldContinue(); }
  Status logits(std::span<const float> row) override { return listener->logits(row); }
  void finished(const RequestResult &result) override {
    listener->finished(result);
    engine.finish(this);
  }

private:
  EngineThread &engine;
  std::shared_ptr<RequestListener> listener;
};

Result<std::unique_ptr<EngineThread>>
EngineThread::start(const Model &model, const Scheduler::Options &options, size_t maxQueued) {
  Result<std::unique_ptr<Scheduler>> scheduler = Scheduler::create(model, options);
  if (!scheduler)
    return scheduler.error();
  std::unique_ptr<EngineThread> engine(
      new EngineThread(*std::move(scheduler), static_cast<size_t>(options.slots), maxQueued));
  engine->thread = std::thread([self = engine.get()] { self->run(); });
  return engine;
}

EngineThread::EngineThread(std::unique_ptr<Scheduler> scheduler, size_t slots, size_t maxQueued)
    : scheduler(std::move(scheduler)), slots(slots), maxQueued(maxQueued) {}

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

Result<std::optional<std::vector<Scheduler::RequestId>>>
EngineThread::submit(std::vector<Submission> submissions) {
  std::vector<Kept *> keys;
  {
    std::lock_guard lock(mutex);
    if (requests.size() + submissions.size() > maxUnfinished())
      return std::optional<std::vector<Scheduler::RequestId>>();
    for (auto &[request, listener] : submissions) {
      auto kept = std::make_unique<Kept>(*this, std::move(listener));
      keys.push_back(kept.get());
      requests.emplace(kept.get(), std::move(kept));
    }
  }
  std::vector<Scheduler::RequestId> ids;
  for (size_t i = 0; i < submissions.size(); ++i) {
    Result<Scheduler::RequestId> id = scheduler->submit(std::move(submissions[i].first), *keys[i]);
    if (!id) {
      for (Scheduler::RequestId submitted : ids)
        cancel(submitted);
      std::lock_guard lock(mutex);
      for (; i < keys.size(); ++i)
        requests.erase(keys[i]);
      return id.error();
    }
    ids.push_back(*id);
  }
  wake();
  return std::optional(std::move(ids));
}

void EngineThread::cancel(Scheduler::RequestId id) {
  scheduler->cancel(id);
  wake();
}

size_t EngineThread::unfinished() const {
  std::lock_guard lock(mutex);
  return requests.size();
}

/// Called by a request's own listener, which must therefore exist until the step is over.
void EngineThread::finish(const Kept *request) {
  std::lock_guard lock(mutex);
  auto found = requests.find(request);
  ended.push_back(std::move(found->second));
  requests.erase(found);
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
      unfinished = scheduler->step();
      ended.clear();
      std::lock_guard lock(mutex);
      if (stopping)
        return;
    }
  }
}

} // namespace mica::rt::serve
