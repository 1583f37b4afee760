#include "backends/runtime/support/TemporaryFile.h"
#include "backends/runtime/support/SignalCleanup.h"

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace mica::rt {

/// Names of temporary files and folders: `.NAME.mica-PID.tmp`, where NAME is that of the target. It
/// is unlikely that a user chooses such a name.
static constexpr std::string_view mark = ".mica-", ending = ".tmp";

static std::string temporaryName(std::string_view target) {
  return "." + std::string(target).append(mark) + std::to_string(getpid()).append(ending);
}

namespace {
struct TemporaryName {
  std::string_view target; ///< empty: not such a name
  pid_t writer = 0;
};
} // namespace

static TemporaryName parseTemporaryName(std::string_view name) {
  size_t end = name.rfind(mark);
  if (end == name.npos || end < 2 || !name.starts_with(".") || !name.ends_with(ending))
    return {};
  std::string_view number = name.substr(end + mark.size());
  number.remove_suffix(ending.size());
  pid_t pid = 0;
  auto [rest, error] = std::from_chars(number.data(), number.data() + number.size(), pid);
  if (error != std::errc() || rest != number.data() + number.size() || pid <= 0)
    return {};
  return {name.substr(1, end - 1), pid};
}

std::string_view targetOfTemporary(std::string_view name) {
  return parseTemporaryName(name).target;
}

static std::string cannotBeWritten(std::string_view reason, std::string_view hint,
                                   std::string_view another) {
  return std::string("cannot be written (").append(reason) + "); " +
         std::string(hint).append(another);
}

std::string cannotBeWritten(int error, std::string_view another) {
  switch (error) {
  case ENOENT:
    return cannotBeWritten("its folder does not exist", "create it or ", another);
  case ENOSPC:
  case EDQUOT:
    return cannotBeWritten(std::strerror(error), "free space or ", another);
  case EFBIG:
    return cannotBeWritten(std::strerror(error), "raise the limit (ulimit -f) or ", another);
  default:
    return cannotBeWritten(std::strerror(error), "", another);
  }
}

/// The system folder that contains `path`; empty if there is none. A regular file there would hide
/// a device or a kernel interface.
static std::string_view systemFolderOf(std::string_view path) {
  for (std::string_view folder : {"/dev", "/proc", "/sys"})
    if (path.starts_with(folder) && path.substr(folder.size()).starts_with("/") &&
        !path.starts_with("/dev/shm/"))
      return folder;
  return {};
}

Status checkTarget(const std::string &target, const Replaceable &replaceable,
                   std::string_view another) {
  auto refuse = [&](std::string_view reason, std::string_view hint = "") {
    return Error{cannotBeWritten(reason, hint, another)};
  };
  if (target.empty() || target.back() == '/')
    return refuse("it does not name a file");
  if (std::string_view folder = systemFolderOf(target); !folder.empty())
    return refuse(std::string(folder) + " cannot hold regular files");
  struct stat info;
  // Other problems are reported when the temporary file is opened.
  if (lstat(target.c_str(), &info) != 0)
    return {};
  if (S_ISLNK(info.st_mode))
    return refuse("it is a symbolic link, which is not followed", "name the file itself or ");
  if (S_ISDIR(info.st_mode))
    return refuse("it is a directory");
  if (!S_ISREG(info.st_mode))
    return refuse("it is not a regular file");
  if (info.st_size == 0 || !replaceable.isOfKind)
    return {};
  Result<FileSource> file = FileSource::open(target);
  if (file && replaceable.isOfKind(*file))
    return {};
  return refuse("it exists and is not a " + std::string(replaceable.kind), "remove it or ");
}

/// Locks a temporary file until its descriptor is closed, which shows that its writer is alive. On
/// file systems without locks, no leftover is removed.
static bool lock(int fd) { return flock(fd, LOCK_EX | LOCK_NB) == 0; }

/// Removes a folder and the files in it.
static void removeFolder(const std::string &path) {
  if (DIR *entries = opendir(path.c_str())) {
    while (const dirent *entry = readdir(entries))
      unlinkat(dirfd(entries), entry->d_name, 0);
    closedir(entries);
  }
  rmdir(path.c_str());
}

/// Removes the temporary file or folder `path` of process `pid` if that process has ended. If a
/// process of another machine or container has the same number, its lock protects its files.
static void removeIfStale(const std::string &path, pid_t pid) {
  if (pid != getpid() && (kill(pid, 0) == 0 || errno != ESRCH))
    return;
  int fd = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  struct stat info;
  if (fd >= 0 && fstat(fd, &info) == 0 && info.st_uid == geteuid() && lock(fd)) {
    if (S_ISREG(info.st_mode))
      unlink(path.c_str());
    else if (S_ISDIR(info.st_mode))
      removeFolder(path);
  }
  if (fd >= 0)
    ::close(fd);
}

/// Removes temporary files of `target` left by killed processes.
static void removeLeftovers(const std::string &target) {
  size_t slash = target.rfind('/');
  std::string folder = slash == target.npos ? "./" : target.substr(0, slash + 1);
  std::string_view file = std::string_view(target).substr(slash + 1);
  DIR *entries = opendir(folder.c_str());
  if (!entries)
    return;
  while (const dirent *entry = readdir(entries)) {
    std::string_view name = entry->d_name;
    if (TemporaryName temporary = parseTemporaryName(name); temporary.target == file)
      removeIfStale(folder + std::string(name), temporary.writer);
  }
  closedir(entries);
}

// Registered before the file exists, so that a signal at any time removes it.
TemporaryFile::TemporaryFile(std::string target, std::string temporary)
    : target(std::move(target)), temporary(std::move(temporary)),
      cleanupSlot(protectTemporary(this->temporary)) {}

bool TemporaryFile::open() {
  // Removes a link under this name instead of following it.
  struct stat info;
  if (lstat(temporary.c_str(), &info) == 0 && S_ISLNK(info.st_mode))
    unlink(temporary.c_str());
  fd = ::open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  isCreated = fd >= 0;
  if (isCreated)
    lock(fd);
  return isCreated;
}

Result<std::unique_ptr<TemporaryFile>> TemporaryFile::create(std::string target,
                                                             const Replaceable &replaceable,
                                                             std::string_view another) {
  if (Status usable = checkTarget(target, replaceable, another); !usable)
    return usable.error();
  removeLeftovers(target);
  size_t name = target.rfind('/') + 1;
  std::string temporary = target.substr(0, name) + temporaryName(target.substr(name));
  std::unique_ptr<TemporaryFile> file(new TemporaryFile(std::move(target), std::move(temporary)));
  if (file->open())
    return file;
  return Error{cannotBeWritten(errno, another)};
}

TemporaryFile::~TemporaryFile() {
  close();
  if (isCreated && !isCommitted())
    unlink(temporary.c_str());
  forgetTemporary(cleanupSlot);
}

bool TemporaryFile::writeAt(std::span<const std::byte> bytes, uint64_t offset) {
  while (!bytes.empty()) {
    ssize_t written = pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      return false;
    bytes = bytes.subspan(static_cast<size_t>(written));
    offset += static_cast<uint64_t>(written);
  }
  return true;
}

bool TemporaryFile::close() { return fd < 0 || ::close(std::exchange(fd, -1)) == 0; }

bool TemporaryFile::commit() {
  // Closing first releases the lock, but this process is still alive.
  if (!close() || rename(temporary.c_str(), target.c_str()) != 0)
    return false;
  temporary.clear();
  return true;
}

TemporaryFolder::TemporaryFolder(std::string folder)
    : folder(std::move(folder)), cleanupSlot(protectTemporary(this->folder)) {}

Result<std::unique_ptr<TemporaryFolder>> TemporaryFolder::create(const std::string &parent,
                                                                 std::string_view purpose) {
  std::string target = parent + "/" + std::string(purpose);
  removeLeftovers(target);
  std::unique_ptr<TemporaryFolder> made(new TemporaryFolder(parent + "/" + temporaryName(purpose)));
  made->isCreated = mkdir(made->folder.c_str(), 0700) == 0;
  if (made->isCreated)
    made->fd = ::open(made->folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (made->fd < 0)
    return Error{std::strerror(errno)};
  lock(made->fd);
  return made;
}

TemporaryFolder::~TemporaryFolder() {
  if (isCreated)
    removeFolder(folder);
  if (fd >= 0)
    ::close(fd);
  forgetTemporary(cleanupSlot);
}

} // namespace mica::rt
