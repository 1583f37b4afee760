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

/// Whether prefill and decode compute differently with weights of this type.
static bool dependsOnRole(Type type) {
  return mica::isQuantized(getElementTypeOrSelf(type), mica::QuantizedUse::Weights);
}

bool mica::dependsOnRole(ModuleOp module) {
  auto found = module.walk([](Operation *op) {
    auto weight = dyn_cast<WeightOp>(op);
    bool depends = weight ? ::dependsOnRole(weight.getTensorType())
                          : llvm::any_of(op->getResultTypes(),
                                         [](Type type) { return ::dependsOnRole(type); });
    return depends ? WalkResult::interrupt() : WalkResult::advance();
  });
  return found.wasInterrupted();
}

llvm::StringRef mica::rowRoleOf(Operation *function) {
  auto role = function->getAttrOfType<StringAttr>(kRowRoleAttr);
  return role ? role.getValue() : llvm::StringRef();
}
