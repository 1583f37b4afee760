// Generates texts from prompts, in one batch.
#ifndef MICA_TESTS_UNIT_BACKENDS_RUNTIME_GENERATION_H
#define MICA_TESTS_UNIT_BACKENDS_RUNTIME_GENERATION_H

#include "backends/runtime/engine/Generate.h"

namespace mica::test {

/// Settings of all texts. Default: greedy, no end tokens.
struct Generation {
  Generation() {
    settings.temperature = 0;
    settings.ignoreEos = true;
  }

  std::vector<rt::Request> requests(const std::vector<rt::Tokens> &prompts) const {
    std::vector<rt::Request> all;
    all.reserve(prompts.size());
    for (const rt::Tokens &prompt : prompts)
      all.push_back({.prompt = prompt,
                     .settings = settings,
                     .stream = all.size(),
                     .allLogits = allLogits,
                     .forcedTokens = forcedTokens});
    return all;
  }

  /// `listener` receives all texts; null: none.
  rt::Result<rt::GenerateResult> run(const rt::Model &model, const std::vector<rt::Tokens> &prompts,
                                     rt::RequestListener *listener = nullptr) const {
    auto scheduler = rt::Scheduler::create(model, {.slots = static_cast<int64_t>(prompts.size()),
                                                   .promptRows = promptRows,
                                                   .promptsShareCalls = true,
                                                   .promptsFirst = true});
    if (!scheduler)
      return scheduler.error();
    return rt::generate(**scheduler, requests(prompts), {prompts.size(), listener});
  }

  rt::GenerationSettings settings;
  int64_t promptRows = 512;
  bool allLogits = false;
  rt::Tokens forcedTokens;
};

} // namespace mica::test

#endif // MICA_TESTS_UNIT_BACKENDS_RUNTIME_GENERATION_H
