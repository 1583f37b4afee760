#include "backends/runtime/support/ControlGroups.h"

#include <fstream>

namespace mica::rt {

std::string firstLine(const std::string &path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// The path of this process below `controller` in /proc/self/cgroup; version 2 has the empty
/// controller name.
static std::string cgroupPath(const std::string &root, const std::string &controller) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos || line.compare(second + 1, 1, "/") != 0)
      continue;
    std::string names = "," + line.substr(first + 1, second - first - 1) + ",";
    if (names == "," + controller + "," ||
        (!controller.empty() && names.find("," + controller + ",") != names.npos))
      return line.substr(second + 1);
  }
  return "/";
}

std::vector<std::string> controlGroupFolders(const std::string &root,
                                             const std::string &controller) {
  std::string mounted = root + "/sys/fs/cgroup" + (controller.empty() ? "" : "/" + controller);
  std::vector<std::string> folders;
  for (std::string path = cgroupPath(root, controller);; path.erase(path.rfind('/'))) {
    folders.push_back(mounted + (path == "/" ? "" : path));
    if (path.empty() || path == "/")
      return folders;
  }
}

} // namespace mica::rt
