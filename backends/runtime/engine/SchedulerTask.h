// A request of a scheduler, from its submission to its end.
#ifndef MICA_BACKENDS_RUNTIME_ENGINE_SCHEDULERTASK_H
#define MICA_BACKENDS_RUNTIME_ENGINE_SCHEDULERTASK_H

#include "backends/runtime/engine/Scheduler.h"

#include <algorithm>
#include <new>
#include <utility>

namespace mica::rt {

struct Scheduler::Task {
  Task(SharedRequest shared, RequestListener &listener)
      : common(std::move(shared.common)), request(*common), sharedPrompt(std::move(shared.prompt)),
        prompt(*sharedPrompt), stream(shared.stream), listener(listener),
        maxTokens(request.settings.maxTokens.value_or(GenerationSettings::defaultMaxTokens)),
        maxDrafts(request.settings.lookup.value_or(0)),
        maxHeadDrafts(request.settings.mtp.value_or(0)) {
    result.promptTokens = static_cast<int64_t>(prompt.size());
    result.seed = request.settings.seed ? *request.settings.seed : drawSeed();
  }

  /// Creates what depends on the tokens of the prompt, when the request has got a slot.
  void begin(const Model &model) {
    SamplingOptions options = samplingOptions(request.settings, model.manifest());
    options.seed = result.seed;
    sampler.emplace(options, model.manifest().vocab, stream);
    lookup.emplace(PromptLookup::defaultMinAcceptance(model.weights().size()));
    for (int32_t token : prompt) {
      sampler->observe(token);
      if (maxDrafts > 0)
        lookup->observe(token);
    }
  }

  /// Sets the rows of the prompt after which calls end for the sake of a checkpoint, if the slot
  /// has the first `common` positions of the prompt and `reused` of them can be reused: where other
  /// prompts with that prefix diverge, and so close to the end of the prompt that an edit of its
  /// last turn computes at most 512 positions. A request that may not reuse its whole prompt is not
  /// one of a conversation.
  void setCuts(int64_t reused, int64_t common) {
    constexpr int64_t minGain = 64, lastTurn = 448, enough = 512;
    int64_t length = result.promptTokens;
    if (request.maxReused < length)
      return;
    if (common - reused >= minGain)
      cuts.push_back(static_cast<size_t>(common));
    if (length > enough && length - lastTurn > reused)
      cuts.push_back(static_cast<size_t>(length - lastTurn));
  }
  bool isCut(size_t row) const { return std::find(cuts.begin(), cuts.end(), row) != cuts.end(); }

  /// The maximum number of positions of a cache that the request can reuse. The first token is
  /// sampled from the logits of the prompt's last row, unless it is forced.
  int64_t maxReused() const {
    return std::min(request.maxReused, result.promptTokens - request.forcedTokens.empty());
  }
  /// The length of the prefix that the prompt has in common with `tokens`, and may reuse.
  int64_t commonPrefix(std::span<const int32_t> tokens) const {
    auto end = prompt.begin() + maxReused();
    return std::mismatch(prompt.begin(), end, tokens.begin(), tokens.end()).first - prompt.begin();
  }
  /// Whether rows of the prompt remain to be queued.
  bool isPrompt() const { return queued < prompt.size(); }
  /// Whether the newest token remains to be computed.
  bool decodes() const { return !isPrompt() && !result.tokens.empty(); }
  int64_t remainingPrompt() const { return static_cast<int64_t>(prompt.size() - queued); }
  int64_t totalLength() const { return std::max(result.promptTokens, request.totalLength); }

  bool endsWith(int32_t token, const std::vector<int32_t> &eos) const {
    auto isIn = [&](const Tokens &ids) {
      return std::find(ids.begin(), ids.end(), token) != ids.end();
    };
    return !request.settings.ignoreEos && (isIn(eos) || isIn(request.settings.endTokens));
  }

  /// The token that follows those generated so far.
  Result<int32_t> next(std::span<const float> logits) {
    const Tokens &forced = request.forcedTokens;
    if (!forced.empty())
      return forced[result.tokens.size() % forced.size()];
    try {
      Result<int32_t> token = sampler->sample(logits);
      if (!token)
        return token;
      Status sampled = listener.sampled(*token, logits);
      return sampled ? token : Result<int32_t>(sampled.error());
    } catch (const std::bad_alloc &) {
      return Error{"out of memory"}; // short enough to take none
    }
  }

  void append(int32_t token) {
    sampler->append(token);
    if (maxDrafts > 0)
      lookup->observe(token);
  }

  /// The tokens of the first `length` positions.
  Tokens tokensUpTo(int64_t length) const {
    Tokens all = prompt;
    all.insert(all.end(), result.tokens.begin(), result.tokens.end());
    all.resize(static_cast<size_t>(length));
    return all;
  }

  RequestId id = 0, leader = 0;
  const std::shared_ptr<const Request> common;
  const Request &request; ///< `*common`, without its prompt and its stream
  const std::shared_ptr<const Tokens> sharedPrompt;
  const Tokens &prompt;
  const uint64_t stream;
  RequestListener &listener;
  int64_t maxTokens, maxDrafts, maxHeadDrafts;
  std::optional<PromptLookup> lookup; ///< from `begin` on, as the sampler
  std::optional<Sampler> sampler;
  RequestResult result;
  uint64_t admission = 0; ///< its number in the order in which requests have got slots
  uint64_t order = 0;     ///< the prompt in progress with the lowest number is next
  size_t queued = 0;      ///< positions of the prompt that are cached or queued
  bool hasBegun = false;  ///< rows of the prompt have been queued
  /// What is copied from the slot of an earlier request when that has computed it.
  struct Source : Prefix {
    RequestId id;
  };
  std::optional<Source> source;
  std::vector<size_t> cuts;
  Tokens draft;          ///< drafted tokens queued after the newest token
  bool isByHead = false; ///< whether the multi-token prediction head has drafted them
};

/// A slot for a request.
struct Scheduler::Match {
  size_t slot = 0;
  int64_t common = 0; ///< positions with the same tokens
  int64_t reused = 0; ///< of them, those that the session can reuse
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_ENGINE_SCHEDULERTASK_H
