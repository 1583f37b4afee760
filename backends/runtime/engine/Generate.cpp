#include "backends/runtime/engine/Generate.h"

#include <algorithm>
#include <deque>

namespace mica::rt {

namespace {
/// Stores the result of a request and forwards all other events to its listener.
class Keeper final : public RequestListener {
public:
  explicit Keeper(RequestListener *listener) : listener(listener ? *listener : silent) {}

  void started() override { listener.started(); }
  Status sampled(int32_t token, std::span<const float> logits) override {
    return listener.sampled(token, logits);
  }
  Result<bool> token(int32_t token, std::span<const float> logits) override {
    return listener.token(token, logits);
  }
  bool shouldContinue() override { return listener.shouldContinue(); }
  Status logits(std::span<const float> row) override { return listener.logits(row); }
  void finished(const RequestResult &finished) override {
    result = finished;
    listener.finished(finished);
  }

  std::optional<RequestResult> result; ///< none until the request has finished

private:
  RequestListener silent, &listener;
};
} // namespace

Result<GenerateResult> generate(Scheduler &scheduler, std::vector<Request> requests,
                                const std::vector<RequestListener *> &listeners) {
  Scheduler::Totals before = scheduler.totals();
  std::deque<Keeper> keepers;
  std::vector<Scheduler::RequestId> ids;
  Status status;
  for (size_t i = 0; i < requests.size() && status; ++i) {
    keepers.emplace_back(listeners[i]);
    Result<Scheduler::RequestId> id = scheduler.submit(std::move(requests[i]), keepers.back());
    if (id) {
      ids.push_back(*id);
    } else {
      keepers.pop_back();
      status = id.error();
    }
  }
  auto isUnfinished = [](const Keeper &keeper) { return !keeper.result; };
  while (std::any_of(keepers.begin(), keepers.end(), isUnfinished)) {
    for (const Keeper &keeper : keepers)
      if (status && keeper.result && keeper.result->finish == Finish::Failed)
        status = keeper.result->error;
    if (!status)
      for (Scheduler::RequestId id : ids)
        scheduler.cancel(id);
    scheduler.step();
  }
  GenerateResult all{{}, scheduler.totals() - before};
  for (Keeper &keeper : keepers) {
    if (status && keeper.result->finish == Finish::Failed)
      status = keeper.result->error;
    all.texts.push_back(*std::move(keeper.result));
  }
  return status ? Result<GenerateResult>(std::move(all)) : status.error();
}

Result<GenerateResult> generate(Scheduler &scheduler, std::vector<Request> requests) {
  std::vector<RequestListener *> listeners(requests.size());
  return generate(scheduler, std::move(requests), listeners);
}

} // namespace mica::rt
