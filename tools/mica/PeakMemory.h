//===- PeakMemory.h - the peak of anonymous memory --------------*- C++ -*-===//
#ifndef MICA_TOOLS_MICA_PEAKMEMORY_H
#define MICA_TOOLS_MICA_PEAKMEMORY_H

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace mica::tool {

/// Measures this process's anonymous memory (RssAnon) every few milliseconds on a separate thread,
/// so that it includes memory that a library allocates and frees within one step.
class PeakMemory {
public:
  PeakMemory();
  ~PeakMemory();
  /// The maximum so far.
  uint64_t bytes() const { return peak; }

private:
  void watch();

  std::atomic<uint64_t> peak;
  std::mutex mutex;
  std::condition_variable wake;
  bool done = false;
  std::thread thread; ///< last: it uses the others
};

} // namespace mica::tool

#endif // MICA_TOOLS_MICA_PEAKMEMORY_H
