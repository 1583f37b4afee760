#include "backends/runtime/serve/Metrics.h"

#include <nlohmann/json.hpp>

namespace mica::rt::serve {

/// In the order of Outcome.
static constexpr std::array<const char *, numOutcomes> outcomeNames = {
    "ok", "invalid", "overloaded", "canceled", "timeout", "shutdown", "failed"};

static std::string numberText(double value) { return nlohmann::json(value).dump(); }

static std::string heading(const std::string &name, const char *type, const char *help) {
  return "# HELP " + name + " " + help + "\n# TYPE " + name + " " + type + "\n";
}

static std::string single(const std::string &name, const char *type, const char *help,
                          uint64_t value) {
  return heading(name, type, help) + name + " " + std::to_string(value) + "\n";
}

void Metrics::Histogram::observe(double value) {
  for (size_t i = 0; i < bounds.size(); ++i)
    counts[i] += value <= bounds[i];
  ++count;
  sum += value;
}

std::string Metrics::Histogram::text(const std::string &name, const char *help) const {
  std::string out = heading(name, "histogram", help);
  for (size_t i = 0; i < bounds.size(); ++i)
    out +=
        name + "_bucket{le=\"" + numberText(bounds[i]) + "\"} " + std::to_string(counts[i]) + "\n";
  out += name + "_bucket{le=\"+Inf\"} " + std::to_string(count) + "\n";
  return out + name + "_sum " + numberText(sum) + "\n" + name + "_count " + std::to_string(count) +
         "\n";
}

void RequestMetrics::end(Outcome outcome) {
  if (ended.exchange(true))
    return;
  std::lock_guard lock(all.mutex);
  ++all.requests[static_cast<size_t>(outcome)];
  if (outcome == Outcome::Ok)
    all.duration.observe(secondsSince(arrived));
}

void Metrics::countRejection(unsigned status) {
  std::lock_guard lock(mutex);
  ++rejections[status];
}

void Metrics::countPrompt(int64_t tokens, int64_t cached) {
  std::lock_guard lock(mutex);
  promptTokens += static_cast<uint64_t>(tokens);
  cachedTokens += static_cast<uint64_t>(cached);
}

void Metrics::countFirstToken() {
  std::lock_guard lock(mutex);
  ++generatedTokens;
}

void Metrics::countToken(double seconds) {
  std::lock_guard lock(mutex);
  ++generatedTokens;
  tokenGap.observe(seconds);
}

std::string Metrics::text(const Gauges &gauges) const {
  std::lock_guard lock(mutex);
  std::string out =
      heading("mica_requests_total", "counter", "Requests for completions by outcome.");
  for (size_t i = 0; i < numOutcomes; ++i)
    out += std::string("mica_requests_total{outcome=\"") + outcomeNames[i] + "\"} " +
           std::to_string(requests[i]) + "\n";
  out += heading("mica_rejected_requests_total", "counter",
                 "Requests that were rejected before their body was parsed, by status.");
  for (auto [status, count] : rejections)
    out += "mica_rejected_requests_total{status=\"" + std::to_string(status) + "\"} " +
           std::to_string(count) + "\n";
  out += single("mica_prompt_tokens_total", "counter",
                "Tokens of prompts of completions that have ended with a token.", promptTokens);
  out += single("mica_cached_tokens_total", "counter",
                "The part of these that a cache already held.", cachedTokens);
  out += single("mica_copied_tokens_total", "counter",
                "Tokens of prompts whose positions were copied from another sequence.",
                static_cast<uint64_t>(gauges.copiedTokens));
  out += single("mica_recomputed_answer_tokens_total", "counter",
                "Tokens of answers that were recomputed for the next turn while no request was "
                "unfinished.",
                static_cast<uint64_t>(gauges.recomputedAnswerTokens));
  out += single("mica_generated_tokens_total", "counter", "Tokens generated.", generatedTokens);
  out += single("mica_drafted_tokens_total", "counter",
                "Tokens drafted by prompt lookup or the multi-token prediction head.",
                static_cast<uint64_t>(gauges.draftedTokens));
  out += single("mica_accepted_tokens_total", "counter", "Drafted tokens that were accepted.",
                static_cast<uint64_t>(gauges.acceptedTokens));
  out += single("mica_completions_running", "gauge",
                "Completions with a sequence; a request has n for each prompt.", gauges.running);
  out += single("mica_completions_waiting", "gauge", "Completions that wait for a sequence.",
                gauges.waiting);
  out += single("mica_cache_capacity_bytes", "gauge", "Size of the caches of all sequences.",
                gauges.cacheBytes);
  out += single("mica_cache_used_bytes", "gauge",
                "The part of the caches that holds positions, also those of earlier requests.",
                gauges.usedCacheBytes);
  out += single("mica_checkpoint_bytes", "gauge",
                "Bytes of checkpoints of recurrent and rolling states.", gauges.checkpointBytes);
  out +=
      queueTime.text("mica_queue_time_seconds",
                     "From the end of a request's body until its first completion has a sequence.");
  out += firstToken.text("mica_time_to_first_token_seconds",
                         "From the end of a request's body to its first token, of any completion.");
  out += duration.text("mica_request_duration_seconds",
                       "From the end of a request's body to the end of its complete answer.");
  return out + tokenGap.text("mica_inter_token_latency_seconds",
                             "Between two tokens of a completion, for all tokens but the first.");
}

} // namespace mica::rt::serve
