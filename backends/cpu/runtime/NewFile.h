// A file that appears under its name only when it is complete.
#pragma once

#include "backends/cpu/runtime/Result.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace mica::rt {

/// Written beside its final name and renamed by `commit`; otherwise nothing stays behind.
class NewFile {
public:
  /// `what` is named in errors: "the logits".
  static Result<std::unique_ptr<NewFile>> create(std::string path, std::string what);
  ~NewFile();
  NewFile(const NewFile &) = delete;
  NewFile &operator=(const NewFile &) = delete;

  Status writeAt(const void *data, size_t size, uint64_t offset);
  Status readAt(void *data, size_t size, uint64_t offset) const;
  /// Cuts or extends the file to `size` bytes.
  Status resize(uint64_t size);
  Status commit();

private:
  NewFile(std::string path, std::string what) : path(std::move(path)), what(std::move(what)) {}
  Error failed() const;

  std::string path, what, temporary;
  int fd = -1;
  int cleanupSlot = -1;
};

} // namespace mica::rt
