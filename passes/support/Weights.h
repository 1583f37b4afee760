//===- Weights.h - composed weights and uses of weights ---------*- C++ -*-===//

#ifndef MICA_PASSES_SUPPORT_WEIGHTS_H
#define MICA_PASSES_SUPPORT_WEIGHTS_H

#include "passes/support/Calls.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace mica {

/// How an op uses a weight operand.
enum class WeightUse {
  None,    ///< no weight
  Product, ///< the matrix of a matmul
  Table,   ///< a matrix that rows are gathered from
  Vector,  ///< a norm weight or a bias: small, and kept in f32
  Router,  ///< the matrix of an expert router: multiplied, small, and kept in f32
};

/// How the owner of `operand` uses it.
WeightUse classifyWeightUse(mlir::OpOperand &operand);

/// The matrices of a matmul in order, inner ones (such as `down` of experts) last.
llvm::SmallVector<mlir::Value> allMatricesOf(MultipliesRows product);

/// The rows that `weight`, the matrix of a matmul, is multiplied by; null if they are not a value,
/// such as those between the two matrices of an expert.
mlir::Value multipliedRows(mlir::OpOperand &weight);

/// The symbol that `value` is read from by mica.get_weight; null for other values.
WeightOp lookupWeight(mlir::Value value, const mlir::SymbolTable &symbols);

/// A property shared by all values that are the same weight: the requirement of a use is propagated
/// through calls to the symbol and from there to all other values.
class WeightProperty {
public:
  /// `what` names the property in errors, e.g. "elements of".
  WeightProperty(mlir::ModuleOp module, llvm::StringRef what);

  /// Requires `property` of `value` for `user`; fails if another use requires a different one.
  llvm::LogicalResult require(mlir::Value value, mlir::Attribute property, mlir::Operation *user);

  /// All values that are the same weight as `value`, including itself.
  llvm::SetVector<mlir::Value> sameAs(mlir::Value value);
  /// The symbol of `value`, or null.
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

/// The weights that an op of the module uses in one of these ways, once each, in the order of their
/// first uses.
llvm::SmallVector<WeightOp> weightsUsedAs(mlir::ModuleOp module, llvm::ArrayRef<WeightUse> uses);

/// How several weights are composed into one; see `mica.weight`.
enum class Composition {
  Concat,          ///< rows one after the other
  Interleave,      ///< blocks of 64 rows that alternate
  StackInterleave, ///< stacks of matrices, interleaved entry by entry
};

/// Replaces weight arguments of private functions, and the weights at every call, by composed ones.
/// A composer is used for one pass over one module.
class WeightComposer {
public:
  explicit WeightComposer(mlir::ModuleOp module) : symbols(module) {}

  /// Why `weights` cannot be composed into one argument; empty if they can. They must be arguments
  /// of one private function, each used once, and no call may pass weights that are already
  /// composed differently.
  llvm::StringRef rejectionReason(mlir::ValueRange weights, Composition composition);

  /// Adds the composed argument of type `type` before the first of `weights`, and passes the
  /// composed weight at every call.
  mlir::BlockArgument compose(mlir::RewriterBase &rewriter, mlir::ValueRange weights,
                              Composition composition, mlir::RankedTensorType type);

  /// Removes arguments that have been composed and are no longer used.
  void eraseArguments(mlir::RewriterBase &rewriter, mlir::ValueRange weights);

  /// Removes weights that have been composed and are no longer referenced.
  void eraseUnusedWeights(mlir::ModuleOp module);

private:
  llvm::StringRef rejectionReasonAtCall(mlir::func::CallOp call, mlir::ValueRange weights,
                                        Composition composition);
  WeightOp composeSymbols(mlir::OpBuilder &builder, llvm::ArrayRef<WeightOp> parts,
                          Composition composition, mlir::RankedTensorType type);

  mlir::SymbolTable symbols;
  /// Composed weights by the names of their parts.
  llvm::DenseMap<mlir::Attribute, WeightOp> composed;
  /// Weights that have been composed into others.
  llvm::SetVector<mlir::Operation *> parts;
};

/// A readable name for the composition: a.q_proj.weight, a.k_proj.weight => a.qk_proj.weight; gate,
/// up => gate_up.
std::string composeNames(llvm::ArrayRef<llvm::StringRef> names);

} // namespace mica

#endif // MICA_PASSES_SUPPORT_WEIGHTS_H
