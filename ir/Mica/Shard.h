//===- Shard.h - models that several ranks run ------------------*- C++ -*-===//

#ifndef MICA_IR_MICA_SHARD_H
#define MICA_IR_MICA_SHARD_H

#include "ir/Entry/Ranks.h"

#include "mlir/IR/BuiltinOps.h"

namespace mica {

/// On a module: the number of ranks that run it, from 2 to kMaxRanks.
inline constexpr llvm::StringLiteral kRanksAttr = "mica.ranks";

/// The number of ranks that run `module`: 1 unless it states another.
int64_t getRanks(mlir::ModuleOp module);

/// Fails unless `ranks`, for which `op` is partitioned, is the number of ranks of its module.
llvm::LogicalResult verifyRanks(mlir::Operation *op, int64_t ranks);

} // namespace mica

#endif // MICA_IR_MICA_SHARD_H
