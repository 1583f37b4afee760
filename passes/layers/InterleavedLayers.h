//===- InterleavedLayers.h - loops over interleaved layer types -*- C++ -*-===//

#ifndef MICA_PASSES_LAYERS_INTERLEAVEDLAYERS_H
#define MICA_PASSES_LAYERS_INTERLEAVEDLAYERS_H

#include "passes/layers/LayerCalls.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/IntEqClasses.h"
#include "llvm/ADT/MapVector.h"

namespace mica {

/// Groups the values that calls pass from one to the next into chains: the residual stream and each
/// cache. An operand and a result are in the same chain if some call takes as that operand what
/// another call returns as that result.
class CarriedChains {
public:
  explicit CarriedChains(llvm::ArrayRef<mlir::func::CallOp> calls);

  /// None if no call returns it.
  std::optional<unsigned> of(mlir::OpOperand &operand) const;
  /// None if no call takes it.
  std::optional<unsigned> of(mlir::OpResult result) const;

private:
  unsigned nodeOf(mlir::OpOperand &operand) const;
  unsigned nodeOf(mlir::OpResult result) const;
  std::optional<unsigned> chainOf(unsigned node) const;

  llvm::DenseMap<mlir::Attribute, unsigned> firstNodes; ///< of the function that is called
  llvm::IntEqClasses classes;
  llvm::BitVector isJoined; ///< by node
};

/// Consecutive calls of several functions, in any order. A loop executes them in rounds: each round
/// calls every function for as many consecutive layers as use it. It uses an inner loop for each
/// function, not a branch of a switch, because values carried by a loop stay in their buffers, and
/// because verifiers can follow a cache through loops.
class InterleavedLayers {
public:
  /// The longest such sequence at the beginning of `calls`, possibly empty.
  static InterleavedLayers find(llvm::ArrayRef<mlir::func::CallOp> calls,
                                const CarriedChains &chains);

  llvm::ArrayRef<mlir::func::CallOp> getCalls() const { return calls; }
  size_t getNumFunctions() const { return callsByFunction.size(); }

  mlir::LogicalResult roll(mlir::IRRewriter &rewriter) const;

private:
  using Calls = llvm::SmallVector<mlir::func::CallOp>;
  struct Chain {
    mlir::OpOperand *first; ///< the first operand of the chain
    mlir::Value now;        ///< the value of the chain after the last call
    bool isReplaced = false;
  };
  friend class InterleavedRoller;

  explicit InterleavedLayers(const CarriedChains &flow) : flow(&flow) {}
  bool append(mlir::func::CallOp call);
  bool isUniform(mlir::OpOperand &operand) const;
  bool isLiveAfter(mlir::OpResult result) const;

  const CarriedChains *flow;
  Calls calls;
  llvm::MapVector<mlir::Attribute, Calls>
      callsByFunction; ///< by the function, in the order of first calls
  llvm::MapVector<unsigned, Chain> chains;
};

} // namespace mica

#endif // MICA_PASSES_LAYERS_INTERLEAVEDLAYERS_H
