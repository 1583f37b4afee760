//===- Phases.cpp - the attributes that tell few rows from many ---------------===//

#include "passes/Kernels/Phases.h"

using namespace mlir;

FailureOr<int64_t> mica::rowsStated(ModuleOp module, llvm::StringRef name, int64_t least,
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
