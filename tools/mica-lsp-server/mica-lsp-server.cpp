//===- mica-lsp-server.cpp - for editors ----------------------------------===//

#include "backends/cpu/compile/Compiler.h"

#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mica::cpu::registerCompilerDialects(registry);
  return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
}
