//===- ScratchFile.h - a temporary file -------------------------*- C++ -*-===//
#ifndef MICA_TOOLS_SUPPORT_SCRATCHFILE_H
#define MICA_TOOLS_SUPPORT_SCRATCHFILE_H

#include "backends/runtime/support/TemporaryFile.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <memory>
#include <string>

namespace mica::tool {

/// A path in a new temporary folder; the file is removed on destruction, on a signal that ends the
/// process, or, if the process was killed, by the next one with the same purpose.
class ScratchFile {
public:
  ScratchFile() = default;
  ScratchFile(const ScratchFile &) = delete;
  ScratchFile &operator=(const ScratchFile &) = delete;
  ~ScratchFile();

  /// The hint if the file cannot be written.
  static constexpr const char *hint = "set TMPDIR to a folder with free space";

  /// `purpose` becomes part of the name.
  llvm::Error create(llvm::StringRef purpose);
  llvm::StringRef path() const { return file; }

private:
  std::unique_ptr<rt::TemporaryFolder> folder;
  std::string file;
  int slot = -1; ///< in the table of files removed on signals
};

} // namespace mica::tool

#endif // MICA_TOOLS_SUPPORT_SCRATCHFILE_H
