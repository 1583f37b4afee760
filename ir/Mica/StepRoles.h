//===- StepRoles.h - roles of operands in a step ----------------*- C++ -*-===//

#ifndef MICA_IR_MICA_STEPROLES_H
#define MICA_IR_MICA_STEPROLES_H

#include "ir/Entry/EntryRoles.h"

#include "mlir/IR/Value.h"

#include <variant>

namespace mica {

/// Rows that a step computes: one per token, or one per output.
enum class StepRows { OfTokens, OfOutputs };

/// What a value has for each token or output of a step: a vector that an entry function takes, or
/// rows.
using StepRole = std::variant<EntryRole, StepRows>;

/// An operand and the role that it must have; null: an optional operand that is absent.
struct StepOperand {
  mlir::Value value;
  StepRole role;
};

} // namespace mica

#endif // MICA_IR_MICA_STEPROLES_H
