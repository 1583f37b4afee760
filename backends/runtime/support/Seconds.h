// How long something took.
#ifndef MICA_BACKENDS_RUNTIME_SUPPORT_SECONDS_H
#define MICA_BACKENDS_RUNTIME_SUPPORT_SECONDS_H

#include <chrono>

namespace mica::rt {

inline double secondsBetween(std::chrono::steady_clock::time_point begin,
                             std::chrono::steady_clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

inline double secondsSince(std::chrono::steady_clock::time_point start) {
  return secondsBetween(start, std::chrono::steady_clock::now());
}

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_SUPPORT_SECONDS_H
