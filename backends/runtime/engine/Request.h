// One text to generate: its input, its events while it runs, and its result.
#ifndef MICA_BACKENDS_RUNTIME_ENGINE_REQUEST_H
#define MICA_BACKENDS_RUNTIME_ENGINE_REQUEST_H

#include "backends/runtime/engine/GenerationSettings.h"

#include <span>

namespace mica::rt {

struct Request {
  Tokens prompt;
  GenerationSettings settings;
  /// Distinguishes requests with the same seed.
  uint64_t stream = 0;
  /// How many positions at the beginning of the prompt may be taken from what a slot has cached
  /// from the request before, at most; 0: the whole prompt is computed. Changes no token.
  int64_t maxReused = 0;
  /// Hand the logits of every position to the listener, not only of those that tokens follow.
  bool allLogits = false;

  // For measuring.
  /// The text continues with these tokens, whatever the model computes, and from their beginning
  /// again at their end; empty: with what is sampled. The first of them needs no logits, so the
  /// whole prompt may be reused, or there may be none.
  Tokens forcedTokens = {};
  /// The length that the text is known to reach; 0: that of its prompt. See Session::expect.
  int64_t totalLength = 0;
};

/// Errors: no tokens, more than the context holds, one that is not in the vocabulary.
Status checkPrompt(const Manifest &manifest, const Tokens &prompt);
/// Errors of checkPrompt and checkSettings.
Status checkRequest(const Manifest &manifest, const Request &request);

/// How a text has ended.
enum class Finish {
  Length,       ///< GenerationSettings::maxTokens
  EndToken,     ///< an end token, which is the last one
  ContextFull,  ///< no position is free for the last token
  StopSequence, ///< the listener wanted no more, as a stop string has come
  Cancelled,    ///< Scheduler::cancel or RequestListener::shouldContinue
  Failed,       ///< RequestResult::error says why
};

struct RequestResult {
  Finish finish = Finish::Length;
  Error error;   ///< Of Finish::Failed.
  Tokens tokens; ///< New ones, an end token included.
  uint64_t seed = 0;
  int64_t promptTokens = 0;          ///< Of the whole prompt.
  int64_t reusedTokens = 0;          ///< Of these, not computed, as a slot had them cached.
  int64_t drafted = 0, accepted = 0; ///< Tokens drafted, and those that the text went on with.
};

/// Receives the events of a request, from within Scheduler::step. An error fails the request, and
/// it alone.
class RequestListener {
public:
  virtual ~RequestListener() = default;
  /// The text continues with `token`, chosen from `logits` as the model has computed them, which
  /// are valid during the call (empty: none were needed). False ends the text as a stop string
  /// does, unless it is an end token.
  virtual Result<bool> token(int32_t token, std::span<const float> logits) { return true; }
  /// Whether the text is still wanted; false cancels the request. Asked before each call of the
  /// model that computes its prompt or recomputes its positions.
  virtual bool shouldContinue() { return true; }
  /// The logits of the next position; only with Request::allLogits.
  virtual Status logits(std::span<const float> row) { return {}; }
  /// The end. No event follows.
  virtual void finished(const RequestResult &result) {}
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_ENGINE_REQUEST_H
