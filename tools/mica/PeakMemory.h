//===- PeakMemory.h - the peak of anonymous memory --------------*- C++ -*-===//
#ifndef MICA_TOOLS_MICA_PEAKMEMORY_H
#define MICA_TOOLS_MICA_PEAKMEMORY_H

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace mica::tool {

/// Looks at this process's anonymous memory (RssAnon) every few milliseconds, on a thread of its
/// own, as long as it lives: what a library takes and gives back within one step counts as well.
class PeakMemory {
public:
  PeakMemory();
  ~PeakMemory();
  /// The largest number of bytes seen until now.
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
