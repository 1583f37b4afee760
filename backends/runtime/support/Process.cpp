#include "backends/runtime/support/Process.h"
#include "backends/runtime/support/SignalCleanup.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <unistd.h>

namespace mica::rt {

/// Without memory, it cannot be composed any more.
static char outOfMemoryMessage[512] =
    "mica: error: out of memory; free some or raise the limit (ulimit -v)\n";

void nameForOutOfMemory(const std::string &process) {
  std::snprintf(outOfMemoryMessage, sizeof outOfMemoryMessage,
                "mica: error: %s: out of memory; free some or raise the limit (ulimit -v)\n",
                process.c_str());
}

void exitOutOfMemory() {
  // Threads may run out of memory at the same time: one reports it, the others wait for the end.
  static std::atomic_flag speaks;
  while (speaks.test_and_set())
    pause();
  [[maybe_unused]] ssize_t written =
      write(STDERR_FILENO, outOfMemoryMessage, std::strlen(outOfMemoryMessage));
  removeTemporaries();
  _exit(1);
}

void prepareProcess() {
  for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; ++stream)
    // open returns the lowest free descriptor, and all lower ones are open. A descriptor with
    // O_PATH can be neither read nor written.
    if (fcntl(stream, F_GETFD) < 0 && errno == EBADF && open("/", O_PATH) < 0)
      _exit(1);
  std::signal(SIGXFSZ, SIG_IGN);
  std::set_new_handler(exitOutOfMemory);
}

void throwOutOfMemory() { std::set_new_handler(nullptr); }

} // namespace mica::rt
