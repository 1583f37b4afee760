//===- Diagnostics.cpp - MLIR's diagnostics as one error -----------------------------------------===//

#include "backends/cpu/compile/Diagnostics.h"

#include "mlir/IR/Location.h"

using namespace mlir;

namespace mica::cpu {

std::string shown(Location location) {
  if (auto file = dyn_cast<FileLineColLoc>(location))
    return (file.getFilename().getValue() + ":" + llvm::Twine(file.getLine()) + ":" + llvm::Twine(file.getColumn())).str();
  if (auto name = dyn_cast<NameLoc>(location)) {
    std::string child = shown(name.getChildLoc());
    return name.getName().str() + (child.empty() ? "" : ", " + child);
  }
  if (auto fused = dyn_cast<FusedLoc>(location)) {
    for (Location part : fused.getLocations())
      if (std::string text = shown(part); !text.empty())
        return text;
  }
  if (auto call = dyn_cast<CallSiteLoc>(location))
    return shown(call.getCallee());
  return {};
}

FirstError::FirstError(MLIRContext *context)
    : handler(context, [this](Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() == DiagnosticSeverity::Error && message.empty()) {
          std::string place = shown(diagnostic.getLocation());
          message = diagnostic.str() + (place.empty() ? "" : " (" + place + ")");
          std::replace(message.begin(), message.end(), '\n', ' ');
        }
        return success();
      }) {}

llvm::Error FirstError::take(StringRef otherwise) const {
  return llvm::createStringError(message.empty() ? otherwise : StringRef(message));
}

} // namespace mica::cpu
