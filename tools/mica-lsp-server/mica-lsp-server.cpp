//===- mica-lsp-server.cpp - for editors ----------------------------------===//

#include "backends/cpu/compile/Compiler.h"
#include "backends/cpu/program/Process.h"

#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

int main(int argc, char **argv) {
  mica::program::prepareProcess();
  llvm::cl::SetVersionPrinter([](llvm::raw_ostream &out) { out << "mica " MICA_VERSION "\n"; });
  mlir::DialectRegistry registry;
  mica::cpu::registerCompilerDialects(registry);
  return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
}
