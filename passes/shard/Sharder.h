//===- Sharder.h - which part of a value a rank has -------------*- C++ -*-===//
//
// The ranks of a model run the same code. `mica-shard` follows the ops of each function in order:
// the rule of an op decides which parts of its operands a rank needs, and which part of its results
// a rank then has.
//
//===----------------------------------------------------------------------===//

#ifndef MICA_PASSES_SHARD_SHARDER_H
#define MICA_PASSES_SHARD_SHARDER_H

#include "passes/support/Weights.h"

namespace mica {

/// How the ranks have a value: a rank r of R has part r * parts / R along `axis`; with one part,
/// all of it. See #mica.shard.
struct Partition {
  int64_t parts = 1;
  int64_t axis = 0;

  bool isReplicated() const { return parts == 1; }
  bool operator==(const Partition &other) const {
    return parts == other.parts && (isReplicated() || axis == other.axis);
  }
};

/// What is known of a module while it is partitioned.
class Sharder {
public:
  Sharder(mlir::ModuleOp module, int64_t ranks)
      : ranks(ranks), module(module), weights(module, "the part") {}

  /// Partitions all functions. Fails with an error at the first op that cannot be partitioned.
  llvm::LogicalResult run();

  // For rules.

  /// Reports why `op` cannot be partitioned.
  llvm::LogicalResult refuse(mlir::Operation *op, const llvm::Twine &reason) const;
  /// The same of numbers of heads: also reports which numbers of ranks all of them allow.
  llvm::LogicalResult refuseHeads(mlir::Operation *op, const llvm::Twine &reason) const;
  Partition partitionOf(mlir::Value value) const { return partitions.lookup(value).partition; }
  /// Whether a weight is composed of several tensors, whose parts do not form a part of it.
  bool isComposed(mlir::Value weight);
  /// States how ranks have `result`, whose type so far is that of the whole.
  void setPartition(mlir::Value result, Partition partition);
  /// Requires that an op has all of an operand: gathers it where it is partitioned.
  llvm::LogicalResult requireReplicated(mlir::OpOperand &operand);
  /// Takes a rank's columns of an operand of which every rank has all.
  void sliceColumns(mlir::OpOperand &operand);
  /// requireReplicated for all operands of an op, weights among them.
  llvm::LogicalResult requireAllReplicated(mlir::Operation *op);
  /// Requires a part of a weight, of any axis that it has; null is no weight.
  llvm::LogicalResult requirePart(mlir::Value weight, Partition partition, mlir::Operation *op);

  const int64_t ranks;

private:
  struct Known {
    Partition partition;
    int64_t extent = 0; ///< of the whole, along the axis of the partition
  };

  llvm::LogicalResult partitionFunction(mlir::func::FuncOp function);
  llvm::LogicalResult partitionWeights();
  llvm::LogicalResult partitionStates();

  mlir::ModuleOp module;
  llvm::SmallVector<int64_t> possibleRanks; ///< at least 2, as far as heads are concerned
  llvm::DenseMap<mlir::Value, Known> partitions;
  /// What gathers a value.
  llvm::DenseMap<mlir::Value, mlir::Value> gathered;
  WeightProperty weights;
  llvm::SmallVector<std::pair<mlir::Value, ShardAttr>> parts;
};

/// The part of its results that a rank computes, and what it needs for that.
using ShardRule = std::function<llvm::LogicalResult(mlir::Operation *, Sharder &)>;

/// The rule of an op, or null.
ShardRule findShardRule(mlir::Operation *op);

} // namespace mica

#endif // MICA_PASSES_SHARD_SHARDER_H
