// One text to generate: its input, its events while it runs, and its result.
#ifndef MICA_BACKENDS_RUNTIME_ENGINE_REQUEST_H
#define MICA_BACKENDS_RUNTIME_ENGINE_REQUEST_H

#include "backends/runtime/engine/GenerationSettings.h"

#include <memory>
#include <span>

namespace mica::rt {

struct Request {
  Tokens prompt;
  GenerationSettings settings;
  /// Distinguishes requests with the same seed.
  uint64_t stream = 0;
  /// The maximum length of the prompt's prefix that may be reused from a slot's cache; 0: the whole
  /// prompt is computed. Does not change the output.
  int64_t maxReused = 0;
  /// Pass the logits of every position to the listener, not only of those from which tokens are
  /// sampled.
  bool allLogits = false;
  /// Bounds the time between two tokens: while the text is decoded, the prompts of other requests
  /// get about as much time as decoding (PromptBudget), instead of all rows of a step. For texts
  /// that are read as they are computed. Does not change the output.
  bool limitGaps = false;

  // For benchmarks.
  /// The text continues with these tokens, repeated cyclically, instead of sampled ones; empty:
  /// sampled tokens. The first of them needs no logits, so the whole prompt may be reused or empty.
  Tokens forcedTokens = {};
  /// The length that the text is known to reach; 0: the length of the prompt. See
  /// Session::setTotalLength.
  int64_t totalLength = 0;
};

/// One of several requests with the same settings, and perhaps the same prompt, which they share.
struct SharedRequest {
  std::shared_ptr<const Request> common; ///< all but the prompt and the stream
  std::shared_ptr<const Tokens> prompt;
  uint64_t stream = 0; ///< see Request::stream
};

/// Errors: no tokens, more than fit in the context, a token that is not in the vocabulary.
/// `isWhole`: false if `prompt` is only the beginning of a longer one.
Status checkPrompt(const Manifest &manifest, const Tokens &prompt, bool isWhole = true);
/// Checks the prompt and the settings; see checkPrompt and checkSettings.
Status checkRequest(const Manifest &manifest, const Request &request);

/// The reason why a text has ended.
enum class Finish {
  Length,       ///< GenerationSettings::maxTokens
  EndToken,     ///< an end token, which is the last one
  ContextFull,  ///< no position is free for the last token
  StopSequence, ///< the listener ended the text at a stop string
  Canceled,     ///< Scheduler::cancel or RequestListener::shouldContinue
  Failed,       ///< see RequestResult::error
};

struct RequestResult {
  Finish finish = Finish::Length;
  Error error;   ///< for Finish::Failed
  Tokens tokens; ///< generated tokens, including an end token
  uint64_t seed = 0;
  int64_t promptTokens = 0;          ///< of the whole prompt
  int64_t reusedTokens = 0;          ///< of these, reused from a slot's cache
  int64_t drafted = 0, accepted = 0; ///< drafted and accepted tokens
};

/// Receives the events of a request, from within Scheduler::step. An error fails only this request.
class RequestListener {
public:
  virtual ~RequestListener() = default;
  /// The request has a slot: its prompt is computed from now on.
  virtual void started() {}
  /// `token` was sampled from the model's raw `logits`, which are valid during the call; the event
  /// `token` follows unless the request ends before. For expensive work: it may be called on
  /// another thread than other events, while other requests sample, but never during another event
  /// of this request. Not called for Request::forcedTokens.
  virtual Status sampled(int32_t token, std::span<const float> logits) { return {}; }
  /// The text continues with `token`, sampled from the model's raw `logits`, which are valid during
  /// the call (empty: none were needed). Returning false ends the text like a stop string, unless
  /// it is an end token.
  virtual Result<bool> token(int32_t token, std::span<const float> logits) { return true; }
  /// Returning false cancels the request. Called before each call of the model that computes its
  /// prompt or recomputes its positions.
  virtual bool shouldContinue() { return true; }
  /// The logits of the next position; only with Request::allLogits.
  virtual Status logits(std::span<const float> row) { return {}; }
  /// The request has finished; the last event.
  virtual void finished(const RequestResult &result) {}
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_ENGINE_REQUEST_H
