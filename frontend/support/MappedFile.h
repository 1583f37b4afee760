//===- MappedFile.h - a file as read-only memory ----------------*- C++ -*-===//
#ifndef MICA_FRONTEND_SUPPORT_MAPPEDFILE_H
#define MICA_FRONTEND_SUPPORT_MAPPEDFILE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>

namespace mica {

/// A regular file mapped read-only. Its pages are file-backed: they count as cache, not as memory
/// of the process, and can be dropped again. The file must not shrink while it is mapped.
class MappedFile {
public:
  /// Refuses, naming the path, what is missing, unreadable, empty or not a regular file.
  static llvm::Expected<MappedFile> open(llvm::StringRef path);
  /// The same for a file that an option of a command names.
  static llvm::Expected<MappedFile> openNamed(llvm::StringRef path);

  MappedFile(MappedFile &&other) noexcept;
  MappedFile &operator=(MappedFile &&other) noexcept;
  ~MappedFile();

  llvm::StringRef path() const { return name; }
  llvm::ArrayRef<uint8_t> bytes() const { return {data, size}; }

  /// Drops the pages that hold `part`, a part of bytes(). They are read again if touched again.
  void release(llvm::ArrayRef<uint8_t> part) const;

private:
  static llvm::Expected<MappedFile> open(llvm::StringRef path, llvm::StringRef directoryRemedy);
  MappedFile(std::string name, const uint8_t *data, size_t size)
      : name(std::move(name)), data(data), size(size) {}

  std::string name;
  const uint8_t *data = nullptr;
  size_t size = 0;
};

} // namespace mica

#endif // MICA_FRONTEND_SUPPORT_MAPPEDFILE_H
