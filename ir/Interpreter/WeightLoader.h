//===- WeightLoader.h - weights composed from checkpoint tensors *- C++ -*-===//

#ifndef MICA_IR_INTERPRETER_WEIGHTLOADER_H
#define MICA_IR_INTERPRETER_WEIGHTLOADER_H

#include "ir/Interpreter/Value.h"
#include "ir/Mica/Equalize.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

#include <functional>

namespace mica::interp {

/// Returns the checkpoint tensor with this name, of any float type. The interpreter composes
/// tensors and rounds them to the type of the `mica.weight`.
using WeightProvider = std::function<llvm::Expected<Tensor>(llvm::StringRef name)>;

/// The weights of a module: composed of the tensors of a checkpoint, equalized, and rounded to
/// their types.
class WeightLoader {
public:
  /// Without `weights`, loading any weight is an error.
  WeightLoader(mlir::ModuleOp module, WeightProvider weights);

  /// The value of a weight on a rank, which is loaded once.
  llvm::Expected<Value> load(WeightOp op, int64_t rank);

  /// The number of ranks that run the module.
  int64_t getRanks() const { return static_cast<int64_t>(loaded.size()); }

private:
  /// A source of a weight after equalization.
  llvm::Expected<Tensor> source(mlir::Attribute source);
  /// The same before equalization.
  llvm::Expected<Tensor> unbalanced(mlir::Attribute source);
  /// The factors b by which a mica.equalize divides rows and multiplies columns; see
  /// equalizationFactors.
  llvm::Expected<llvm::SmallVector<float>> factors(EqualizeOp op);
  llvm::Expected<llvm::SmallVector<float>> magnitudes(EqualizeOp op, bool ofRows);

  WeightProvider weights;
  llvm::DenseMap<mlir::Attribute, Equalization> equalizations;
  /// The weights of each rank.
  llvm::SmallVector<llvm::StringMap<Value>> loaded;
};

} // namespace mica::interp

#endif // MICA_IR_INTERPRETER_WEIGHTLOADER_H
