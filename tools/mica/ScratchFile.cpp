//===- ScratchFile.cpp - a place for a file that is only needed now -------===//

#include "tools/mica/ScratchFile.h"

#include "backends/cpu/program/SignalCleanup.h"

#include "llvm/Support/FileSystem.h"

using namespace llvm;

namespace mica::tool {

ScratchFile::~ScratchFile() {
  if (slot >= 0)
    program::forgetTemporary(slot);
}

Error ScratchFile::create(StringRef purpose) {
  std::error_code failed = sys::fs::createTemporaryFile("mica-" + purpose, "tmp", file);
  // Whoever writes it makes it anew.
  if (!failed)
    failed = sys::fs::remove(file);
  if (failed)
    return createStringError("cannot make a temporary file (" + failed.message() +
                             "), set TMPDIR to a folder with room");
  remover.setFile(file);
  slot = program::protectTemporary(file.str().str());
  return Error::success();
}

} // namespace mica::tool
