#include "frontend/support/MappedFile.h"

#include "frontend/support/InputError.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/MathExtras.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace mica {

static llvm::Error checkRegular(llvm::StringRef path, const struct stat &status,
                                llvm::StringRef directoryHint) {
  if (S_ISDIR(status.st_mode))
    return inputError(path, "is a directory where a file is expected", directoryHint);
  if (!S_ISREG(status.st_mode))
    return inputError(path, "is not a regular file", "replace it with a regular file");
  if (status.st_size == 0)
    return inputError(path, "is empty", hints::fetch);
  return llvm::Error::success();
}

/// The error for `errno`.
static llvm::Error cannotBeRead(llvm::StringRef path) {
  llvm::StringRef hint = errno == EACCES   ? "make it readable"
                         : errno == ENOENT ? "download it or pass another file"
                                           : "check the file and its disk";
  return inputError(path, llvm::Twine("cannot be read (") + std::strerror(errno) + ")", hint);
}

llvm::Expected<MappedFile> MappedFile::open(llvm::StringRef path) {
  return open(path, "replace it with a file");
}

llvm::Expected<MappedFile> MappedFile::openNamed(llvm::StringRef path) {
  return open(path, "pass a file");
}

llvm::Expected<MappedFile> MappedFile::open(llvm::StringRef path, llvm::StringRef directoryHint) {
  std::string name = path.str();
  // O_NONBLOCK: opening a FIFO must not wait for a writer.
  int file = ::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0)
    return cannotBeRead(path);
  auto close = llvm::scope_exit([file] { ::close(file); });
  struct stat status;
  if (::fstat(file, &status) != 0)
    return cannotBeRead(path);
  if (llvm::Error error = checkRegular(path, status, directoryHint))
    return std::move(error);
  size_t size = static_cast<size_t>(status.st_size);
  void *data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  // No test: this requires a file system that does not support mmap.
  if (data == MAP_FAILED)
    return inputError(path, llvm::Twine("cannot be mapped (") + std::strerror(errno) + ")",
                      "copy it to a local disk");
  return MappedFile(std::move(name), static_cast<const uint8_t *>(data), size);
}

MappedFile::MappedFile(MappedFile &&other) noexcept
    : name(std::move(other.name)), data(std::exchange(other.data, nullptr)),
      size(std::exchange(other.size, 0)) {}

MappedFile &MappedFile::operator=(MappedFile &&other) noexcept {
  std::swap(name, other.name);
  std::swap(data, other.data);
  std::swap(size, other.size);
  return *this;
}

MappedFile::~MappedFile() {
  if (data)
    ::munmap(const_cast<uint8_t *>(data), size);
}

void MappedFile::release(llvm::ArrayRef<uint8_t> part) const {
  if (part.empty())
    return;
  uintptr_t page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  uintptr_t begin = llvm::alignDown(reinterpret_cast<uintptr_t>(part.begin()), page);
  uintptr_t end = llvm::alignTo(reinterpret_cast<uintptr_t>(part.end()), page);
  // Only advice: nothing depends on its success.
  ::madvise(reinterpret_cast<void *>(begin), end - begin, MADV_DONTNEED);
}

} // namespace mica
