//===- Diagnostics.cpp - descriptions of diagnostics and locations --------===//

#include "ir/Mica/Diagnostics.h"

#include "mlir/IR/Location.h"

using namespace mlir;
using namespace mica;

/// The model's module that `location` names, or an empty string.
static std::string moduleOf(Location location) {
  auto name = location->findInstanceOf<NameLoc>();
  return name ? name.getName().str() : std::string();
}

/// FILE:LINE:COLUMN, or an empty string.
static std::string fileOf(Location location) {
  auto file = location->findInstanceOf<FileLineColLoc>();
  if (!file)
    return {};
  return (file.getFilename().strref() + ":" + llvm::Twine(file.getLine()) + ":" +
          llvm::Twine(file.getColumn()))
      .str();
}

std::string mica::describeLocation(Location location) {
  std::string module = moduleOf(location), file = fileOf(location);
  return !module.empty() ? module : !file.empty() ? file : "an unknown place";
}

FirstDiagnostic::FirstDiagnostic(MLIRContext *context)
    : handler(context, [this](Diagnostic &diagnostic) {
        DiagnosticSeverity severity = diagnostic.getSeverity();
        if (severity == DiagnosticSeverity::Warning || severity == DiagnosticSeverity::Remark)
          said.push_back({describeLocation(diagnostic.getLocation()), diagnostic.str(),
                          severity == DiagnosticSeverity::Warning});
        if (severity == DiagnosticSeverity::Error && error.empty()) {
          error = diagnostic.str();
          module = moduleOf(diagnostic.getLocation());
          file = module.empty() ? fileOf(diagnostic.getLocation()) : std::string();
        }
        return success();
      }) {}

std::string FirstDiagnostic::place(StringRef subject) const {
  if (!file.empty())
    return file;
  if (module.empty() || subject.empty())
    return module.empty() ? subject.str() : module;
  return (subject + ": " + module).str();
}
