#include "backends/cpu/runtime/NewFile.h"

#include <cerrno>
#include <cstring>
#include <unistd.h>

namespace mica::rt {

static bool beginsWith(const program::FileSource &file, std::string_view opening) {
  std::string begin(opening.size(), '\0');
  return file.size() >= begin.size() && file.readAt(0, std::as_writable_bytes(std::span(begin))) &&
         begin == opening;
}

Error NewFile::refused(const std::string &why) const {
  return Error{"cannot write " + content + " to '" + path + "': " + why + " choose another file"};
}

Error NewFile::failed() const { return refused(std::string(std::strerror(errno)) + ","); }

Result<std::unique_ptr<NewFile>> NewFile::create(std::string path, const FileKind &kind) {
  std::unique_ptr<NewFile> file(new NewFile(std::move(path), kind.content));
  auto isOurs = [&](const program::FileSource &old) { return beginsWith(old, kind.opening); };
  switch (program::obstacleAt(file->path, isOurs)) {
  case program::Obstacle::None:
    break;
  case program::Obstacle::Directory:
  case program::Obstacle::NoRegularFile:
    return file->refused("not a regular file,");
  case program::Obstacle::ForeignFile:
    return file->refused("it exists and is no " + std::string(kind.format) + ", remove it or");
  }
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
