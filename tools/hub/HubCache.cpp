//===- HubCache.cpp - the cache of huggingface_hub ------------------------===//

#include "tools/hub/HubCache.h"

#include "backends/runtime/support/TemporaryFile.h"
#include "frontend/support/InputError.h"
#include "tools/hub/Listing.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <unistd.h>

using namespace llvm;

namespace mica::hub {

static constexpr StringLiteral kModels = "models--", kUnfinished = ".incomplete";
static constexpr StringLiteral kHint = "set HF_HOME to a folder with free space";

static std::string in(const Twine &folder, const Twine &a, const Twine &b = "") {
  SmallString<256> path;
  sys::path::append(path, folder, a, b);
  return path.str().str();
}

/// The sorted names in a folder; none if it does not exist.
static std::vector<std::string> namesIn(const std::string &folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (sys::fs::directory_iterator it(folder, error, /*follow_symlinks=*/false), end;
       it != end && !error; it.increment(error))
    names.push_back(sys::path::filename(it->path()).str());
  sort(names);
  return names;
}

/// The target of a link; empty if `path` is not a link.
static std::string linkTarget(const std::string &path) {
  std::array<char, 4096> target;
  ssize_t size = ::readlink(path.c_str(), target.data(), target.size());
  return size < 0 ? "" : std::string(target.data(), static_cast<size_t>(size));
}

std::string HubCache::modelFolder(const HubName &name) const {
  return in(folder, kModels + name.owner + "--" + name.name);
}

std::string HubCache::blob(const HubName &name, StringRef hash) const {
  return in(modelFolder(name), "blobs", hash);
}

std::string HubCache::snapshot(const HubName &name, StringRef commit) const {
  return in(modelFolder(name), "snapshots", commit);
}

std::string HubCache::lockFile(const HubName &name, StringRef hash) const {
  return in(in(folder, ".locks"), kModels + name.owner + "--" + name.name, hash + ".lock");
}

std::optional<std::string> HubCache::mainCommit(const HubName &name) const {
  ErrorOr<std::unique_ptr<MemoryBuffer>> file =
      MemoryBuffer::getFile(in(modelFolder(name), "refs", "main"));
  if (!file || !isCommit((*file)->getBuffer().trim()))
    return std::nullopt;
  return (*file)->getBuffer().trim().str();
}

Error HubCache::setMainCommit(const HubName &name, StringRef commit) const {
  std::string path = in(modelFolder(name), "refs", "main");
  if (std::error_code error = sys::fs::create_directories(sys::path::parent_path(path)))
    return inputError(path, "cannot be created (" + error.message() + ")", kHint);
  auto file = rt::TemporaryFile::create(path, {}, kHint);
  if (!file)
    return createStringError(path + ": " + file.error().message);
  if (!(*file)->writeAt(std::as_bytes(std::span(commit.data(), commit.size())), 0) ||
      !(*file)->commit())
    return createStringError(path + ": " + rt::cannotBeWritten(errno, kHint));
  return Error::success();
}

Error HubCache::link(const HubName &name, StringRef commit, StringRef file, StringRef hash) const {
  std::string path = in(snapshot(name, commit), file), target = "../../";
  for (size_t i = 0, depth = file.count('/'); i < depth; ++i)
    target += "../";
  target += ("blobs/" + hash).str();
  if (linkTarget(path) == target)
    return Error::success();
  if (std::error_code error = sys::fs::create_directories(sys::path::parent_path(path)))
    return inputError(path, "cannot be created (" + error.message() + ")", kHint);
  // Created under a temporary name, so that an existing file is replaced atomically.
  std::string fresh = path + ".mica-link";
  ::unlink(fresh.c_str());
  if (::symlink(target.c_str(), fresh.c_str()) == 0 &&
      std::rename(fresh.c_str(), path.c_str()) == 0)
    return Error::success();
  return createStringError(path + ": " + rt::cannotBeWritten(errno, kHint));
}

/// The files present in snapshots/COMMIT in the folder of a model.
static CachedSnapshot readSnapshot(const std::string &model, const std::string &commit) {
  CachedSnapshot snapshot;
  snapshot.commit = commit;
  snapshot.path = in(model, "snapshots", commit);
  StringSet<> counted;
  std::error_code error;
  using Iterator = sys::fs::recursive_directory_iterator;
  for (Iterator it(snapshot.path, error, /*follow_symlinks=*/false), end; it != end && !error;
       it.increment(error)) {
    std::string path = it->path();
    sys::fs::file_status status;
    // A file is not present if its link is dangling.
    if (sys::fs::status(path, status) || status.type() != sys::fs::file_type::regular_file)
      continue;
    std::string blob = sys::path::filename(linkTarget(path)).str();
    if (blob.empty() || !sys::fs::equivalent(path, in(model, "blobs", blob)))
      blob.clear();
    if (blob.empty() || counted.insert(blob).second)
      snapshot.size += status.getSize();
    snapshot.files.push_back({path.substr(snapshot.path.size() + 1), blob, status.getSize()});
    snapshot.lastUse = std::max(
        {snapshot.lastUse, status.getLastAccessedTime(), status.getLastModificationTime()});
  }
  sort(snapshot.files, [](const CachedFile &a, const CachedFile &b) { return a.path < b.path; });
  return snapshot;
}

static std::vector<std::string> pathsOf(const CachedSnapshot &snapshot) {
  std::vector<std::string> paths;
  paths.reserve(snapshot.files.size());
  for (const CachedFile &file : snapshot.files)
    paths.push_back(file.path);
  return paths;
}

std::optional<CachedModel> HubCache::readModel(StringRef folderName) const {
  StringRef rest = folderName;
  if (!rest.consume_front(kModels))
    return std::nullopt;
  auto [owner, name] = rest.split("--");
  Expected<HubName> parsed = parseHubName((owner + "/" + name).str());
  if (!parsed) {
    // A name of another layout, or a repository without owner: not one of Mica's.
    consumeError(parsed.takeError());
    return std::nullopt;
  }
  CachedModel model;
  model.repository = parsed->repository();
  std::string path = modelFolder(*parsed);
  std::optional<std::string> main = mainCommit(*parsed);
  for (const std::string &commit : namesIn(in(path, "snapshots"))) {
    if (!isCommit(commit))
      continue;
    CachedSnapshot snapshot = readSnapshot(path, commit);
    snapshot.isMain = commit == main;
    if (!snapshot.files.empty())
      model.snapshots.push_back(std::move(snapshot));
  }
  for (const std::string &blob : namesIn(in(path, "blobs"))) {
    uint64_t size = 0;
    if (StringRef(blob).ends_with(kUnfinished) &&
        !sys::fs::file_size(in(path, "blobs", blob), size))
      model.unfinished += size;
  }
  return model;
}

std::vector<CachedModel> HubCache::models() const {
  std::vector<CachedModel> models;
  for (const std::string &name : namesIn(folder))
    if (std::optional<CachedModel> model = readModel(name);
        model && (!model->snapshots.empty() || model->unfinished > 0))
      models.push_back(std::move(*model));
  return models;
}

/// Whether one of the files is a tokenizer.
static bool hasTokenizer(ArrayRef<std::string> files) {
  return any_of(files, [](StringRef file) {
    return is_contained({"tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt"}, file) ||
           file.ends_with(".tiktoken") || file.ends_with(".model");
  });
}

/// Whether the shards named by the selection's index are among `paths`.
static bool hasShards(ArrayRef<std::string> paths, const Selection &selection, StringRef folder) {
  Expected<std::vector<std::string>> shards = readShards(selection, folder);
  if (!shards) {
    consumeError(shards.takeError());
    return false;
  }
  return all_of(*shards, [&](const std::string &shard) { return is_contained(paths, shard); });
}

std::optional<std::string> HubCache::find(const HubName &name, bool isOffline) const {
  std::optional<std::string> commit = mainCommit(name);
  if (!commit)
    return std::nullopt;
  CachedSnapshot files = readSnapshot(modelFolder(name), *commit);
  std::vector<std::string> paths = pathsOf(files);
  Expected<Selection> selection = selectFiles(paths, name);
  if (!selection) {
    consumeError(selection.takeError());
    return std::nullopt;
  }
  bool isFolder = selection->model.empty();
  if (!hasShards(paths, *selection, files.path))
    return std::nullopt;
  if (!isOffline && name.selection.empty() && (!isFolder || !hasTokenizer(paths)))
    return std::nullopt;
  return isFolder ? files.path : in(files.path, selection->model);
}

Expected<Removal> HubCache::findRemoval(const HubName &name) const {
  std::optional<CachedModel> model = readModel(sys::path::filename(modelFolder(name)));
  if (!model || (model->snapshots.empty() && model->unfinished == 0))
    return inputError(name.text(), "is not among the pulled models in " + folder,
                      "see `mica list`");
  Removal removal;
  StringSet<> needed, unneeded;
  for (const CachedSnapshot &snapshot : model->snapshots) {
    std::vector<std::string> paths = pathsOf(snapshot);
    if (!name.selection.empty()) {
      Expected<Selection> selection = selectFiles(paths, name);
      if (selection)
        paths = std::move(selection->files);
      else if (consumeError(selection.takeError()); true)
        paths.clear();
    }
    for (const CachedFile &file : snapshot.files) {
      bool goes = is_contained(paths, file.path);
      (goes ? unneeded : needed).insert(file.blob);
      if (!goes)
        continue;
      removal.files.push_back(in(snapshot.path, file.path));
      removal.size += file.blob.empty() ? file.size : 0;
    }
  }
  if (removal.files.empty() && !name.selection.empty())
    return inputError(name.text(), "is not among the pulled files in " + modelFolder(name),
                      "see `mica list`");
  removal.isWhole = needed.empty();
  for (const std::string &blob : namesIn(in(modelFolder(name), "blobs"))) {
    bool goes = removal.isWhole || (unneeded.contains(blob) && !needed.contains(blob));
    uint64_t size = 0;
    if (!goes || sys::fs::file_size(this->blob(name, blob), size))
      continue;
    removal.blobs.push_back(this->blob(name, blob));
    removal.size += size;
  }
  return removal;
}

/// Removes empty folders in `folder`, including itself.
static void removeEmptyFolders(const std::string &folder) {
  for (const std::string &name : namesIn(folder))
    if (std::string path = in(folder, name);
        linkTarget(path).empty() && sys::fs::is_directory(path))
      removeEmptyFolders(path);
  ::rmdir(folder.c_str());
}

Error HubCache::remove(const HubName &name, const Removal &removal) const {
  std::vector<std::string> paths = removal.files;
  append_range(paths, removal.blobs);
  std::string model = modelFolder(name);
  for (const std::string &path : paths)
    // No test: root, as which tests may run, can remove everything.
    if (std::error_code error = sys::fs::remove(path))
      return inputError(path, "cannot be removed (" + error.message() + ")",
                        "check its permissions");
  // Includes refs and dangling links.
  if (removal.isWhole)
    // No test: as above.
    if (std::error_code error = sys::fs::remove_directories(model, /*IgnoreErrors=*/false))
      return inputError(model, "cannot be removed (" + error.message() + ")",
                        "check its permissions");
  if (!removal.isWhole)
    removeEmptyFolders(in(model, "snapshots"));
  return Error::success();
}

} // namespace mica::hub
