//===- HubCache.h - the cache of huggingface_hub ----------------*- C++ -*-===//
#ifndef MICA_TOOLS_HUB_HUBCACHE_H
#define MICA_TOOLS_HUB_HUBCACHE_H

#include "tools/hub/HubName.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Chrono.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace mica::hub {

/// A file of a snapshot: a link to a blob, or a file if a tool could not create links.
struct CachedFile {
  std::string path;  ///< in the snapshot
  std::string blob;  ///< name of the blob; empty: not a link to one
  uint64_t size = 0; ///< bytes
};

struct CachedSnapshot {
  std::string commit;
  std::string path; ///< path of the folder
  bool isMain = false;
  std::vector<CachedFile> files;  ///< sorted by path
  uint64_t size = 0;              ///< bytes; each blob counts once
  llvm::sys::TimePoint<> lastUse; ///< last time that one of its blobs was read or written
};

struct CachedModel {
  std::string repository; ///< "OWNER/NAME"
  std::vector<CachedSnapshot> snapshots;
  uint64_t unfinished = 0; ///< bytes of partially downloaded blobs
};

/// What `HubCache::remove` deletes.
struct Removal {
  std::vector<std::string> files; ///< full paths of files in snapshots
  std::vector<std::string> blobs; ///< full paths of blobs that no other file needs
  uint64_t size = 0;              ///< bytes of both
  bool isWhole = false;           ///< nothing of the model remains
};

/// A folder with a folder `models--OWNER--NAME` per repository, which contains `blobs/HASH`,
/// `snapshots/COMMIT/PATH` (links to blobs), and `refs/main` (a commit).
class HubCache {
public:
  explicit HubCache(std::string folder) : folder(std::move(folder)) {}

  const std::string &path() const { return folder; }
  std::string modelFolder(const HubName &name) const;
  std::string blob(const HubName &name, llvm::StringRef hash) const;
  std::string snapshot(const HubName &name, llvm::StringRef commit) const;
  /// huggingface_hub locks this file while it writes the blob with that hash; Mica locks the one of
  /// "mica" during a pull.
  std::string lockFile(const HubName &name, llvm::StringRef hash) const;

  /// The commit in refs/main.
  std::optional<std::string> mainCommit(const HubName &name) const;
  llvm::Error setMainCommit(const HubName &name, llvm::StringRef commit) const;
  /// Links snapshots/COMMIT/`file` to the blob `hash`.
  llvm::Error link(const HubName &name, llvm::StringRef commit, llvm::StringRef file,
                   llvm::StringRef hash) const;

  /// The path of the model if all of its files are present: the snapshot folder of refs/main, or a
  /// file in it. Nothing if a file is missing. With `isOffline`, a folder without tokenizer
  /// suffices, and so does the only GGUF file present, even if the repository has others.
  std::optional<std::string> find(const HubName &name, bool isOffline) const;

  /// All models, sorted by name. Empty if the cache does not exist.
  std::vector<CachedModel> models() const;

  /// The files to remove for `name`: its selection in all snapshots or, without one, everything.
  /// Error: nothing of it is in the cache.
  llvm::Expected<Removal> findRemoval(const HubName &name) const;
  /// Removes the files, and folders that become empty. The caller must hold the model's lock.
  llvm::Error remove(const HubName &name, const Removal &removal) const;

private:
  std::optional<CachedModel> readModel(llvm::StringRef folderName) const;
  std::string folder;
};

} // namespace mica::hub

#endif // MICA_TOOLS_HUB_HUBCACHE_H
