#include "backends/cpu/program/TemporaryFile.h"
#include "backends/cpu/program/SignalCleanup.h"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace mica::program {

Obstacle obstacleAt(const std::string &target,
                    const std::function<bool(const FileSource &)> &isOurs) {
  struct stat info;
  if (stat(target.c_str(), &info) != 0)
    return Obstacle::None;
  if (!S_ISREG(info.st_mode))
    return S_ISDIR(info.st_mode) ? Obstacle::Directory : Obstacle::NoRegularFile;
  if (info.st_size == 0)
    return Obstacle::None;
  rt::Result<FileSource> file = FileSource::open(target);
  return file && isOurs(*file) ? Obstacle::None : Obstacle::ForeignFile;
}

// Protected before the file is there, so that no moment is left in which a signal would not remove
// it.
TemporaryFile::TemporaryFile(std::string target, std::string temporary)
    : target(std::move(target)), temporary(std::move(temporary)),
      cleanupSlot(protectTemporary(this->temporary)) {}

bool namesDevice(std::string_view path) {
  return (path.starts_with("/dev/") && !path.starts_with("/dev/shm/")) ||
         path.starts_with("/proc/");
}

std::unique_ptr<TemporaryFile> TemporaryFile::create(std::string target) {
  if (namesDevice(target)) {
    errno = ENODEV;
    return nullptr;
  }
  std::string temporary = target + ".tmp-" + std::to_string(getpid());
  // A leftover of a dead process that had our number; a link planted under this name is removed,
  // not followed.
  unlink(temporary.c_str());
  std::unique_ptr<TemporaryFile> file(new TemporaryFile(std::move(target), std::move(temporary)));
  file->fd = open(file->temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file->fd >= 0)
    return file;
  int reason = errno;
  file.reset();
  errno = reason;
  return nullptr;
}

TemporaryFile::~TemporaryFile() {
  close();
  if (!isRenamed())
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

bool TemporaryFile::rename() {
  if (::rename(temporary.c_str(), target.c_str()) != 0)
    return false;
  temporary.clear();
  return true;
}

} // namespace mica::program
