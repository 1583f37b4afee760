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

/// A file of a snapshot: a link to a blob, or a file where a tool could not make links.
struct CachedFile {
  std::string path;  ///< in the snapshot
  std::string blob;  ///< the name among the blobs; empty: no link to one
  uint64_t size = 0; ///< bytes
};

struct CachedSnapshot {
  std::string commit;
  std::string path; ///< its folder
  bool isMain = false;
  std::vector<CachedFile> files;  ///< sorted by path
  uint64_t size = 0;              ///< bytes; a blob counts once
  llvm::sys::TimePoint<> lastUse; ///< when one of its blobs was read or written last
};

struct CachedModel {
  std::string repository; ///< "OWNER/NAME"
  std::vector<CachedSnapshot> snapshots;
  uint64_t unfinished = 0; ///< bytes of blobs whose download was interrupted
};

/// What `HubCache::remove` removes.
struct Removal {
  std::vector<std::string> files; ///< of snapshots, whole paths
  std::vector<std::string> blobs; ///< whole paths: no other file needs them
  uint64_t size = 0;              ///< bytes of both
  bool isWhole = false;           ///< nothing of the model is left
};

/// A folder that holds, for each repository, `models--OWNER--NAME` with `blobs/HASH`,
/// `snapshots/COMMIT/PATH`, which are links to blobs, and `refs/main`, a commit.
class HubCache {
public:
  explicit HubCache(std::string folder) : folder(std::move(folder)) {}

  const std::string &path() const { return folder; }
  std::string modelFolder(const HubName &name) const;
  std::string blob(const HubName &name, llvm::StringRef hash) const;
  std::string snapshot(const HubName &name, llvm::StringRef commit) const;
  /// huggingface_hub locks it while it writes the blob of that hash; Mica, for a whole pull, the
  /// one of "mica".
  std::string lockFile(const HubName &name, llvm::StringRef hash) const;

  /// The commit of refs/main.
  std::optional<std::string> mainCommit(const HubName &name) const;
  llvm::Error setMainCommit(const HubName &name, llvm::StringRef commit) const;
  /// Makes snapshots/COMMIT/`file` a link to the blob `hash`.
  llvm::Error link(const HubName &name, llvm::StringRef commit, llvm::StringRef file,
                   llvm::StringRef hash) const;

  /// What MODEL is once all of it is present: the folder of the snapshot of refs/main, or a file in
  /// it. Nothing where a file is missing. With `isOffline` a folder without tokenizer suffices, and
  /// so does the only GGUF file here, which need not be the only one of the repository.
  std::optional<std::string> find(const HubName &name, bool isOffline) const;

  /// All models, sorted by name. Empty where the cache is not there.
  std::vector<CachedModel> models() const;

  /// What would be removed for `name`: its selection in all snapshots or, without one, everything.
  /// Fails where nothing of it is in the cache.
  llvm::Expected<Removal> findRemoval(const HubName &name) const;
  /// Removes it, and the folders that become empty. The caller holds the model's lock.
  llvm::Error remove(const HubName &name, const Removal &removal) const;

private:
  std::optional<CachedModel> readModel(llvm::StringRef folderName) const;
  std::string folder;
};

} // namespace mica::hub

#endif // MICA_TOOLS_HUB_HUBCACHE_H
