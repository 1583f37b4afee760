//===- Dialects.h - the dialects of all stages ---------------------------------------*- C++ -*-===//
#ifndef MICA_BACKENDS_CPU_COMPILE_DIALECTS_H
#define MICA_BACKENDS_CPU_COMPILE_DIALECTS_H

#include "mlir/IR/DialectRegistry.h"

namespace mica::cpu {

/// Everything that a context needs to compile from stage `model` to stage `llvm`.
void registerCompilerDialects(mlir::DialectRegistry &registry);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_COMPILE_DIALECTS_H
