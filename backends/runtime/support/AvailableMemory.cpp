#include "backends/runtime/support/AvailableMemory.h"
#include "backends/runtime/support/ControlGroups.h"

#include <algorithm>
#include <fstream>
#include <initializer_list>
#include <limits>
#include <optional>
#include <sstream>
#include <string_view>

namespace mica::rt {

static std::optional<uint64_t> numberIn(const std::string &path) {
  uint64_t number = 0;
  std::istringstream line(firstLine(path));
  return line >> number ? std::optional(number) : std::nullopt; // "max" is no limit
}

/// Assumed if the system does not report its memory.
static constexpr uint64_t kUnknownMemory = uint64_t(1) << 30;

static uint64_t availableOnMachine(const std::string &root) {
  std::ifstream file(root + "/proc/meminfo");
  uint64_t kilobytes = kUnknownMemory / 1024;
  for (std::string word; file >> word;)
    if (word == "MemAvailable:" && file >> kilobytes)
      break;
  return kilobytes * 1024;
}

/// The sum of the values of `keys` in a file of lines "KEY VALUE".
static uint64_t sumIn(const std::string &path, std::initializer_list<std::string_view> keys) {
  std::ifstream file(path);
  uint64_t sum = 0, value = 0;
  for (std::string key; file >> key >> value;)
    if (std::find(keys.begin(), keys.end(), key) != keys.end())
      sum += value;
  return sum;
}

/// The names of files and keys of a version of control groups.
struct GroupFiles {
  const char *controller, *limit, *used;
  std::string_view inactive, active; ///< in memory.stat: contents of files
};

/// The minimum of the remaining memory of the groups that have these files. Contents of files are
/// evicted for allocations, and count as remaining like in MemAvailable.
static uint64_t allowedByGroups(const std::string &root, const GroupFiles &files) {
  uint64_t min = std::numeric_limits<uint64_t>::max();
  for (const std::string &folder : controlGroupFolders(root, files.controller)) {
    std::optional<uint64_t> max = numberIn(folder + "/" + files.limit),
                            taken = numberIn(folder + "/" + files.used);
    if (!max || !taken)
      continue;
    uint64_t ofFiles = sumIn(folder + "/memory.stat", {files.inactive, files.active});
    uint64_t kept = *taken - std::min(*taken, ofFiles);
    min = std::min(min, *max - std::min(*max, kept));
  }
  return min;
}

uint64_t availableMemory(const std::string &root) {
  static constexpr GroupFiles second{"", "memory.max", "memory.current", "inactive_file",
                                     "active_file"},
      first{"memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file",
            "total_active_file"};
  return std::min(
      {availableOnMachine(root), allowedByGroups(root, second), allowedByGroups(root, first)});
}

} // namespace mica::rt
