//===- InterleavedLayers.h - loops over interleaved layer types -*- C++ -*-===//

#ifndef MICA_PASSES_LAYERS_INTERLEAVEDLAYERS_H
#define MICA_PASSES_LAYERS_INTERLEAVEDLAYERS_H

#include "passes/layers/LayerCalls.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/IntEqClasses.h"
#include "llvm/ADT/MapVector.h"

namespace mica {

/// What calls hand from one to the next, each in a chain of its own: the stream of rows, each
/// cache. An operand and a result are in the same chain where some call takes what another one
/// gives.
class CarriedChains {
public:
  explicit CarriedChains(llvm::ArrayRef<mlir::func::CallOp> calls);

  /// Nothing where no call gives it.
  std::optional<unsigned> of(mlir::OpOperand &operand) const;
  /// Nothing where no call takes it.
  std::optional<unsigned> of(mlir::OpResult result) const;

private:
  unsigned nodeOf(mlir::OpOperand &operand) const;
  unsigned nodeOf(mlir::OpResult result) const;
  std::optional<unsigned> chainOf(unsigned node) const;

  llvm::DenseMap<mlir::Attribute, unsigned> firstNodes; ///< of the function that is called
  llvm::IntEqClasses classes;
  llvm::BitVector isJoined; ///< by node
};

/// Consecutive calls of several functions, in any order. A loop makes them in rounds: in each it
/// calls every function for as many layers as come one after the other.
/// Each does so in a loop within the loop, not in a branch of a switch: what a loop carries stays
/// in its buffer, and verifiers know how to follow a cache through it.
class InterleavedLayers {
public:
  /// The longest at the beginning of `calls`, or an empty one.
  static InterleavedLayers find(llvm::ArrayRef<mlir::func::CallOp> calls,
                                const CarriedChains &chains);

  llvm::ArrayRef<mlir::func::CallOp> getCalls() const { return calls; }
  size_t countKinds() const { return kinds.size(); }

  mlir::LogicalResult roll(mlir::IRRewriter &rewriter) const;

private:
  using Calls = llvm::SmallVector<mlir::func::CallOp>;
  struct Chain {
    mlir::OpOperand *first; ///< the operand with which the mix begins
    mlir::Value now;        ///< what is in the chain after the last call
    bool isReplaced = false;
  };
  friend class InterleavedRoller;

  explicit InterleavedLayers(const CarriedChains &flow) : flow(&flow) {}
  bool append(mlir::func::CallOp call);
  bool isUniform(mlir::OpOperand &operand) const;
  bool isLiveAfter(mlir::OpResult result) const;

  const CarriedChains *flow;
  Calls calls;
  llvm::MapVector<mlir::Attribute, Calls> kinds; ///< by the function, in the order of first calls
  llvm::MapVector<unsigned, Chain> chains;
};

} // namespace mica

#endif // MICA_PASSES_LAYERS_INTERLEAVEDLAYERS_H
