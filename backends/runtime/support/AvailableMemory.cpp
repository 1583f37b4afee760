#include "backends/runtime/support/AvailableMemory.h"
#include "backends/runtime/support/ControlGroups.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>

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

/// The minimum of the remaining memory of the groups that have the files `limit` and `used`.
static uint64_t allowedByGroups(const std::string &root, const std::string &controller,
                                const std::string &limit, const std::string &used) {
  uint64_t min = std::numeric_limits<uint64_t>::max();
  for (const std::string &folder : controlGroupFolders(root, controller)) {
    std::optional<uint64_t> max = numberIn(folder + "/" + limit),
                            taken = numberIn(folder + "/" + used);
    if (max && taken)
      min = std::min(min, *max - std::min(*max, *taken));
  }
  return min;
}

uint64_t availableMemory(const std::string &root) {
  return std::min(
      {availableOnMachine(root), allowedByGroups(root, "", "memory.max", "memory.current"),
       allowedByGroups(root, "memory", "memory.limit_in_bytes", "memory.usage_in_bytes")});
}

} // namespace mica::rt
