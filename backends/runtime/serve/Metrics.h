// The server's metrics in Prometheus' text format.
#ifndef MICA_BACKENDS_RUNTIME_SERVE_METRICS_H
#define MICA_BACKENDS_RUNTIME_SERVE_METRICS_H

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace mica::rt::serve {

/// All functions may be called from any thread.
class Metrics {
public:
  /// Counts a finished request for completions by outcome: "ok", "refused", "canceled", "timeout",
  /// "failed", "busy" or "aborted" (by a shutdown).
  void countRequest(const std::string &outcome);
  /// Counts a request that was rejected before its body was parsed, by the status of the reply.
  void countRejection(unsigned status);
  void countTokens(int64_t prompt, int64_t cached, int64_t generated);
  /// From a request's arrival until a completion has a sequence, until its first token, and until
  /// the whole answer; and between two tokens of a completion.
  void observeQueueTime(double seconds) { observe(queueTime, seconds); }
  void observeFirstToken(double seconds) { observe(firstToken, seconds); }
  void observeDuration(double seconds) { observe(duration, seconds); }
  void observeTokenGap(double seconds) { observe(tokenGap, seconds); }

  /// Current values: completions with a slot and those waiting for one; the capacity of all caches,
  /// and how much of it holds positions of texts in progress or of earlier ones; the bytes of all
  /// checkpoints.
  struct Gauges {
    size_t running = 0, waiting = 0;
    uint64_t cacheBytes = 0, usedCacheBytes = 0, checkpointBytes = 0;
  };
  std::string text(const Gauges &gauges) const;

private:
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
  std::map<std::string, uint64_t> requests;
  std::map<unsigned, uint64_t> rejections;
  uint64_t promptTokens = 0, cachedTokens = 0, generatedTokens = 0;
  Histogram queueTime, firstToken, duration, tokenGap;
};

} // namespace mica::rt::serve

#endif // MICA_BACKENDS_RUNTIME_SERVE_METRICS_H
