// Durations and the current time.
#ifndef MICA_BACKENDS_RUNTIME_SUPPORT_SECONDS_H
#define MICA_BACKENDS_RUNTIME_SUPPORT_SECONDS_H

#include <chrono>
#include <cstdint>

namespace mica::rt {

inline double secondsBetween(std::chrono::steady_clock::time_point begin,
                             std::chrono::steady_clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

inline double secondsSince(std::chrono::steady_clock::time_point start) {
  return secondsBetween(start, std::chrono::steady_clock::now());
}

/// Seconds since 1970.
inline int64_t unixSeconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_SUPPORT_SECONDS_H
