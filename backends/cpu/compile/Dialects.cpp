//===- Dialects.cpp - the dialects of all stages -------------------------------------------------===//

#include "backends/cpu/compile/Dialects.h"

#include "ir/Exec/Exec.h"
#include "ir/Mica/Mica.h"

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"

void mica::cpu::registerCompilerDialects(mlir::DialectRegistry &registry) {
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  registry.insert<mica::MicaDialect, mica::exec::ExecDialect>();
  mica::exec::registerBufferization(registry);
}
