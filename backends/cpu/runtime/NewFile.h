// A file that appears under its name only when it is complete.
#pragma once

#include "backends/cpu/program/TemporaryFile.h"
#include "backends/cpu/runtime/Result.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace mica::rt {

/// A temporary file, renamed by `commit`, that says what it cannot do.
class NewFile {
public:
  /// `what` is named in errors: "the logits".
  static Result<std::unique_ptr<NewFile>> create(std::string path, std::string what);

  Status writeAt(const void *data, size_t size, uint64_t offset);
  Status readAt(void *data, size_t size, uint64_t offset) const;
  /// Cuts or extends the file to `size` bytes.
  Status resize(uint64_t size);
  Status commit();

private:
  NewFile(std::string path, std::string what) : path(std::move(path)), what(std::move(what)) {}
  Error failed() const;

  std::string path, what;
  std::unique_ptr<program::TemporaryFile> file;
};

} // namespace mica::rt
