//===- mica-lsp-server.cpp - for editors ----------------------------------===//

#include "backends/cpu/driver/Compiler.h"
#include "tools/support/Support.h"

#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

static int runMain(int argc, char **argv) {
  llvm::cl::SetVersionPrinter([](llvm::raw_ostream &out) { out << "mica " MICA_VERSION "\n"; });
  mlir::DialectRegistry registry;
  mica::cpu::registerCompilerDialects(registry);
  return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
}

int main(int argc, char **argv) {
  return mica::tool::runTool([&] { return runMain(argc, argv); });
}
