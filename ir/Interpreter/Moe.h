//===- Moe.h - choices of experts that are as good as others ----*- C++ -*-===//

#ifndef MICA_IR_INTERPRETER_MOE_H
#define MICA_IR_INTERPRETER_MOE_H

#include "ir/Interpreter/Value.h"

namespace mica::interp {

/// What a gate of these operands gives to `experts`, in their order, where it could as well choose
/// them for this row: where it does once every product and every score is moved in their favor by
/// the share `slack` of what rounding can reach, the sum of the magnitudes of a product's terms and
/// the largest score. Nothing where others are better than that.
std::optional<llvm::SmallVector<float>>
weightsIfNearTie(MoeGateOp op, llvm::ArrayRef<Value> operands, int64_t row,
                 llvm::ArrayRef<int64_t> experts, double slack);

} // namespace mica::interp

#endif // MICA_IR_INTERPRETER_MOE_H
