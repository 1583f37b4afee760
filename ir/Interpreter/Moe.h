//===- Moe.h - near-tied routing --------------------------------*- C++ -*-===//

#ifndef MICA_IR_INTERPRETER_MOE_H
#define MICA_IR_INTERPRETER_MOE_H

#include "ir/Interpreter/Value.h"

namespace mica::interp {

/// The weights of `experts`, in their order, if the gate with these operands could equally select
/// them for row `row`; else nullopt. It could if it selects them after every logit and score has
/// been shifted in their favor by `slack` times the magnitude that rounding errors are relative to:
/// the sum of the magnitudes of a logit's terms, and the largest score.
std::optional<llvm::SmallVector<float>>
weightsIfNearTie(MoeGateOp op, llvm::ArrayRef<Value> operands, int64_t row,
                 llvm::ArrayRef<int64_t> experts, double slack);

} // namespace mica::interp

#endif // MICA_IR_INTERPRETER_MOE_H
