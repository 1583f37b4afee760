//===- Phases.cpp - the attributes that tell phases apart -----------------===//

#include "passes/support/Phases.h"

#include "ir/Mica/Mica.h"

using namespace mlir;

FailureOr<int64_t> mica::readRowsAttr(ModuleOp module, llvm::StringRef name, int64_t least,
                                      int64_t otherwise) {
  Attribute stated = module->getAttr(name);
  if (!stated)
    return otherwise;
  // Buffers that every row needs are as large.
  constexpr int64_t most = 1024;
  auto rows = dyn_cast<IntegerAttr>(stated);
  if (!rows || !rows.getType().isSignlessInteger(64) || rows.getInt() < least ||
      rows.getInt() > most)
    return module.emitOpError() << "has " << name << " = " << stated
                                << ", write a number of rows from " << least << " to " << most;
  return rows.getInt();
}

/// Whether weights or rows of this type are computed differently in prompts and in decoding.
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
