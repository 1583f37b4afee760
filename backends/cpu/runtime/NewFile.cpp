#include "backends/cpu/runtime/NewFile.h"

#include <cerrno>
#include <cstring>
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
  file->file = program::TemporaryFile::create(file->path);
  if (!file->file)
    return file->failed();
  return file;
}

Status NewFile::writeAt(const void *data, size_t size, uint64_t offset) {
  bool written = file->writeAt({static_cast<const std::byte *>(data), size}, offset);
  return written ? Status() : failed();
}

Status NewFile::readAt(void *data, size_t size, uint64_t offset) const {
  if (pread(file->descriptor(), data, size, static_cast<off_t>(offset)) !=
      static_cast<ssize_t>(size))
    return failed();
  return {};
}

Status NewFile::resize(uint64_t size) {
  if (ftruncate(file->descriptor(), static_cast<off_t>(size)) != 0)
    return failed();
  return {};
}

Status NewFile::commit() { return file->close() && file->rename() ? Status() : failed(); }

} // namespace mica::rt
