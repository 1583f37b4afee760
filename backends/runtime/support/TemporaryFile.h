// A file that appears under its name only when it is complete.
#ifndef MICA_BACKENDS_RUNTIME_SUPPORT_TEMPORARYFILE_H
#define MICA_BACKENDS_RUNTIME_SUPPORT_TEMPORARYFILE_H

#include "backends/runtime/support/ByteSource.h"
#include "backends/runtime/support/Result.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace mica::rt {

/// Which existing files may be replaced: a mistyped path must not overwrite a model.
struct Replaceable {
  std::string_view kind = {}; ///< "Mica program", for the error
  /// Whether a nonempty file is of that kind. If null, any regular file is.
  std::function<bool(const FileSource &)> isOfKind = {};
};

/// "cannot be written (REASON); HINT", to be appended to the path. REASON and the beginning of HINT
/// depend on `error`, an errno; `another` is the general hint, such as "choose another -o".
std::string cannotBeWritten(int error, std::string_view another);

/// Whether `target` may be written: rejects, with the message of cannotBeWritten, anything
/// but regular files (devices, pipes, folders, symbolic links) and files that are not
/// `replaceable`.
Status checkTarget(const std::string &target, const Replaceable &replaceable,
                   std::string_view another);

/// The target of the temporary file or folder `name`; empty if it is not such a name.
std::string_view targetOfTemporary(std::string_view name);

/// All files that tools and programs write use this class, except in the cache of tools/hub, where
/// an interrupted download stays and is resumed, and names are symbolic links. The file is in the
/// folder of its target until `commit`. It is removed if it is destroyed before that, or if a
/// signal ends the process (see SignalCleanup.h); a file left by a killed process is removed by the
/// next process that writes to the same target.
class TemporaryFile {
public:
  /// Readable and writable. Rejects what checkTarget rejects, and a missing folder.
  static Result<std::unique_ptr<TemporaryFile>>
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
  bool isCreated = false; ///< by this process
};

/// A folder for temporary files. It is removed with its files when destroyed, and on a signal if
/// its files are registered for cleanup themselves. A folder left by a killed process is removed by
/// the next process that creates a folder for the same purpose.
class TemporaryFolder {
public:
  /// In `parent`; `purpose` becomes part of the name. Errors: the system cannot create it.
  static Result<std::unique_ptr<TemporaryFolder>> create(const std::string &parent,
                                                         std::string_view purpose);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;

  const std::string &path() const { return folder; }

private:
  explicit TemporaryFolder(std::string folder);

  std::string folder;
  int cleanupSlot;
  int fd = -1;            ///< locked while it is open
  bool isCreated = false; ///< by this process
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_SUPPORT_TEMPORARYFILE_H
