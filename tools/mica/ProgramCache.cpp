//===- ProgramCache.cpp - compiled programs, kept -------------------------===//

#include "tools/mica/ProgramCache.h"

#include "backends/cpu/program/Hash.h"
#include "frontend/support/MappedFile.h"
#include "tools/mica/ModelFiles.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <set>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace llvm;

namespace mica::tool {

Expected<ProgramCache> ProgramCache::open() {
  SmallString<128> folder;
  if (const char *base = std::getenv("XDG_CACHE_HOME"); base && *base == '/')
    folder = base;
  else if (!sys::path::home_directory(folder))
    return createStringError("neither XDG_CACHE_HOME nor HOME is set, set one of them");
  else
    sys::path::append(folder, ".cache");
  sys::path::append(folder, "mica");
  if (std::error_code error = sys::fs::create_directories(folder))
    return createStringError(Twine(folder) + ": cannot be made (" + error.message() +
                             "), set XDG_CACHE_HOME");
  uint64_t bound = uint64_t(16) << 30;
  if (const char *bytes = std::getenv("MICA_CACHE_BYTES");
      bytes && StringRef(bytes).getAsInteger(10, bound))
    return createStringError("MICA_CACHE_BYTES is no number of bytes: \"" + Twine(bytes) + "\"");
  return ProgramCache(folder.str().str(), bound);
}

/// Waits for the lock file of `path`; the lock ends with the descriptor.
static Expected<int> lock(const std::string &path) {
  std::string name = path + ".lock";
  int file = ::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  int status = file < 0 ? -1 : 0;
  while (status == 0 && (status = ::flock(file, LOCK_EX)) < 0 && errno == EINTR)
    status = 0;
  if (status == 0)
    return file;
  std::string reason = std::strerror(errno);
  if (file >= 0)
    ::close(file);
  return createStringError(name + ": cannot be locked (" + reason + ")");
}

Expected<std::string> ProgramCache::get(StringRef key, function_ref<Error(StringRef)> make) {
  std::string path = folder + "/" + key.str();
  Expected<int> held = lock(path);
  if (!held)
    return held.takeError();
  scope_exit unlock([&] { ::close(*held); });
  if (!sys::fs::exists(path))
    if (Error error = make(path))
      return std::move(error);
  // Its time of modification says when a program was used.
  ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
  evict(path);
  return path;
}

void ProgramCache::evict(StringRef keep) const {
  struct Program {
    sys::TimePoint<> used;
    std::string path;
    uint64_t bytes;
    bool operator<(const Program &other) const { return used < other.used; }
  };
  std::set<Program> programs;
  uint64_t all = 0;
  std::error_code error;
  for (sys::fs::directory_iterator it(folder, error), end; it != end && !error;
       it.increment(error)) {
    ErrorOr<sys::fs::basic_file_status> status = it->status();
    if (!status || status->type() != sys::fs::file_type::regular_file)
      continue;
    all += status->getSize();
    StringRef name = sys::path::filename(it->path());
    // Temporary files belong to a compiler at work; lock files are empty, and removing one would
    // let two compilers in.
    if (it->path() != keep && !name.contains(".lock") && !name.contains(".tmp"))
      programs.insert({status->getLastModificationTime(), it->path(), status->getSize()});
  }
  for (const Program &program : programs) {
    if (all <= bound)
      break;
    if (!sys::fs::remove(program.path))
      all -= program.bytes;
  }
}

static Error hashFile(program::Hasher &hasher, StringRef path) {
  StringRef name = sys::path::filename(path);
  auto add = [&](const void *data, size_t size) {
    hasher.update({static_cast<const std::byte *>(data), size});
  };
  add(name.data(), name.size());
  Expected<MappedFile> file = MappedFile::open(path);
  if (!file)
    return file.takeError();
  // In pieces, so that a large file does not stay in memory.
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
  program::Hasher hasher;
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
