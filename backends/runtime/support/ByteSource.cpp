#include "backends/runtime/support/ByteSource.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace mica::rt {

static Error pastTheEnd(uint64_t offset, size_t size, uint64_t fileSize) {
  return Error{"the file ends too early (" + std::to_string(size) + " bytes wanted at " +
               std::to_string(offset) + " of " + std::to_string(fileSize) +
               "); copy or compile it again"};
}

Status MemorySource::readAt(uint64_t offset, std::span<std::byte> out) const {
  if (offset > bytes.size() || out.size() > bytes.size() - offset)
    return pastTheEnd(offset, out.size(), bytes.size());
  if (!out.empty())
    std::memcpy(out.data(), bytes.data() + offset, out.size());
  return {};
}

Result<FileSource> FileSource::open(const std::string &path) {
  // Without O_NONBLOCK, opening a FIFO would wait for its writer instead of being refused below.
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return Error{std::string("cannot open the program: ") + std::strerror(errno)};
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    const char *what = S_ISDIR(info.st_mode) ? "is a directory" : "is not a regular file";
    close(fd);
    return Error{std::string(what) + "; pass a compiled program"};
  }
  return FileSource(fd, static_cast<uint64_t>(info.st_size));
}

FileSource::FileSource(FileSource &&other) noexcept
    : fd(std::exchange(other.fd, -1)), bytes(other.bytes) {}

FileSource &FileSource::operator=(FileSource &&other) noexcept {
  std::swap(fd, other.fd);
  std::swap(bytes, other.bytes);
  return *this;
}

FileSource::~FileSource() {
  if (fd >= 0)
    close(fd);
}

Status FileSource::readAt(uint64_t offset, std::span<std::byte> out) const {
  if (offset > bytes || out.size() > bytes - offset)
    return pastTheEnd(offset, out.size(), bytes);
  while (!out.empty()) {
    ssize_t got = pread(fd, out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return Error{"cannot read at " + std::to_string(offset) + ": " + std::strerror(errno)};
    if (got == 0) // The file became shorter while it was being read.
      return pastTheEnd(offset, out.size(), bytes);
    offset += static_cast<uint64_t>(got);
    out = out.subspan(static_cast<size_t>(got));
  }
  return {};
}

} // namespace mica::rt
