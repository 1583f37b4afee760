//===- InPlace.cpp - mlir-opt with one file as input and output -----------===//

#include "tools/mica-opt/InPlace.h"

#include "backends/runtime/support/TemporaryFile.h"
#include "tools/support/ScratchFile.h"
#include "tools/support/Support.h"

#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

#include <cerrno>
#include <span>

namespace mica::tool {

/// Replaces the text of `file` by that of `result` atomically; permissions are preserved.
static llvm::Error replaceText(llvm::StringRef file, llvm::StringRef result) {
  namespace fs = llvm::sys::fs;
  auto text = llvm::MemoryBuffer::getFile(result);
  if (!text)
    return llvm::createFileError(result, text.getError());
  // The target of a symbolic link is replaced, not the link.
  llvm::SmallString<128> target;
  if (std::error_code error = fs::real_path(file, target))
    return llvm::createFileError(file, error);
  llvm::ErrorOr<fs::perms> permissions = fs::getPermissions(target);
  if (!permissions)
    return llvm::createFileError(file, permissions.getError());
  constexpr const char *another = "choose another -o";
  auto written = rt::TemporaryFile::create(target.str().str(), {}, another);
  if (!written)
    return llvm::createStringError(file + ": " + written.error().message);
  rt::TemporaryFile &temporary = **written;
  llvm::StringRef content = (*text)->getBuffer();
  if (fs::setPermissions(temporary.descriptor(), *permissions) ||
      !temporary.writeAt(std::as_bytes(std::span(content.data(), content.size())), 0) ||
      !temporary.commit())
    return llvm::createStringError(file + ": " + rt::cannotBeWritten(errno, another));
  return llvm::Error::success();
}

llvm::Expected<int> runInPlace(int argc, char **argv, llvm::StringRef file,
                               mlir::DialectRegistry &registry) {
  ScratchFile scratch;
  if (llvm::Error error = scratch.create("opt"))
    return std::move(error);
  int status =
      mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, file, scratch.path(), registry));
  uint64_t size = 0;
  if (status != kDone || llvm::sys::fs::file_size(scratch.path(), size) || size == 0)
    return status;
  if (llvm::Error error = replaceText(file, scratch.path()))
    return std::move(error);
  return kDone;
}

} // namespace mica::tool
