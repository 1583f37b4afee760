//===- Balance.cpp - channels of two tensors, made equally large --------------===//

#include "ir/Mica/Balance.h"

#include <cmath>

using namespace mlir;
using namespace mica;

LogicalResult BalanceOp::verify() {
  if (getRows().empty() || getColumns().empty())
    return emitOpError("needs a tensor on both sides");
  return success();
}

llvm::StringMap<Balancing> mica::findBalancing(ModuleOp module) {
  llvm::StringMap<Balancing> result;
  for (BalanceOp op : module.getOps<BalanceOp>()) {
    for (StringRef name : op.getRows().getAsValueRange<StringAttr>())
      result[name].rows = op;
    for (StringRef name : op.getColumns().getAsValueRange<StringAttr>())
      result[name].columns = op;
  }
  return result;
}

SmallVector<float> mica::balanceFactors(ArrayRef<float> rows, ArrayRef<float> columns) {
  auto factor = [](auto pair) -> float {
    auto [row, column] = pair;
    double ratio = double(row) / column;
    if (!(ratio > 0) || std::isinf(ratio))
      return 1;
    // ratio = m 2^exponent with m in [1/2, 1).
    int exponent;
    std::frexp(ratio, &exponent);
    return std::ldexp(1.0f, std::clamp(exponent >> 1, -126, 127));
  };
  return llvm::map_to_vector(llvm::zip_equal(rows, columns), factor);
}
