//===- ProgramCache.cpp - compiled programs, kept -------------------------===//

#include "tools/mica/ProgramCache.h"

#include "backends/runtime/program/ProgramFile.h"
#include "backends/runtime/support/Hash.h"
#include "backends/runtime/support/TemporaryFile.h"
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
  // Two folders at most: what is above is the user's home, or was mistyped.
  std::error_code error = sys::fs::create_directory(folder);
  sys::path::append(folder, "mica");
  if (!error)
    error = sys::fs::create_directory(folder);
  if (error)
    return createStringError(Twine(folder) + ": cannot be made (" + error.message() +
                             "), set XDG_CACHE_HOME to a folder that exists");
  uint64_t bound = uint64_t(16) << 30;
  if (const char *bytes = std::getenv("MICA_CACHE_BYTES");
      bytes && StringRef(bytes).getAsInteger(10, bound))
    return createStringError("MICA_CACHE_BYTES is no number of bytes: \"" + Twine(bytes) +
                             "\", set it to one");
  return ProgramCache(folder.str().str(), bound);
}

constexpr StringLiteral lockEnding = ".lock";

/// The program that the file of this path was to become; empty: it is no temporary file.
static std::string targetOf(StringRef path) {
  StringRef target = program::targetOfTemporary(sys::path::filename(path));
  return target.empty() ? "" : (sys::path::parent_path(path) + "/" + target).str();
}

/// Whether `name` is still the file behind `descriptor`: a lock file may have been removed between
/// its opening and its locking, and a second one would let two compilers in.
static bool isStill(const std::string &name, int descriptor) {
  struct stat named, opened;
  return ::stat(name.c_str(), &named) == 0 && ::fstat(descriptor, &opened) == 0 &&
         named.st_ino == opened.st_ino && named.st_dev == opened.st_dev;
}

/// The lock file of the program `path`, locked until its descriptor is closed; negative with a
/// reason in errno where `how`, LOCK_EX with or without LOCK_NB, does not succeed.
static int tryLock(const std::string &path, int how) {
  std::string name = path + lockEnding.str();
  while (true) {
    int file = ::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0)
      return file;
    int status;
    while ((status = ::flock(file, how)) < 0 && errno == EINTR)
      continue;
    if (status == 0 && isStill(name, file))
      return file;
    int reason = errno;
    ::close(file);
    errno = reason;
    if (status < 0)
      return status;
  }
}

/// Waits for the lock of `path`.
static Expected<int> lock(const std::string &path) {
  int file = tryLock(path, LOCK_EX);
  if (file >= 0)
    return file;
  return createStringError(path + lockEnding.str() + ": cannot be locked (" + std::strerror(errno) +
                           "), set XDG_CACHE_HOME to another folder");
}

/// The caller has the lock of `program`.
static void removeTemporariesOf(StringRef program) {
  std::vector<std::string> found;
  std::error_code error;
  for (sys::fs::directory_iterator it(sys::path::parent_path(program), error), end;
       it != end && !error; it.increment(error))
    if (targetOf(it->path()) == program)
      found.push_back(it->path());
  for (const std::string &path : found)
    sys::fs::remove(path);
}

Expected<std::string> ProgramCache::get(StringRef key,
                                        function_ref<bool(const std::string &)> isWhole,
                                        function_ref<Error(StringRef)> make) {
  std::string path = folder + "/" + key.str();
  Expected<int> held = lock(path);
  if (!held)
    return held.takeError();
  scope_exit unlock([&] { ::close(*held); });
  removeLeftovers(path);
  bool present = sys::fs::exists(path);
  if (present && !isWhole(path)) {
    sys::fs::remove(path);
    present = false;
  }
  if (!present)
    if (Error error = make(path))
      return std::move(error);
  // Its time of modification says when a program was used.
  ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
  evict(path);
  return path;
}

/// What compilers left behind that did not end by themselves: temporary files, and lock files
/// without a program. Whoever is at work holds the lock of its program; `held` is the one whose
/// lock the caller has.
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
    int file = own ? -1 : tryLock(program, LOCK_EX | LOCK_NB);
    if (!own && file < 0)
      continue;
    removeTemporariesOf(program);
    if (!own && !sys::fs::exists(program))
      sys::fs::remove(program + lockEnding.str());
    if (file >= 0)
      ::close(file);
  }
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
    StringRef name = sys::path::filename(it->path());
    // Temporary files that are still there belong to a compiler at work.
    if (name.ends_with(lockEnding) || !targetOf(name).empty())
      continue;
    all += status->getSize();
    if (it->path() != keep)
      programs.insert({status->getLastModificationTime(), it->path(), status->getSize()});
  }
  for (const Program &program : programs) {
    if (all <= bound)
      break;
    if (!sys::fs::remove(program.path))
      all -= program.bytes;
  }
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
