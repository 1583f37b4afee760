//===- ProbeReader.h - the files that probes write --------------*- C++ -*-===//
#ifndef MICA_TOOLS_VERIFY_PROBEREADER_H
#define MICA_TOOLS_VERIFY_PROBEREADER_H

#include "frontend/support/MappedFile.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

#include <optional>
#include <string>
#include <vector>

namespace mica::tool {

/// Reads the files of backends/runtime/profile/Probes.h, record by record.
class ProbeReader {
public:
  /// `magic` is the beginning of the file, `kind` describes such a file in errors.
  static llvm::Expected<ProbeReader> open(llvm::StringRef path, llvm::StringRef magic,
                                          llvm::StringRef kind);

  /// The header of a record; data follows.
  struct Record {
    llvm::StringRef name;
    int64_t layer, rows, columns;
  };
  /// The next record; nothing at the end of the file. The numbers of a record must be read before
  /// the next one.
  llvm::Expected<std::optional<Record>> next();
  /// Reads `rows` times `columns` numbers. Error: the file ends before.
  template <typename Number>
  llvm::Expected<std::vector<Number>> take(int64_t rows, int64_t columns) {
    std::vector<Number> numbers;
    if (llvm::Error error = take(rows, columns, sizeof(Number), [&](size_t count) {
          numbers.resize(count);
          return numbers.data();
        }))
      return std::move(error);
    return numbers;
  }

private:
  ProbeReader(MappedFile file, llvm::StringRef path, llvm::StringRef kind)
      : file(std::move(file)), path(path), kind(kind) {}
  llvm::Error take(int64_t rows, int64_t columns, uint64_t size,
                   llvm::function_ref<void *(size_t)> allocate);
  llvm::Error broken() const;
  llvm::StringRef rest() const;

  MappedFile file;
  std::string path, kind;
  size_t at = 0;
};

} // namespace mica::tool

#endif // MICA_TOOLS_VERIFY_PROBEREADER_H
