//===- Phases.cpp - the attributes that tell few rows from many ---------------===//

#include "passes/Kernels/Phases.h"

using namespace mlir;

FailureOr<int64_t> mica::rowsStated(ModuleOp module, llvm::StringRef name, int64_t least,
                                    int64_t otherwise) {
  Attribute stated = module->getAttr(name);
  if (!stated)
    return otherwise;
  auto rows = dyn_cast<IntegerAttr>(stated);
  if (!rows || rows.getInt() < least)
    return module.emitOpError() << "has " << name << " = " << stated
                                << ", write a number of rows from " << least << " on";
  return rows.getInt();
}
