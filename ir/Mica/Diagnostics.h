//===- Diagnostics.h - descriptions of diagnostics and locations ----------===//

#ifndef MICA_IR_MICA_DIAGNOSTICS_H
#define MICA_IR_MICA_DIAGNOSTICS_H

#include "mlir/IR/Diagnostics.h"

#include <string>
#include <vector>

namespace mica {

/// A description of `location` for users: the model's module, e.g.
/// "model.layers.*.self_attn.q_proj", else FILE:LINE:COLUMN, else "an unknown place".
std::string describeLocation(mlir::Location location);

/// A warning or a remark of a pass, and its location as given by describeLocation.
struct PassRemark {
  std::string place, text;
  bool isWarning;
};

/// While it is alive, collects the first error, all warnings and all remarks that MLIR reports in a
/// context instead of printing them.
class FirstDiagnostic {
public:
  explicit FirstDiagnostic(mlir::MLIRContext *context);

  /// FILE:LINE:COLUMN of the error, else `subject`, followed by the model's module if that is
  /// known.
  std::string place(llvm::StringRef subject) const;
  /// The error; `otherwise` if none was reported.
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
