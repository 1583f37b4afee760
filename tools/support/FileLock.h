//===- FileLock.h - exclusive lock files ------------------------*- C++ -*-===//
#ifndef MICA_TOOLS_SUPPORT_FILELOCK_H
#define MICA_TOOLS_SUPPORT_FILELOCK_H

#include <optional>
#include <string>
#include <utility>

namespace mica::tool {

/// An exclusive flock on a file created for it, held until destruction or the end of the process.
/// The file is not removed; the holder of the lock may do so.
class FileLock {
public:
  enum class Wait { Yes, No };
  /// Nothing, with the reason in errno, if the file cannot be created or, without waiting, if
  /// another process holds the lock (EWOULDBLOCK).
  static std::optional<FileLock> take(const std::string &file, Wait wait);

  FileLock(FileLock &&other) noexcept : descriptor(std::exchange(other.descriptor, -1)) {}
  FileLock &operator=(FileLock &&other) noexcept {
    std::swap(descriptor, other.descriptor);
    return *this;
  }
  ~FileLock();

private:
  explicit FileLock(int descriptor) : descriptor(descriptor) {}
  int descriptor;
};

} // namespace mica::tool

#endif // MICA_TOOLS_SUPPORT_FILELOCK_H
