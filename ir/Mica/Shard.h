//===- Shard.h - models that several ranks run ------------------*- C++ -*-===//

#ifndef MICA_IR_MICA_SHARD_H
#define MICA_IR_MICA_SHARD_H

#include "ir/Entry/Ranks.h"

#include "mlir/IR/BuiltinOps.h"

#include <optional>

namespace mica {

/// On a module: the number of ranks that run it, from 2 to kMaxRanks.
inline constexpr llvm::StringLiteral kRanksAttr = "mica.ranks";

/// The number of ranks that run `module`: 1 unless it states another.
int64_t getRanks(mlir::ModuleOp module);

/// The number of parts of heads: as many as there are ranks; or one for each, which several ranks
/// have, if there are fewer heads than ranks. None if the numbers do not divide each other.
std::optional<int64_t> partsOfHeads(int64_t heads, int64_t ranks);

/// Fails unless `ranks`, for which `op` is partitioned, is the number of ranks of its module.
llvm::LogicalResult verifyRanks(mlir::Operation *op, int64_t ranks);

} // namespace mica

#endif // MICA_IR_MICA_SHARD_H
