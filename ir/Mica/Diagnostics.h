//===- Diagnostics.h - what is wrong, and where -----------------*- C++ -*-===//

#ifndef MICA_IR_MICA_DIAGNOSTICS_H
#define MICA_IR_MICA_DIAGNOSTICS_H

#include "mlir/IR/Diagnostics.h"

#include <string>
#include <vector>

namespace mica {

/// What a reader calls `location`: the model's module, e.g. "model.layers.*.self_attn.q_proj", else
/// FILE:LINE:COLUMN, else "an unknown place".
std::string describePlace(mlir::Location location);

/// A warning or a remark of a pass, and what it is about: see describePlace.
struct PassRemark {
  std::string place, text;
  bool isWarning;
};

/// While it lives, keeps the first error that MLIR reports in a context, all warnings and all
/// remarks, and prints nothing: an error is one line.
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
  /// Warnings and remarks, in the order in which they were reported.
  llvm::ArrayRef<PassRemark> remarks() const { return said; }

private:
  std::string error, file, module;
  std::vector<PassRemark> said;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace mica

#endif // MICA_IR_MICA_DIAGNOSTICS_H
