//===- Weights.h - weights made of weights, and what weights are for -*- C++ -*-===//

#ifndef MICA_PASSES_SUPPORT_WEIGHTS_H
#define MICA_PASSES_SUPPORT_WEIGHTS_H

#include "passes/support/Calls.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace mica {

/// How an op uses a weight operand.
enum class WeightUse {
  None,    ///< no weight
  Product, ///< a matrix that rows are multiplied with
  Table,   ///< a matrix that rows are gathered from
  Vector,  ///< a gain or a bias: small, and kept in f32
  Router,  ///< the matrix of a gate of experts: multiplied, small, and kept in f32
};

/// What `operand` is for its owner.
WeightUse classifyWeightUse(mlir::OpOperand &operand);

/// The rows that `weight`, a product's matrix, is multiplied with; null where no value holds them,
/// as those between the two matrices of an expert.
mlir::Value multipliedRows(mlir::OpOperand &weight);

/// A property that all values have that are the same weight: what a use needs spreads through calls
/// to the symbol and from there to all other values.
class WeightProperty {
public:
  /// `what` names the property in errors, e.g. "elements of".
  WeightProperty(mlir::ModuleOp module, llvm::StringRef what);

  /// `value` needs `property` for `user`; fails when another use needs another one.
  llvm::LogicalResult require(mlir::Value value, mlir::Attribute property, mlir::Operation *user);

  /// All values that are the same weight as `value`, itself among them.
  llvm::SetVector<mlir::Value> sameAs(mlir::Value value);
  /// The symbol that `value` is got from, or null.
  WeightOp symbolOf(mlir::Value value);

  /// Changes the types of all values that have the property, of their symbols and of functions.
  void apply(
      llvm::function_ref<mlir::RankedTensorType(mlir::RankedTensorType, mlir::Attribute)> convert);

private:
  void appendSame(mlir::Value value, llvm::SmallVectorImpl<mlir::Value> &open);

  mlir::ModuleOp module;
  llvm::StringRef what;
  mlir::SymbolTable symbols;
  llvm::DenseMap<mlir::StringAttr, llvm::SmallVector<mlir::Value>> gets;
  llvm::DenseMap<mlir::StringAttr, llvm::SmallVector<mlir::func::CallOp>> calls;
  llvm::MapVector<mlir::Value, mlir::Attribute> properties;
};

/// How several weights become one, in the words of `mica.weight`.
enum class Composition {
  Concat,          ///< rows one after the other
  Interleave,      ///< blocks of 64 rows that alternate
  StackInterleave, ///< stacks of matrices, entry by entry interleaved
};

/// Replaces weight arguments of private functions by arguments that are composed of them, and the
/// weights at every call as well. One composer serves one pass over one module.
class WeightComposer {
public:
  explicit WeightComposer(mlir::ModuleOp module) : symbols(module) {}

  /// Why `weights` cannot become one argument; empty when they can. They must be arguments of one
  /// private function, each used once, and every call must pass weights that are not composed in
  /// another way already.
  llvm::StringRef rejectionReason(mlir::ValueRange weights, Composition composition);

  /// Adds the composed argument before the first of `weights`; at the calls a composed weight
  /// of type `type`.
  mlir::BlockArgument compose(mlir::RewriterBase &rewriter, mlir::ValueRange weights,
                              Composition composition, mlir::RankedTensorType type);

  /// Removes arguments that have been composed and have no use any more.
  void eraseArguments(mlir::RewriterBase &rewriter, mlir::ValueRange weights);

  /// Removes the composed weights that nothing refers to any more.
  void eraseUnusedWeights(mlir::ModuleOp module);

private:
  llvm::StringRef rejectionReasonAtCall(mlir::func::CallOp call, mlir::ValueRange weights,
                                        Composition composition);
  WeightOp lookup(mlir::Value weight);
  WeightOp composeSymbols(mlir::OpBuilder &builder, llvm::ArrayRef<WeightOp> parts,
                          Composition composition, mlir::RankedTensorType type);

  mlir::SymbolTable symbols;
  /// Composed weights by the names of their parts.
  llvm::DenseMap<mlir::Attribute, WeightOp> composed;
  /// Weights that became parts of others.
  llvm::SetVector<mlir::Operation *> parts;
};

/// A legible name for the composition: a.q_proj.weight, a.k_proj.weight => a.qk_proj.weight; gate,
/// up => gate_up.
std::string composeNames(llvm::ArrayRef<llvm::StringRef> names);

} // namespace mica

#endif // MICA_PASSES_SUPPORT_WEIGHTS_H
