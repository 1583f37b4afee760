//===- ScratchFile.cpp - a place for a file that is only needed now -------===//

#include "tools/mica/ScratchFile.h"

#include "llvm/Support/FileSystem.h"

using namespace llvm;

namespace mica::tool {

Error ScratchFile::create(StringRef purpose) {
  std::error_code failed = sys::fs::createTemporaryFile("mica-" + purpose, "tmp", file);
  // Whoever writes it makes it anew.
  if (!failed)
    failed = sys::fs::remove(file);
  if (failed)
    return createStringError("cannot make a temporary file (" + failed.message() +
                             "), set TMPDIR to a folder with room");
  remover.setFile(file);
  return Error::success();
}

} // namespace mica::tool
