#include "backends/runtime/support/NewFile.h"

#include <cerrno>
#include <unistd.h>

namespace mica::rt {

static bool beginsWith(const FileSource &file, std::string_view opening) {
  std::string begin(opening.size(), '\0');
  return file.size() >= begin.size() && file.readAt(0, std::as_writable_bytes(std::span(begin))) &&
         begin == opening;
}

Error NewFile::failed() const { return Error{path + ": " + cannotBeWritten(errno, another)}; }

Result<std::unique_ptr<NewFile>> NewFile::create(std::string path, const FileKind &kind) {
  std::string another(kind.hint);
  if (another.empty())
    another = "choose another file for " + std::string(kind.content);
  std::unique_ptr<NewFile> file(new NewFile(std::move(path), std::move(another)));
  auto isOfKind = [&](const FileSource &old) { return beginsWith(old, kind.opening); };
  auto created = TemporaryFile::create(file->path, {kind.format, isOfKind}, file->another);
  if (!created)
    return Error{file->path + ": " + created.error().message};
  file->file = *std::move(created);
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

Status NewFile::commit() { return file->commit() ? Status() : failed(); }

} // namespace mica::rt
