//===- Results.cpp - results of functions ---------------------------------===//

#include "tools/mica-interpret/Results.h"

#include "backends/runtime/support/NewFile.h"
#include "ir/Interpreter/Expect.h"
#include "ir/Interpreter/Npy.h"
#include "tools/mica-interpret/Inputs.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace mica::tool {

llvm::Error checkOutputPrefix(StringRef prefix) {
  namespace fs = llvm::sys::fs;
  if (prefix.empty())
    return llvm::Error::success();
  StringRef folder = llvm::sys::path::parent_path(prefix);
  std::string why;
  if (!folder.empty() && !fs::is_directory(folder))
    why = (folder + " is not a folder; choose another prefix").str();
  else if (prefix.ends_with("/") || !fs::exists(prefix))
    return llvm::Error::success();
  else if (fs::is_directory(prefix))
    why = ("is a folder; append / to write " + prefix + "/0.npy, " + prefix + "/1.npy, ...").str();
  else
    why = ("exists, and results are written to " + prefix + "0.npy, " + prefix +
           "1.npy, ...; choose another prefix")
              .str();
  return llvm::createStringError("--output-prefix " + prefix + ": " + why);
}

static llvm::Error writeNpy(const std::string &path, const interp::NpyArray &array) {
  std::string bytes = interp::formatNpy(array);
  auto file = rt::NewFile::create(path, {"the result", ".npy file", "\x93NUMPY"});
  if (!file)
    return llvm::createStringError(file.error().message);
  rt::Status written = (*file)->writeAt(bytes.data(), bytes.size(), 0);
  if (written)
    written = (*file)->commit();
  return written ? llvm::Error::success() : llvm::createStringError(written.error().message);
}

llvm::Error writeResults(func::FuncOp function, ArrayRef<interp::Value> results,
                         const InterpretOptions &options) {
  if (options.print)
    llvm::outs() << "@" << function.getSymName() << "\n";
  for (auto [number, result] : llvm::enumerate(results)) {
    if (options.print) {
      result.print(llvm::outs() << "  ");
      llvm::outs() << "\n";
    }
    interp::Value flat = result.flattened();
    if (options.outputPrefix.empty() || !flat.getTensor())
      continue;
    std::string path = options.outputPrefix + std::to_string(number) + ".npy";
    if (llvm::Error error = writeNpy(path, interp::toNpy(*flat.getTensor())))
      return error;
  }
  return llvm::Error::success();
}

llvm::Error compareResults(func::FuncOp function, ArrayRef<interp::Value> results,
                           const InterpretOptions &options) {
  for (auto [number, path] : llvm::enumerate(options.expected)) {
    if (number >= results.size())
      return llvm::createStringError("@" + function.getSymName() + " has no result " +
                                     Twine(number) + "; remove --expect " + path);
    interp::Value actual = results[number].flattened();
    if (!actual.getTensor())
      return llvm::createStringError("result " + Twine(number) + " is not a tensor");
    llvm::Expected<interp::Value> expected = readInput(
        path, RankedTensorType::get(actual.getTensor()->shape, actual.getTensor()->elementType));
    if (!expected)
      return expected.takeError();
    double off = interp::distance(*actual.getTensor(), *expected->getTensor());
    // A NaN is not within any tolerance.
    if (!(off <= options.tolerance))
      return llvm::createStringError(
          llvm::formatv("@{0}: result {1} differs from {3} by {2:e}; the tolerance is {4:e}",
                        function.getSymName(), number, off, path, options.tolerance));
  }
  return llvm::Error::success();
}

} // namespace mica::tool
