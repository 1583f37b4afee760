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
  /// Rejects missing, unreadable and empty files and other than regular files. Errors name the
  /// path.
  static llvm::Expected<MappedFile> open(llvm::StringRef path);
  /// The same for a file given by a command line option.
  static llvm::Expected<MappedFile> openNamed(llvm::StringRef path);

  MappedFile(MappedFile &&other) noexcept;
  MappedFile &operator=(MappedFile &&other) noexcept;
  ~MappedFile();

  llvm::StringRef path() const { return name; }
  llvm::ArrayRef<uint8_t> bytes() const { return {data, size}; }

  /// Drops the pages that contain `part`, a part of bytes(). The next access reads them again.
  void release(llvm::ArrayRef<uint8_t> part) const;

private:
  static llvm::Expected<MappedFile> open(llvm::StringRef path, llvm::StringRef directoryHint);
  MappedFile(std::string name, const uint8_t *data, size_t size)
      : name(std::move(name)), data(data), size(size) {}

  std::string name;
  const uint8_t *data = nullptr;
  size_t size = 0;
};

} // namespace mica

#endif // MICA_FRONTEND_SUPPORT_MAPPEDFILE_H
