#include "backends/runtime/support/SignalCleanup.h"

#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <mutex>
#include <unistd.h>

namespace mica::rt {

namespace {
/// A signal handler may neither lock nor allocate: paths are in fixed arrays published by a flag.
struct Slot {
  std::atomic<bool> taken{false};
  std::atomic<bool> armed{false};
  std::array<char, 4096> path{};
};
std::array<Slot, 8> slots;

/// The number of running handlers, on any thread.
std::atomic<int> ending{0};

/// Whether the process ignores `signal`, as background jobs of a shell ignore SIGINT.
bool isIgnored(int signal) noexcept {
  struct sigaction now{};
  return sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

struct Handled {
  int signal;
  /// At process start: LLVM's handlers, which may be installed before these, also replace SIG_IGN,
  /// and restore it when they have run.
  bool ignored = isIgnored(signal);
  struct sigaction before = {}; ///< the previous action
};
std::array<Handled, 5> handled = {{{SIGINT}, {SIGTERM}, {SIGHUP}, {SIGQUIT}, {SIGXCPU}}};

void removeAndResume(int signal) {
  ++ending;
  removeTemporaries();
  // Performs the previous action for the signal.
  for (Handled &entry : handled)
    if (entry.signal == signal)
      sigaction(signal, &entry.before, nullptr);
  raise(signal);
  --ending;
}

void installHandlers() {
  for (Handled &entry : handled) {
    if (entry.ignored || isIgnored(entry.signal) ||
        sigaction(entry.signal, nullptr, &entry.before) != 0)
      continue;
    struct sigaction ours{};
    ours.sa_handler = removeAndResume;
    ours.sa_flags = SA_NODEFER;
    sigemptyset(&ours.sa_mask);
    sigaction(entry.signal, &ours, nullptr);
  }
}
} // namespace

void removeTemporaries() {
  // Files before their folders.
  for (auto *remove : {&unlink, &rmdir})
    for (Slot &slot : slots)
      if (slot.armed.load(std::memory_order_acquire))
        remove(slot.path.data());
}

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
  // Another thread's handler may have removed the file already. Such a failure must not be
  // reported: the process is about to end.
  while (ending.load() > 0)
    usleep(1000);
  slots[slot].armed.store(false, std::memory_order_release);
  slots[slot].taken.store(false, std::memory_order_release);
}

} // namespace mica::rt
