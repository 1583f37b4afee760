#include "backends/runtime/support/CacheFolder.h"

#include <algorithm>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <tuple>

namespace mica::rt {

std::vector<CachedFile> filesByLastUse(const std::string &folder) {
  std::vector<CachedFile> files;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; it != end && !error;
       it.increment(error)) {
    std::string path = it->path().string();
    struct stat status = {};
    if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode))
      continue;
    auto sinceEpoch = std::chrono::seconds(status.st_mtim.tv_sec) +
                      std::chrono::nanoseconds(status.st_mtim.tv_nsec);
    files.push_back({std::move(path), static_cast<uint64_t>(status.st_size),
                     std::chrono::system_clock::time_point(sinceEpoch)});
  }
  std::sort(files.begin(), files.end(), [](const CachedFile &a, const CachedFile &b) {
    return std::tie(a.lastUse, a.path) < std::tie(b.lastUse, b.path);
  });
  return files;
}

void markUsed(const std::string &path) { ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0); }

void removeLeastRecentlyUsed(std::span<const CachedFile> files, uint64_t limit,
                             std::string_view keep) {
  uint64_t bytes = 0;
  for (const CachedFile &file : files)
    bytes += file.bytes;
  for (const CachedFile &file : files) {
    if (bytes <= limit)
      break;
    std::error_code error;
    // A file that another process has removed is no error.
    if (file.path == keep || (!std::filesystem::remove(file.path, error) && error))
      continue;
    bytes -= file.bytes;
  }
}

} // namespace mica::rt
