//===- Interpret.cpp - runs functions of a file ---------------------------===//

#include "tools/mica-interpret/Interpret.h"

#include "ir/Interpreter/Expect.h"
#include "ir/Mica/Diagnostics.h"
#include "tools/mica-interpret/Inputs.h"
#include "tools/mica-interpret/Results.h"
#include "tools/support/CheckpointWeights.h"

#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace mica::tool {

static void printTrace(Operation *op, ArrayRef<interp::Value> /*operands*/,
                       ArrayRef<interp::Value> results) {
  for (const interp::Value &result : results) {
    result.print(llvm::errs() << op->getName() << " " << op->getLoc() << " ");
    llvm::errs() << "\n";
  }
}

static llvm::Error runFunction(func::FuncOp function, interp::Interpreter &interpreter,
                               const InterpretOptions &options) {
  llvm::Expected<SmallVector<interp::Value>> args = makeArguments(function, options);
  if (!args)
    return args.takeError();
  llvm::Expected<SmallVector<interp::Value>> results = interpreter.run(function, *args);
  if (results) {
    if (llvm::Error error = writeResults(function, *results, options))
      return error;
    if (llvm::Error error = compareResults(function, *results, options))
      return error;
  }
  if (!interp::hasExpectation(function))
    return results.takeError();
  return interp::checkExpected(function, std::move(results));
}

/// The function with that name, or all public functions with no arguments but caches.
static llvm::Expected<SmallVector<func::FuncOp>> chooseFunctions(ModuleOp module, StringRef name) {
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
        "no public function without arguments; select one with --function");
  return chosen;
}

llvm::Error interpretFile(const InterpretOptions &options, MLIRContext &context) {
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

} // namespace mica::tool
