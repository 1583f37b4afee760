// The server's metrics in Prometheus' text format.
#ifndef MICA_BACKENDS_RUNTIME_SERVE_METRICS_H
#define MICA_BACKENDS_RUNTIME_SERVE_METRICS_H

#include "backends/runtime/support/Seconds.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace mica::rt::serve {

/// How a request for completions has ended.
enum class Outcome : uint8_t {
  Ok,
  Invalid,    ///< status 4xx, except:
  Overloaded, ///< status 429 or 503: no room in the queue or in memory
  Canceled,   ///< the client has left
  TimedOut,
  Shutdown,
  Failed, ///< status 5xx otherwise, or an error in a stream
};
inline constexpr size_t numOutcomes = 7;

/// All functions may be called from any thread.
class Metrics {
public:
  /// Counts a request that was rejected before its body was parsed, by the status of the reply.
  void countRejection(unsigned status);
  /// Counts the prompt of a completion that has ended.
  void countPrompt(int64_t tokens, int64_t cached);
  /// Counts the first token of a completion.
  void countFirstToken();
  /// Counts another token, `seconds` after the one before it.
  void countToken(double seconds);

  /// Values of others: completions with a slot and those waiting for one; the capacity of all
  /// caches, and how much of it holds positions of texts in progress or of earlier ones; the bytes
  /// of all checkpoints; EngineThread::counters.
  struct Gauges {
    size_t running = 0, waiting = 0;
    uint64_t cacheBytes = 0, usedCacheBytes = 0, checkpointBytes = 0;
    int64_t recomputedAnswerTokens = 0, copiedTokens = 0, draftedTokens = 0, acceptedTokens = 0;
  };
  std::string text(const Gauges &gauges) const;

private:
  friend class RequestMetrics;
  /// Cumulative, as in Prometheus.
  struct Histogram {
    static constexpr auto bounds =
        std::to_array<double>({.001, .0025, .005, .01, .025, .05, .1,  .25, .5,   1,   2.5,
                               5,    10,    20,   40,  80,   160, 320, 640, 1280, 2560});
    std::array<uint64_t, bounds.size()> counts{};
    uint64_t count = 0;
    double sum = 0;

    void observe(double value);
    std::string text(const std::string &name, const char *help) const;
  };

  void observe(Histogram &histogram, double seconds) {
    std::lock_guard lock(mutex);
    histogram.observe(seconds);
  }

  mutable std::mutex mutex;
  std::array<uint64_t, numOutcomes> requests{};
  std::map<unsigned, uint64_t> rejections;
  uint64_t promptTokens = 0, cachedTokens = 0, generatedTokens = 0;
  Histogram queueTime, firstToken, duration, tokenGap;
};

/// What is counted once for a request, however many completions it has: its outcome, and the times
/// since its arrival. Only the first call of a function counts; a request that is destroyed without
/// an outcome has failed. All functions may be called from any thread.
class RequestMetrics {
public:
  using Clock = std::chrono::steady_clock;

  /// The request has just been received. `all` must outlive it.
  explicit RequestMetrics(Metrics &all) : all(all), arrived(Clock::now()) {}
  RequestMetrics(const RequestMetrics &) = delete;
  ~RequestMetrics() { end(Outcome::Failed); }

  /// A completion has a sequence.
  void start() { observeOnce(started, all.queueTime); }
  void firstToken() { observeOnce(hasToken, all.firstToken); }
  void end(Outcome outcome);

  Metrics &all;
  const Clock::time_point arrived;

private:
  void observeOnce(std::atomic<bool> &observed, Metrics::Histogram &histogram) {
    if (!observed.exchange(true))
      all.observe(histogram, secondsSince(arrived));
  }

  std::atomic<bool> started = false, hasToken = false, ended = false;
};

} // namespace mica::rt::serve

#endif // MICA_BACKENDS_RUNTIME_SERVE_METRICS_H
