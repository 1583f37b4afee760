//===- Phases.cpp - attributes that distinguish phases --------------------===//

#include "passes/support/Phases.h"

#include "ir/Mica/Mica.h"

using namespace mlir;

FailureOr<int64_t> mica::readRowsAttr(ModuleOp module, llvm::StringRef name, int64_t min,
                                      int64_t otherwise) {
  Attribute stated = module->getAttr(name);
  if (!stated)
    return otherwise;
  // Per-row buffers are sized by this limit.
  constexpr int64_t max = 1024;
  auto rows = dyn_cast<IntegerAttr>(stated);
  if (!rows || !rows.getType().isSignlessInteger(64) || rows.getInt() < min || rows.getInt() > max)
    return module.emitOpError() << "has " << name << " = " << stated
                                << ", write a number of rows from " << min << " to " << max;
  return rows.getInt();
}

bool mica::dependsOnRole(ModuleOp module, Type promptRows) {
  auto differs = [&](Value value) {
    Type element = getElementTypeOrSelf(value.getType());
    return isQuantized(element, QuantizedUse::Rows) && element != promptRows;
  };
  // Arguments of functions are results of ops in their callers.
  auto found = module.walk([&](Operation *op) {
    return llvm::any_of(op->getResults(), differs) ? WalkResult::interrupt()
                                                   : WalkResult::advance();
  });
  return found.wasInterrupted();
}

llvm::StringRef mica::rowRoleOf(Operation *function) {
  auto role = function->getAttrOfType<StringAttr>(kRowRoleAttr);
  return role ? role.getValue() : llvm::StringRef();
}
