//===- FirstDiagnostic.h - MLIR's diagnostics as one error
//--------------------------------------------===//
#ifndef MICA_FRONTEND_IMPORT_FIRSTDIAGNOSTIC_H
#define MICA_FRONTEND_IMPORT_FIRSTDIAGNOSTIC_H

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/Error.h"

#include <string>

namespace mica {

/// While it lives, keeps the first error that MLIR reports in `context` and silences everything
/// else: an error of the frontend is one line.
class FirstDiagnostic {
public:
  FirstDiagnostic(mlir::MLIRContext &context, llvm::StringRef path);

  /// The error `path:LINE:COLUMN: message`, without line and column where it has no place in a
  /// file. `otherwise` is the message where nothing was reported.
  llvm::Error take(llvm::StringRef otherwise) const;

private:
  void keep(mlir::Diagnostic &diagnostic);

  std::string place, message;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace mica

#endif // MICA_FRONTEND_IMPORT_FIRSTDIAGNOSTIC_H
