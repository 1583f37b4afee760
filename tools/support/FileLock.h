//===- FileLock.h - one process at a time -----------------------*- C++ -*-===//
#ifndef MICA_TOOLS_SUPPORT_FILELOCK_H
#define MICA_TOOLS_SUPPORT_FILELOCK_H

#include <optional>
#include <string>
#include <utility>

namespace mica::tool {

/// An exclusive flock on a file that is made for it, held until destroyed or the process ends. The
/// file stays; the holder of the lock may remove it.
class FileLock {
public:
  enum class Wait { Yes, No };
  /// Nothing, with the reason in errno, where the file cannot be made or, without waiting, where
  /// another holds it (EWOULDBLOCK).
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
