#include "backends/cpu/runtime/NewFile.h"
#include "backends/cpu/program/SignalCleanup.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace mica::rt {

Error NewFile::failed() const {
  return Error{"cannot write " + what + " to '" + path + "': " + std::strerror(errno) +
               ", choose another file"};
}

Result<std::unique_ptr<NewFile>> NewFile::create(std::string path, std::string what) {
  std::unique_ptr<NewFile> file(new NewFile(std::move(path), std::move(what)));
  struct stat info;
  if (stat(file->path.c_str(), &info) == 0 && !S_ISREG(info.st_mode))
    return Error{"cannot write " + file->what + " to '" + file->path +
                 "': not a regular file, choose another file"};
  std::string temporary = file->path + ".tmp-" + std::to_string(getpid());
  unlink(temporary.c_str());
  file->fd = open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file->fd < 0)
    return file->failed();
  file->temporary = std::move(temporary);
  file->cleanupSlot = program::protectTemporary(file->temporary);
  return file;
}

NewFile::~NewFile() {
  if (fd >= 0)
    close(fd);
  if (!temporary.empty())
    unlink(temporary.c_str());
  program::forgetTemporary(cleanupSlot);
}

Status NewFile::writeAt(const void *data, size_t size, uint64_t offset) {
  const char *bytes = static_cast<const char *>(data);
  while (size > 0) {
    ssize_t written = pwrite(fd, bytes, size, static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      return failed();
    bytes += written;
    size -= static_cast<size_t>(written);
    offset += static_cast<uint64_t>(written);
  }
  return {};
}

Status NewFile::readAt(void *data, size_t size, uint64_t offset) const {
  if (pread(fd, data, size, static_cast<off_t>(offset)) != static_cast<ssize_t>(size))
    return failed();
  return {};
}

Status NewFile::resize(uint64_t size) {
  if (ftruncate(fd, static_cast<off_t>(size)) != 0)
    return failed();
  return {};
}

Status NewFile::commit() {
  if (close(std::exchange(fd, -1)) != 0 || rename(temporary.c_str(), path.c_str()) != 0)
    return failed();
  temporary.clear();
  return {};
}

} // namespace mica::rt
