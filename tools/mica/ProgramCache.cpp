//===- ProgramCache.cpp - the cache of compiled programs ------------------===//

#include "tools/mica/ProgramCache.h"

#include "backends/runtime/program/ProgramFile.h"
#include "backends/runtime/support/Hash.h"
#include "backends/runtime/support/TemporaryFile.h"
#include "frontend/support/MappedFile.h"
#include "tools/mica/ModelFiles.h"
#include "tools/support/FileLock.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <cerrno>
#include <cstring>
#include <optional>
#include <set>

using namespace llvm;

namespace mica::tool {

/// $XDG_CACHE_HOME or ~/.cache.
static Expected<std::string> cacheHome() {
  SmallString<128> folder;
  if (const char *base = std::getenv("XDG_CACHE_HOME"); base && *base == '/')
    return base;
  // No test: without HOME, the user database names one.
  if (!sys::path::home_directory(folder))
    return createStringError("neither XDG_CACHE_HOME nor HOME is set; set one of them");
  sys::path::append(folder, ".cache");
  return folder.str().str();
}

Expected<ProgramCache> ProgramCache::locate() {
  Expected<std::string> home = cacheHome();
  if (!home)
    return home.takeError();
  uint64_t bound = uint64_t(16) << 30;
  if (const char *bytes = std::getenv("MICA_CACHE_BYTES");
      bytes && StringRef(bytes).getAsInteger(10, bound))
    return createStringError("MICA_CACHE_BYTES is not a number of bytes: \"" + Twine(bytes) +
                             "\"; set it to one");
  return ProgramCache(*home + "/mica", bound);
}

Expected<ProgramCache> ProgramCache::open() {
  Expected<ProgramCache> cache = locate();
  if (!cache)
    return cache;
  // Creates at most two folders: the parent is the user's home, or was mistyped.
  std::error_code error = sys::fs::create_directory(sys::path::parent_path(cache->folder));
  if (!error)
    error = sys::fs::create_directory(cache->folder);
  if (error)
    return createStringError(cache->folder + ": cannot be created (" + error.message() +
                             "); set XDG_CACHE_HOME to a folder that exists");
  return cache;
}

constexpr StringLiteral lockEnding = ".lock";

/// The program for which the temporary file `path` was created; empty if it is not a temporary
/// file.
static std::string targetOf(StringRef path) {
  StringRef target = rt::targetOfTemporary(sys::path::filename(path));
  return target.empty() ? "" : (sys::path::parent_path(path) + "/" + target).str();
}

static std::string lockFileOf(StringRef program) { return (program + lockEnding).str(); }

/// The caller must hold the lock of `program`.
static void removeTemporariesOf(StringRef program) {
  std::vector<std::string> found;
  std::error_code error;
  for (sys::fs::directory_iterator it(sys::path::parent_path(program), error), end;
       it != end && !error; it.increment(error))
    if (targetOf(it->path()) == program)
      found.push_back(it->path());
  for (const std::string &path : found)
    (void)sys::fs::remove(path);
}

Expected<std::string> ProgramCache::get(StringRef key,
                                        function_ref<bool(const std::string &)> isWhole,
                                        function_ref<Error(StringRef)> make) {
  std::string path = folder + "/" + key.str();
  std::string lockFile = lockFileOf(path);
  std::optional<FileLock> held = FileLock::take(lockFile, FileLock::Wait::Yes);
  // No test: a file in a folder that can be written can be locked.
  if (!held)
    return createStringError(lockFile + ": cannot be locked (" + std::strerror(errno) +
                             "); set XDG_CACHE_HOME to another folder");
  removeLeftovers(path);
  bool present = sys::fs::exists(path);
  if (present && !isWhole(path)) {
    (void)sys::fs::remove(path);
    present = false;
  }
  if (!present)
    if (Error error = make(path))
      return std::move(error);
  rt::markUsed(path);
  rt::removeLeastRecentlyUsed(to_vector_of<rt::CachedFile>(programs()), bound, path);
  return path;
}

/// Removes files left by killed compilers: temporary files, and lock files without a program. A
/// running compiler holds the lock of its program; the caller must hold the lock of `held`.
void ProgramCache::removeLeftovers(StringRef held) const {
  std::set<std::string> programs;
  std::error_code error;
  for (sys::fs::directory_iterator it(folder, error), end; it != end && !error;
       it.increment(error)) {
    StringRef path = it->path();
    if (std::string program = targetOf(path); !program.empty())
      programs.insert(std::move(program));
    else if (path.consume_back(lockEnding) && !sys::fs::exists(path))
      programs.insert(path.str());
  }
  for (const std::string &program : programs) {
    bool own = program == held;
    std::optional<FileLock> lock;
    if (!own)
      lock = FileLock::take(lockFileOf(program), FileLock::Wait::No);
    if (!own && !lock)
      continue;
    removeTemporariesOf(program);
    if (!own && !sys::fs::exists(program))
      (void)sys::fs::remove(lockFileOf(program));
  }
}

std::vector<CachedProgram> ProgramCache::programs() const {
  std::vector<CachedProgram> programs;
  for (rt::CachedFile &file : rt::filesByLastUse(folder)) {
    std::string name = sys::path::filename(file.path).str();
    // Remaining temporary files belong to running compilers.
    if (!StringRef(name).ends_with(lockEnding) && targetOf(name).empty())
      programs.push_back({std::move(file), std::move(name)});
  }
  return programs;
}

Error ProgramCache::remove(const CachedProgram &program) const {
  std::optional<FileLock> lock = FileLock::take(lockFileOf(program.path), FileLock::Wait::No);
  if (!lock)
    return createStringError(program.path + ": is in use by `mica run` (" + std::strerror(errno) +
                             "); try again later");
  // No test: root, as which tests may run, can remove everything.
  if (std::error_code error = sys::fs::remove(program.path))
    return createStringError(program.path + ": cannot be removed (" + error.message() +
                             "); check its permissions");
  (void)sys::fs::remove(lockFileOf(program.path));
  return Error::success();
}

bool isWholeProgram(const std::string &path) {
  rt::Result<program::ProgramFile> file = program::ProgramFile::open(path);
  if (!file)
    return false;
  for (const program::Section &section : file->layout().sections)
    if (section.kind != program::SectionKind::Weights &&
        !program::verifySection(file->source(), section))
      return false;
  return true;
}

static Error hashFile(rt::Hasher &hasher, StringRef path) {
  StringRef name = sys::path::filename(path);
  auto add = [&](const void *data, size_t size) {
    hasher.update({static_cast<const std::byte *>(data), size});
  };
  add(name.data(), name.size());
  Expected<MappedFile> file = MappedFile::open(path);
  if (!file)
    return file.takeError();
  // In pieces, so that a large file is not kept in memory.
  constexpr size_t piece = 64 << 20;
  ArrayRef<uint8_t> bytes = file->bytes();
  uint64_t size = bytes.size();
  add(&size, sizeof size);
  for (; !bytes.empty(); bytes = bytes.drop_front(std::min(piece, bytes.size()))) {
    ArrayRef<uint8_t> front = bytes.take_front(piece);
    add(front.data(), front.size());
    file->release(front);
  }
  return Error::success();
}

Expected<std::string> cacheKey(StringRef model, StringRef options, ArrayRef<std::string> makers) {
  rt::Hasher hasher;
  hasher.update(std::as_bytes(std::span(options.data(), options.size())));
  for (const std::string &maker : makers)
    if (Error error = hashFile(hasher, maker))
      return std::move(error);
  for (const std::string &file : modelFiles(model))
    if (Error error = hashFile(hasher, file))
      return std::move(error);
  return utohexstr(hasher.digest(), /*LowerCase=*/true, /*Width=*/16);
}

} // namespace mica::tool
