//===- Measurements.cpp - seconds, bytes, memory -------------------------------------------------===//

#include "backends/cpu/compile/Measurements.h"

#include <fstream>

namespace mica::cpu {

uint64_t anonymousMemory() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (uint64_t kilobytes; word == "RssAnon:" && status >> kilobytes)
      return kilobytes << 10;
  return 0;
}

MemoryWatch::MemoryWatch()
    : thread([this] {
        while (!stop) {
          look();
          std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
      }) {}

MemoryWatch::~MemoryWatch() {
  stop = true;
  thread.join();
}

void MemoryWatch::look() {
  uint64_t now = anonymousMemory(), before = most;
  while (now > before && !most.compare_exchange_weak(before, now)) {
  }
}

uint64_t MemoryWatch::peak() {
  look();
  return most;
}

} // namespace mica::cpu
