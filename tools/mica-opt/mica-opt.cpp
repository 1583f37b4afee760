//===- mica-opt.cpp - mlir-opt with Mica's dialects and passes ------------===//

#include "backends/cpu/codegen/Pipeline.h"
#include "backends/cpu/dispatch/Pipeline.h"
#include "backends/cpu/lowering/Pipeline.h"
#include "backends/cpu/target/Passes.h"
#include "ir/Exec/Exec.h"
#include "ir/Mica/Mica.h"
#include "passes/pipelines/Stages.h"
#include "tools/mica-opt/InPlace.h"
#include "tools/support/DriverHelp.h"
#include "tools/support/Support.h"

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

static void registerMicaPasses() {
  mica::cpu::registerCodegenPasses();
  mica::cpu::registerLoweringPasses();
  mica::registerPasses();
  mica::registerPipelines();
  mica::cpu::registerDispatchPasses();
  mica::cpu::registerMicaCpuTargetPasses();
}

/// Called while only Mica's passes are registered.
static mica::tool::DriverHelp helpOfMicaOpt() {
  mica::tool::RegisteredPasses registered = mica::tool::registeredPasses();
  return {
      .tool = "mica-opt",
      .description = "Run passes and pipelines on IR, in the order in which they are given.",
      .file = "MLIR file (default: standard input)",
      .footer = "Examples:\n"
                "  mica compile model.gguf --dump-stages stages --emit model\n"
                "  mica-opt stages/0-model.mlir --mica-to-fused",
      .groups = {{"Pipelines", std::move(registered.pipelines)},
                 {"Passes", std::move(registered.passes)},
                 {"Input and output",
                  {{"-o FILE", "Output file (default: standard output)"},
                   {"--pass-pipeline PIPELINE", "Passes with their options and nesting, for "
                                                "instance builtin.module(mica-to-fused,cse)"},
                   {"--split-input-file", "Process each part between lines `// -----` separately"},
                   {"--verify-diagnostics", "Compare diagnostics with expected-error comments"},
                   {"--mlir-print-ir-before-all", "Print the IR before each pass"},
                   {"--mlir-print-ir-after-all", "Print the IR after each pass"},
                   {"--mlir-print-debuginfo", "Print locations"},
                   {"--mlir-timing", "Print the time of each pass"}}}},
  };
}

static int runMain(int argc, char **argv) {
  llvm::cl::SetVersionPrinter([](llvm::raw_ostream &out) { out << "mica " MICA_VERSION "\n"; });
  registerMicaPasses();
  if (mica::tool::asksForHelp(argc, argv))
    return mica::tool::print(helpOfMicaOpt().toText());
  mlir::registerAllPasses();
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  registry.insert<mica::MicaDialect, mica::exec::ExecDialect, mica::cpu::CpuDialect>();
  mica::exec::registerBufferization(registry);
  auto [input, output] =
      mlir::registerAndParseCLIOptions(argc, argv, "Mica optimizer driver\n", registry);
  // "-" is stdin and stdout; devices are never replaced.
  if (input == "-" || !llvm::sys::fs::is_regular_file(input) ||
      !llvm::sys::fs::equivalent(input, output))
    return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, input, output, registry));
  llvm::Expected<int> status = mica::tool::runInPlace(argc, argv, input, registry);
  return status ? *status : mica::tool::report(status.takeError());
}

int main(int argc, char **argv) {
  return mica::tool::runTool([&] { return runMain(argc, argv); });
}
