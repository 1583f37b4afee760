// A file that appears under its name only when it is complete.
#ifndef MICA_BACKENDS_RUNTIME_SUPPORT_NEWFILE_H
#define MICA_BACKENDS_RUNTIME_SUPPORT_NEWFILE_H

#include "backends/runtime/support/Result.h"
#include "backends/runtime/support/TemporaryFile.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace mica::rt {

/// The content and format of a file for errors, and its magic bytes.
struct FileKind {
  std::string_view content; ///< "the logits"
  std::string_view format;  ///< ".npy file"
  std::string_view opening;
  /// The hint if it cannot be written; empty: choose another file.
  std::string_view hint = {};
};

/// A temporary file renamed by `commit`. Errors are messages.
class NewFile {
public:
  /// Rejects a path to a file of another kind.
  static Result<std::unique_ptr<NewFile>> create(std::string path, const FileKind &kind);

  Status writeAt(const void *data, size_t size, uint64_t offset);
  Status readAt(void *data, size_t size, uint64_t offset) const;
  /// Truncates or extends the file to `size` bytes.
  Status resize(uint64_t size);
  Status commit();

private:
  NewFile(std::string path, std::string another)
      : path(std::move(path)), another(std::move(another)) {}
  Error failed() const;

  std::string path, another;
  std::unique_ptr<TemporaryFile> file;
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_SUPPORT_NEWFILE_H
