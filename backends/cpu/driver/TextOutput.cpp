//===- TextOutput.cpp - text files written by commands --------------------===//

#include "backends/cpu/driver/TextOutput.h"

#include "backends/runtime/support/Output.h"
#include "backends/runtime/support/TemporaryFile.h"

#include <cerrno>

using namespace llvm;

llvm::Error mica::cpu::writeText(StringRef path, StringRef content, StringRef option) {
  if (path == "-") {
    rt::Status written = rt::writeOut(content);
    return written ? Error::success() : createStringError(written.error().message);
  }
  std::string another = ("choose another " + option).str();
  auto fail = [&](const std::string &reason) { return createStringError(path + ": " + reason); };
  auto file = rt::TemporaryFile::create(path.str(), {}, another);
  if (!file)
    return fail(file.error().message);
  auto bytes = std::as_bytes(std::span(content.data(), content.size()));
  if (!(*file)->writeAt(bytes, 0) || !(*file)->commit())
    return fail(rt::cannotBeWritten(errno, another));
  return Error::success();
}
