//===- Diagnostics.h - what is wrong, and where -------------------*- C++ -*-===//

#ifndef MICA_IR_MICA_DIAGNOSTICS_H
#define MICA_IR_MICA_DIAGNOSTICS_H

#include "mlir/IR/Diagnostics.h"

#include <string>
#include <vector>

namespace mica {

/// What a reader calls `location`: the model's module, e.g. "model.layers.*.self_attn.q_proj", else
/// FILE:LINE:COLUMN, else "an unknown place".
std::string describePlace(mlir::Location location);

/// While it lives, keeps the first error that MLIR reports in a context and all remarks, and
/// silences everything else: an error is one line.
class FirstDiagnostic {
public:
  explicit FirstDiagnostic(mlir::MLIRContext *context);

  /// FILE:LINE:COLUMN of the error, else `subject` followed by the model's module where that is
  /// known.
  std::string place(llvm::StringRef subject) const;
  /// The error; `otherwise` where nothing was reported.
  std::string message(llvm::StringRef otherwise) const {
    return error.empty() ? otherwise.str() : error;
  }
  /// What passes said of what they left as it was, each behind its place.
  llvm::ArrayRef<std::string> remarks() const { return said; }

private:
  std::string error, file, module;
  std::vector<std::string> said;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace mica

#endif // MICA_IR_MICA_DIAGNOSTICS_H
