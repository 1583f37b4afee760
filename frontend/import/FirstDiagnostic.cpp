#include "frontend/import/FirstDiagnostic.h"

#include "frontend/support/InputError.h"

#include "mlir/IR/Location.h"

using namespace mlir;

namespace mica {

FirstDiagnostic::FirstDiagnostic(MLIRContext &context, llvm::StringRef path)
    : place(path.str()), handler(&context, [this](Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() == DiagnosticSeverity::Error && message.empty())
          keep(diagnostic);
        return success();
      }) {}

void FirstDiagnostic::keep(Diagnostic &diagnostic) {
  message = diagnostic.str();
  if (auto loc = diagnostic.getLocation()->findInstanceOf<FileLineColLoc>())
    place += ":" + std::to_string(loc.getLine()) + ":" + std::to_string(loc.getColumn());
}

llvm::Error FirstDiagnostic::take(llvm::StringRef otherwise) const {
  return inputError(place, message.empty() ? otherwise : llvm::StringRef(message));
}

} // namespace mica
