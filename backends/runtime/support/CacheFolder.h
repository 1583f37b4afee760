// Folders of files that can be made again, bounded in size.
#ifndef MICA_BACKENDS_RUNTIME_SUPPORT_CACHEFOLDER_H
#define MICA_BACKENDS_RUNTIME_SUPPORT_CACHEFOLDER_H

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mica::rt {

struct CachedFile {
  std::string path;
  uint64_t bytes = 0;
  std::chrono::system_clock::time_point lastUse; ///< its modification time
};

/// The regular files of a folder, least recently used first. Empty if the folder does not exist.
std::vector<CachedFile> filesByLastUse(const std::string &folder);

/// Makes the file the most recently used one.
void markUsed(const std::string &path);

/// Removes files from the front of `files`, which are sorted by last use, until the others have at
/// most `limit` bytes. `keep` stays.
void removeLeastRecentlyUsed(std::span<const CachedFile> files, uint64_t limit,
                             std::string_view keep = {});

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_SUPPORT_CACHEFOLDER_H
