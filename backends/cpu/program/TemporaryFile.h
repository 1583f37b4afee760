// A file that gets its name only when it is complete.
#pragma once

#include "backends/cpu/program/ByteSource.h"
#include "backends/cpu/runtime/Result.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace mica::program {

/// Which existing files may be replaced: a path that was mistyped costs nobody their model.
struct Replaceable {
  std::string_view kind = {}; ///< "Mica program", for the error
  /// Whether a file that is not empty is of that kind. Without it, any regular file is.
  std::function<bool(const FileSource &)> isOfKind = {};
};

/// "cannot be written (REASON), REMEDY", to stand behind the path. REASON and the beginning of
/// REMEDY are those of `error`, an errno; `another` is the remedy that always helps, such as
/// "choose another -o".
std::string cannotBeWritten(int error, std::string_view another);

/// Every file that the tools and programs write goes through this class. It stands beside its
/// target until `commit`. Destroyed before that, or when a signal ends the process (see
/// SignalCleanup.h), it leaves nothing behind; what a killed process has left is removed by the
/// next that writes to the same target.
class TemporaryFile {
public:
  /// Readable and writable. Refuses, in the words of cannotBeWritten, whatever is no regular file
  /// (devices, pipes, folders, symbolic links), files that are not `replaceable`, and a missing
  /// folder.
  static rt::Result<std::unique_ptr<TemporaryFile>>
  create(std::string target, const Replaceable &replaceable, std::string_view another);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile &) = delete;
  TemporaryFile &operator=(const TemporaryFile &) = delete;

  int descriptor() const { return fd; }
  /// False with the reason in errno, as `commit`.
  bool writeAt(std::span<const std::byte> bytes, uint64_t offset);
  /// Closes the file, as some file systems report a full disk only then, and gives it its name.
  bool commit();
  bool isCommitted() const { return temporary.empty(); }

private:
  TemporaryFile(std::string target, std::string temporary);
  bool open();
  bool close();

  std::string target;
  std::string temporary; ///< empty: committed
  int cleanupSlot;
  int fd = -1;
  bool isCreated = false; ///< and not somebody else's
};

} // namespace mica::program
