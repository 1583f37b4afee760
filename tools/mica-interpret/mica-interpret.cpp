//===- mica-interpret.cpp - runs functions of the mica dialect ------------===//

#include "backends/cpu/target/CpuDialect.h"
#include "backends/runtime/support/CommandLine.h"
#include "backends/runtime/support/HelpFormatter.h"
#include "ir/Mica/Mica.h"
#include "tools/mica-interpret/Interpret.h"
#include "tools/support/Support.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mica;
using namespace mica::tool;

static int runMain(int argc, char **argv) {
  InterpretOptions options;
  CLI::App app("Run functions of the mica dialect op by op with the reference interpreter.",
               "mica-interpret");
  app.formatter(rt::helpFormatter());
  app.set_version_flag("--version", "mica " MICA_VERSION);
  addOptions(app, options);
  auto helpText = rt::parseWords(app, {argv + 1, argv + argc});
  if (!helpText)
    return usage(helpText.error().message, "mica-interpret");
  if (*helpText)
    return print(**helpText);
  DialectRegistry registry;
  // Stage `kernels` names a processor, on which the semantics of ops does not depend.
  registry.insert<MicaDialect, cpu::CpuDialect, arith::ArithDialect, func::FuncDialect,
                  scf::SCFDialect, tensor::TensorDialect>();
  MLIRContext context(registry);
  llvm::Error failed = interpretFile(options, context);
  llvm::outs().flush();
  if (llvm::outs().has_error()) {
    failed = llvm::joinErrors(
        std::move(failed),
        llvm::createStringError("cannot write the output: " + llvm::outs().error().message()));
    llvm::outs().clear_error();
  }
  return failed ? report(options.file, std::move(failed), {"<stdin>"}) : kDone;
}

int main(int argc, char **argv) {
  return runTool([&] { return runMain(argc, argv); });
}
