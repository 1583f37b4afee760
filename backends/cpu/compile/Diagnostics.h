//===- Diagnostics.h - MLIR's diagnostics as one error -------------------------------*- C++ -*-===//
#ifndef MICA_BACKENDS_CPU_COMPILE_DIAGNOSTICS_H
#define MICA_BACKENDS_CPU_COMPILE_DIAGNOSTICS_H

#include "llvm/Support/Error.h"
#include "mlir/IR/Diagnostics.h"

#include <string>

namespace mica::cpu {

/// While it lives, keeps the first error reported in the context and silences everything else: an error of the tools is one line.
class FirstError {
public:
  explicit FirstError(mlir::MLIRContext *context);
  /// `what is wrong (where)`; `otherwise` is what is wrong where nothing was reported.
  llvm::Error take(llvm::StringRef otherwise) const;

private:
  std::string message;
  mlir::ScopedDiagnosticHandler handler;
};

/// A location as people read it: `file:line:column`, the name of a model's module, or nothing.
std::string shown(mlir::Location location);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_COMPILE_DIAGNOSTICS_H
