#include "backends/runtime/ranks/ThreadStates.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <sys/syscall.h>

namespace mica::rt {

/// The beginning of the file `syscall` during pread64.
static constexpr std::string_view readsFile = "17 ";
static_assert(SYS_pread64 == 17);

bool isThreadBusy(std::string_view stat, std::string_view syscall) {
  // NUMBER (NAME) STATE ...; names may contain parentheses.
  size_t name = stat.rfind(") ");
  if (name == std::string_view::npos || name + 2 >= stat.size())
    return true;
  switch (stat[name + 2]) {
  case 'T': // stopped by a signal
  case 't': // stopped by a debugger
    return false;
  case 'S':
    // Asleep, but not in a system call: in a page fault, which waits for a file. So does pread64.
    return syscall.empty() || syscall.starts_with("-1") || syscall.starts_with(readsFile);
  default:
    return true;
  }
}

static std::string readFile(const std::filesystem::path &path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

bool isProcessBusy(int64_t except) {
  std::error_code failed;
  std::filesystem::directory_iterator threads("/proc/self/task", failed), end;
  if (failed)
    return true;
  for (; threads != end; threads.increment(failed)) {
    if (failed)
      return true;
    const std::filesystem::path &folder = threads->path();
    if (folder.filename() != std::to_string(except) &&
        isThreadBusy(readFile(folder / "stat"), readFile(folder / "syscall")))
      return true;
  }
  return false;
}

} // namespace mica::rt
