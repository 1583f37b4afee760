//===- Balance.h - channels of two tensors, made equally large -----*- C++ -*-===//
//
// What `mica.balance` means, for the interpreter and for the packer.
//
//===----------------------------------------------------------------------===//

#ifndef MICA_IR_MICA_BALANCE_H
#define MICA_IR_MICA_BALANCE_H

#include "ir/Mica/Mica.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

namespace mica {

/// The ops that say how each tensor of the checkpoint is scaled; null where it is not.
struct Balancing {
  BalanceOp rows;    ///< that divides its rows
  BalanceOp columns; ///< that multiplies its columns
};

/// By the names of tensors.
llvm::StringMap<Balancing> findBalancing(mlir::ModuleOp module);

/// b from the largest magnitudes of all channels' rows and columns.
llvm::SmallVector<float> balanceFactors(llvm::ArrayRef<float> rows, llvm::ArrayRef<float> columns);

} // namespace mica

#endif // MICA_IR_MICA_BALANCE_H
