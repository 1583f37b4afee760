#include "backends/runtime/support/ReadErrors.h"
#include "backends/runtime/support/SignalCleanup.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <sys/mman.h>
#include <unistd.h>

namespace mica::rt {

namespace {
// For the signal handler.
std::atomic<uintptr_t> guardedBegin, guardedEnd;
std::atomic<bool> guardFailed;
static_assert(std::atomic<uintptr_t>::is_always_lock_free &&
              std::atomic<bool>::is_always_lock_free);

/// Replaces the page at `address` by one of zeros. mmap is a plain system call, which a handler may
/// make.
bool replacePage(uintptr_t address) {
  constexpr uintptr_t pageSize = 4096;
  int reason = errno;
  void *page = reinterpret_cast<void *>(address & ~(pageSize - 1));
  bool replaced =
      mmap(page, pageSize, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
  errno = reason;
  return replaced;
}

void onBusError(int, siginfo_t *info, void *) {
  auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  if (address >= guardedBegin && address < guardedEnd && replacePage(address)) {
    guardFailed = true;
    return;
  }
  for (std::string_view part :
       {std::string_view("mica: error: "), readErrorMessage, std::string_view("\n")}) {
    [[maybe_unused]] ssize_t written = write(STDERR_FILENO, part.data(), part.size());
  }
  removeTemporaries();
  _exit(1);
}
} // namespace

void handleReadErrors() {
  struct sigaction action = {};
  action.sa_sigaction = onBusError;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGBUS, &action, nullptr);
}

ReadErrorGuard::ReadErrorGuard(std::span<const std::byte> bytes) {
  guardFailed = false;
  guardedBegin = reinterpret_cast<uintptr_t>(bytes.data());
  guardedEnd = guardedBegin + bytes.size();
}

ReadErrorGuard::~ReadErrorGuard() { guardedEnd = 0; }

bool ReadErrorGuard::failed() const { return guardFailed; }

} // namespace mica::rt
