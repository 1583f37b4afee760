//===- TextOutput.cpp - texts that a command was asked for ------------------------===//

#include "backends/cpu/compile/TextOutput.h"

#include "backends/cpu/runtime/Output.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

llvm::Error mica::cpu::writeText(StringRef path, StringRef content, StringRef option) {
  if (path == "-") {
    rt::Status written = rt::writeOut(content);
    return written ? Error::success() : createStringError(written.error().message);
  }
  StringRef folder = sys::path::parent_path(path);
  if (!folder.empty())
    if (std::error_code failed =
            sys::fs::create_directories(folder, /*IgnoreExisting=*/true, sys::fs::all_all))
      return createStringError(path + ": its folder cannot be made (" + failed.message() +
                               "), choose another " + option);
  Error failed = writeToOutput(path, [&](raw_ostream &stream) {
    stream << content;
    return Error::success();
  });
  return failed ? createStringError(path + ": cannot be written (" + toString(std::move(failed)) +
                                    "), choose another " + option)
                : Error::success();
}
