//===- Measurements.h - seconds, bytes, memory ---------------------------------------*- C++ -*-===//
#ifndef MICA_BACKENDS_CPU_COMPILE_MEASUREMENTS_H
#define MICA_BACKENDS_CPU_COMPILE_MEASUREMENTS_H

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace mica::cpu {

/// Anonymous memory of this process in bytes (RssAnon), which does not count mapped files; 0 if unknown.
uint64_t anonymousMemory();

/// Watches anonymous memory while it lives.
class MemoryWatch {
public:
  MemoryWatch();
  ~MemoryWatch();
  /// The largest value seen so far, in bytes.
  uint64_t peak();

private:
  void look();

  std::atomic<uint64_t> most = 0;
  std::atomic<bool> stop = false;
  std::thread thread;
};

struct StageMeasurement {
  std::string name;
  double seconds;
  uint64_t bytes; ///< of what the stage is, as text or binary; 0 if nobody asked
};

/// Seconds since it was made.
class Stopwatch {
public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

private:
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
};

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_COMPILE_MEASUREMENTS_H
