//===- mica-interpret.cpp - runs functions of the mica dialect ------------===//

#include "backends/cpu/target/CpuDialect.h"
#include "backends/runtime/support/CommandLine.h"
#include "backends/runtime/support/NewFile.h"
#include "ir/Interpreter/Expect.h"
#include "ir/Interpreter/Npy.h"
#include "ir/Mica/Diagnostics.h"
#include "tools/support/CheckpointWeights.h"
#include "tools/support/Support.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

#include <CLI/CLI.hpp>

using namespace mlir;
using namespace mica;

namespace {

struct Options {
  std::string file, function, weights, outputPrefix, cache = "1x16";
  std::vector<std::string> inputs, expected;
  double tolerance = 1e-6;
  bool print = false, trace = false;
};

/// An empty cache with the size given by --cache, BATCHxPOSITIONS.
llvm::Expected<interp::Value> makeCache(SequenceState type, StringRef size) {
  auto [batchText, positionsText] = size.split('x');
  int64_t batch, positions;
  if (batchText.getAsInteger(10, batch) || positionsText.getAsInteger(10, positions) || batch < 1 ||
      positions < 1)
    return llvm::createStringError("--cache " + size +
                                   ": write BATCHxPOSITIONS, for instance 2x64");
  if (llvm::Error error = interp::checkSize(interp::extentsOf(type, batch, positions)))
    return llvm::createStringError("--cache " + size + ": " + llvm::toString(std::move(error)));
  return interp::Value::makeCache(type, batch, positions);
}

llvm::Expected<interp::Value> readInput(StringRef path, Type type) {
  llvm::Expected<interp::NpyArray> array = interp::readNpy(path);
  if (!array)
    return array.takeError();
  llvm::Expected<interp::Tensor> tensor = interp::toTensor(*array, getElementTypeOrSelf(type));
  if (!tensor)
    return llvm::createStringError(path + ": " + llvm::toString(tensor.takeError()));
  if (type.isIntOrIndex() && tensor->getNumElements() == 1)
    return interp::Value(tensor->ints.front());
  return interp::Value(std::move(*tensor));
}

/// Caches are created, other arguments are read from --input in order.
llvm::Expected<SmallVector<interp::Value>> makeArguments(func::FuncOp function,
                                                         const Options &options) {
  SmallVector<interp::Value> args;
  ArrayRef<std::string> inputs = options.inputs;
  for (Type type : function.getArgumentTypes()) {
    auto cache = dyn_cast<SequenceState>(type);
    if (!cache && inputs.empty())
      return llvm::createStringError("@" + function.getSymName() +
                                     " has more arguments than there are --input");
    llvm::Expected<interp::Value> arg =
        cache ? makeCache(cache, options.cache) : readInput(inputs.front(), type);
    if (!arg)
      return arg.takeError();
    if (!cache)
      inputs = inputs.drop_front();
    args.push_back(std::move(*arg));
  }
  if (!inputs.empty())
    return llvm::createStringError("--input " + inputs.front() + " has no argument in @" +
                                   function.getSymName());
  return args;
}

llvm::Error writeNpy(const std::string &path, const interp::NpyArray &array) {
  std::string bytes = interp::formatNpy(array);
  auto file = rt::NewFile::create(path, {"the result", ".npy file", "\x93NUMPY"});
  if (!file)
    return llvm::createStringError(file.error().message);
  rt::Status written = (*file)->writeAt(bytes.data(), bytes.size(), 0);
  if (written)
    written = (*file)->commit();
  return written ? llvm::Error::success() : llvm::createStringError(written.error().message);
}

llvm::Error output(func::FuncOp function, ArrayRef<interp::Value> results, const Options &options) {
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

/// Whether results can be written to this prefix followed by N.npy. An existing file or folder with
/// that name was probably meant instead.
llvm::Error checkOutputPrefix(StringRef prefix) {
  namespace fs = llvm::sys::fs;
  if (prefix.empty())
    return llvm::Error::success();
  StringRef folder = llvm::sys::path::parent_path(prefix);
  std::string why;
  if (!folder.empty() && !fs::is_directory(folder))
    why = (folder + " is not a folder").str();
  else if (!prefix.ends_with("/") && fs::exists(prefix))
    why = fs::is_directory(prefix) ? "is a folder" : "exists";
  else
    return llvm::Error::success();
  return llvm::createStringError("--output-prefix " + prefix + ": " + why +
                                 ", but results would go to " + prefix + "0.npy, " + prefix +
                                 "1.npy and so on: write a folder and / or how new names begin");
}

/// Compares result i with the i-th file of --expect.
llvm::Error compare(func::FuncOp function, ArrayRef<interp::Value> results,
                    const Options &options) {
  for (auto [number, path] : llvm::enumerate(options.expected)) {
    if (number >= results.size())
      return llvm::createStringError("--expect " + path + " is one too many for @" +
                                     function.getSymName());
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
          llvm::formatv("@{0} result {1} is off by {2:e} from {3}, allowed is {4:e}",
                        function.getSymName(), number, off, path, options.tolerance));
  }
  return llvm::Error::success();
}

void printTrace(Operation *op, ArrayRef<interp::Value> /*operands*/,
                ArrayRef<interp::Value> results) {
  for (const interp::Value &result : results) {
    result.print(llvm::errs() << op->getName() << " " << op->getLoc() << " ");
    llvm::errs() << "\n";
  }
}

llvm::Error runFunction(func::FuncOp function, interp::Interpreter &interpreter,
                        const Options &options) {
  llvm::Expected<SmallVector<interp::Value>> args = makeArguments(function, options);
  if (!args)
    return args.takeError();
  llvm::Expected<SmallVector<interp::Value>> results = interpreter.run(function, *args);
  if (results) {
    if (llvm::Error error = output(function, *results, options))
      return error;
    if (llvm::Error error = compare(function, *results, options))
      return error;
  }
  if (!interp::hasExpectation(function))
    return results.takeError();
  return interp::checkExpected(function, std::move(results));
}

/// The function with that name, or all public functions with no arguments but caches.
llvm::Expected<SmallVector<func::FuncOp>> chooseFunctions(ModuleOp module, StringRef name) {
  if (!name.empty()) {
    if (auto function = module.lookupSymbol<func::FuncOp>(name))
      return SmallVector<func::FuncOp>{function};
    return llvm::createStringError("there is no function @" + name);
  }
  SmallVector<func::FuncOp> chosen;
  for (auto function : module.getOps<func::FuncOp>())
    if (function.isPublic() &&
        llvm::all_of(function.getArgumentTypes(), llvm::IsaPred<SequenceState>))
      chosen.push_back(function);
  if (chosen.empty())
    return llvm::createStringError(
        "no public function without arguments; name one with --function");
  return chosen;
}

llvm::Error run(const Options &options, MLIRContext &context) {
  if (llvm::Error error = checkOutputPrefix(options.outputPrefix))
    return error;
  std::string message;
  std::unique_ptr<llvm::MemoryBuffer> buffer = openInputFile(options.file, &message);
  if (!buffer)
    return llvm::createStringError(message);
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(buffer), llvm::SMLoc());
  OwningOpRef<ModuleOp> module;
  {
    FirstDiagnostic diagnostic(&context);
    module = parseSourceFile<ModuleOp>(sources, &context);
    if (!module)
      return llvm::createStringError(diagnostic.place(options.file) + ": " +
                                     diagnostic.message("is not a module of the mica dialect"));
  }
  llvm::Expected<SmallVector<func::FuncOp>> functions = chooseFunctions(*module, options.function);
  if (!functions)
    return functions.takeError();
  llvm::Expected<interp::WeightProvider> weights = checkpointWeights(options.weights, &context);
  if (!weights)
    return weights.takeError();
  interp::TraceHook trace;
  if (options.trace)
    trace = printTrace;
  interp::Interpreter interpreter(*module, *weights, trace);
  for (func::FuncOp function : *functions)
    if (llvm::Error error = runFunction(function, interpreter, options))
      return error;
  size_t compared = options.expected.empty() ? llvm::count_if(*functions, interp::hasExpectation)
                                             : functions->size();
  llvm::outs() << compared << " of " << functions->size()
               << " functions checked, all as expected\n";
  return llvm::Error::success();
}

} // namespace

static void addOptions(CLI::App &app, Options &options) {
  app.add_option("FILE", options.file, "IR, or - for standard input")->required();
  rt::addGroup(app, "Input", [&] {
    app.add_option(
           "--function", options.function,
           "Function to run (default: every public function without arguments other than caches)")
        ->type_name("NAME");
    app.add_option("--input", options.inputs,
                   "A .npy file for each argument that is not a cache, in order")
        ->type_name("FILE");
    app.add_option("--cache", options.cache,
                   "Size of the initial, empty caches: BATCHxPOSITIONS (default: 1x16)")
        ->type_name("SIZE");
    app.add_option("--weights", options.weights,
                   "Folder with the checkpoint: safetensors files, or NAME.npy for every tensor")
        ->type_name("FOLDER");
  });
  rt::addGroup(app, "Results", [&] {
    app.add_option("--output-prefix", options.outputPrefix,
                   "Write result N, from 0 on, to the file PREFIXN.npy: out/ for out/0.npy, "
                   "x. for x.0.npy")
        ->type_name("PREFIX");
    app.add_option("--expect", options.expected,
                   "A .npy file for each result, which must match within --tolerance")
        ->type_name("FILE");
    app.add_option("--tolerance", options.tolerance,
                   "Maximum error of results, max |a - b| / max |b| (default: 1e-6)")
        ->check(rt::numberBetween(0, 1e30));
    app.add_flag("--print", options.print, "Print the results with 6 significant digits");
    app.add_flag("--trace", options.trace, "Print the results of every op to standard error");
  });
  app.footer("Example:\n  mica-interpret norm.mlir --function f --input x.npy --print");
}

static int runMain(int argc, char **argv) {
  Options options;
  CLI::App app("Run functions of the mica dialect op by op with the reference interpreter.",
               "mica-interpret");
  app.formatter(rt::helpFormatter());
  app.set_version_flag("--version", "mica " MICA_VERSION);
  addOptions(app, options);
  auto helpText = rt::parseWords(app, {argv + 1, argv + argc});
  if (!helpText)
    return tool::usage(helpText.error().message, "mica-interpret");
  if (*helpText)
    return tool::print(**helpText);
  DialectRegistry registry;
  // Stage `kernels` names a processor, on which the semantics of ops does not depend.
  registry.insert<MicaDialect, cpu::CpuDialect, arith::ArithDialect, func::FuncDialect,
                  scf::SCFDialect, tensor::TensorDialect>();
  MLIRContext context(registry);
  llvm::Error failed = run(options, context);
  llvm::outs().flush();
  if (llvm::outs().has_error()) {
    failed = llvm::joinErrors(
        std::move(failed),
        llvm::createStringError("cannot write the output: " + llvm::outs().error().message()));
    llvm::outs().clear_error();
  }
  return failed ? tool::report(options.file, std::move(failed), {"<stdin>"}) : tool::kDone;
}

int main(int argc, char **argv) {
  return tool::runTool([&] { return runMain(argc, argv); });
}
