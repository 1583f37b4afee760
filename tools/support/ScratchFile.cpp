//===- ScratchFile.cpp - a temporary file ---------------------------------===//

#include "tools/support/ScratchFile.h"

#include "backends/runtime/support/SignalCleanup.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace mica::tool {

ScratchFile::~ScratchFile() {
  folder.reset();
  rt::forgetTemporary(slot);
}

Error ScratchFile::create(StringRef purpose) {
  SmallString<128> parent;
  sys::path::system_temp_directory(/*erasedOnReboot=*/true, parent);
  auto created = rt::TemporaryFolder::create(parent.str().str(), ("mica-" + purpose).str());
  if (!created)
    return createStringError("cannot create a temporary file (" + created.error().message + "); " +
                             hint);
  folder = *std::move(created);
  file = folder->path() + "/" + purpose.str();
  slot = rt::protectTemporary(file);
  return Error::success();
}

} // namespace mica::tool
