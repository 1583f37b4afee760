//===- mica-opt.cpp - mlir-opt with Mica's dialects and passes ------------===//

#include "backends/cpu/codegen/Passes.h"
#include "backends/cpu/dispatch/Passes.h"
#include "backends/cpu/lowering/Passes.h"
#include "backends/cpu/target/Passes.h"
#include "ir/Exec/Exec.h"
#include "ir/Mica/Mica.h"
#include "passes/pipelines/Stages.h"
#include "tools/support/Support.h"

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

static int runMain(int argc, char **argv) {
  llvm::cl::SetVersionPrinter([](llvm::raw_ostream &out) { out << "mica " MICA_VERSION "\n"; });
  mlir::registerAllPasses();
  mica::cpu::registerCodegenPasses();
  mica::cpu::registerLoweringPasses();
  mica::registerPasses();
  mica::registerPipelines();
  mica::cpu::registerDispatchPasses();
  mica::cpu::registerMicaCpuTargetPasses();
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  registry.insert<mica::MicaDialect, mica::exec::ExecDialect, mica::cpu::CpuDialect>();
  mica::exec::registerBufferization(registry);
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "Mica optimizer driver\n", registry));
}

int main(int argc, char **argv) {
  return mica::tool::runTool([&] { return runMain(argc, argv); });
}
