//===- ScratchFile.h - a place for a file that is only needed now ---------===//
#ifndef MICA_TOOLS_MICA_SCRATCHFILE_H
#define MICA_TOOLS_MICA_SCRATCHFILE_H

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/FileUtilities.h"

namespace mica::tool {

/// A path in the folder for temporary files at which nothing stands; what is written there is
/// removed with this, or by a signal that ends the process.
class ScratchFile {
public:
  ScratchFile() = default;
  ScratchFile(const ScratchFile &) = delete;
  ScratchFile &operator=(const ScratchFile &) = delete;
  ~ScratchFile();

  /// `purpose` becomes part of the name.
  llvm::Error create(llvm::StringRef purpose);
  llvm::StringRef path() const { return file; }

private:
  llvm::SmallString<128> file;
  llvm::FileRemover remover;
  int slot = -1; ///< of what signals remove
};

} // namespace mica::tool

#endif // MICA_TOOLS_MICA_SCRATCHFILE_H
