// Estimates how long requests wait, for Retry-After.
#ifndef MICA_BACKENDS_RUNTIME_SERVE_WAITESTIMATE_H
#define MICA_BACKENDS_RUNTIME_SERVE_WAITESTIMATE_H

#include "backends/runtime/support/Seconds.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>

namespace mica::rt::serve {

/// Extrapolates the rate at which requests have ended.
class WaitEstimate {
public:
  using Clock = std::chrono::steady_clock;
  static constexpr int64_t maxSeconds = 60;

  /// A request has been submitted while there was no other.
  void begin(Clock::time_point now) { times = {now}; }
  /// A request has ended.
  void end(Clock::time_point now) {
    times.push_back(now);
    if (times.size() > maxTimes)
      times.pop_front();
  }
  /// The time until `count` more requests have ended, in whole seconds from 1 to maxSeconds.
  int64_t seconds(size_t count, Clock::time_point now) const {
    if (times.empty())
      return 1;
    double each = secondsBetween(times.front(), now) /
                  static_cast<double>(std::max<size_t>(times.size() - 1, 1));
    double wait = std::ceil(each * static_cast<double>(count));
    return static_cast<int64_t>(std::clamp(wait, 1.0, static_cast<double>(maxSeconds)));
  }

private:
  static constexpr size_t maxTimes = 33;
  std::deque<Clock::time_point> times; ///< of begin, or of an end, and of the latest ends
};

} // namespace mica::rt::serve

#endif // MICA_BACKENDS_RUNTIME_SERVE_WAITESTIMATE_H
