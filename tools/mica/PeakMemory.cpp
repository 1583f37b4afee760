//===- PeakMemory.cpp - the peak of anonymous memory ----------------------===//

#include "tools/mica/PeakMemory.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>

namespace mica::tool {

/// Anonymous memory of this process in bytes.
static uint64_t anonymousBytes() {
  std::ifstream status("/proc/self/status");
  const std::string key = "RssAnon:";
  for (std::string line; std::getline(status, line);)
    if (line.rfind(key, 0) == 0)
      return std::stoull(line.substr(key.size())) * 1024;
  return 0;
}

PeakMemory::PeakMemory() : peak(anonymousBytes()), thread([this] { watch(); }) {}

PeakMemory::~PeakMemory() {
  {
    std::lock_guard lock(mutex);
    done = true;
  }
  wake.notify_one();
  thread.join();
}

void PeakMemory::watch() {
  std::unique_lock lock(mutex);
  while (!wake.wait_for(lock, std::chrono::milliseconds(5), [this] { return done; }))
    peak = std::max(peak.load(), anonymousBytes());
}

} // namespace mica::tool
