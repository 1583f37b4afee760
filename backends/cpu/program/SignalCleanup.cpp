#include "backends/cpu/program/SignalCleanup.h"

#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <mutex>
#include <unistd.h>

namespace mica::program {

namespace {
/// A handler may neither lock nor allocate: paths live in fixed arrays that a flag publishes.
struct Slot {
  std::atomic<bool> taken{false};
  std::atomic<bool> armed{false};
  std::array<char, 4096> path{};
};
std::array<Slot, 8> slots;
constexpr int signals[] = {SIGINT, SIGTERM, SIGHUP};

void removeAndDie(int signal) {
  for (Slot &slot : slots)
    if (slot.armed.load(std::memory_order_acquire))
      unlink(slot.path.data());
  // SA_RESETHAND has restored the default action; the process ends as it would have without us.
  raise(signal);
}

void installHandlers() {
  for (int signal : signals) {
    struct sigaction present;
    if (sigaction(signal, nullptr, &present) != 0 || present.sa_handler != SIG_DFL)
      continue;
    struct sigaction ours{};
    ours.sa_handler = removeAndDie;
    ours.sa_flags = SA_RESETHAND | SA_NODEFER;
    sigemptyset(&ours.sa_mask);
    sigaction(signal, &ours, nullptr);
  }
}
} // namespace

int protectTemporary(const std::string &path) {
  static std::once_flag once;
  std::call_once(once, installHandlers);
  if (path.size() >= slots[0].path.size())
    return -1;
  for (size_t i = 0; i < slots.size(); ++i) {
    bool expected = false;
    if (!slots[i].taken.compare_exchange_strong(expected, true))
      continue;
    std::memcpy(slots[i].path.data(), path.c_str(), path.size() + 1);
    slots[i].armed.store(true, std::memory_order_release);
    return static_cast<int>(i);
  }
  return -1;
}

void forgetTemporary(int slot) {
  if (slot < 0)
    return;
  slots[slot].armed.store(false, std::memory_order_release);
  slots[slot].taken.store(false, std::memory_order_release);
}

} // namespace mica::program
