//===- OpTable.h - one function per op --------------------------*- C++ -*-===//

#ifndef MICA_IR_INTERPRETER_OPTABLE_H
#define MICA_IR_INTERPRETER_OPTABLE_H

#include "ir/Interpreter/Interpreter.h"

namespace mica::interp {

/// The SSA values of a running function. Types were checked when they were bound, so reading cannot
/// fail.
class Scope {
public:
  explicit Scope(Interpreter &interpreter) : interpreter(interpreter) {}

  const Tensor &tensor(mlir::Value value) const { return *values.find(value)->second.getTensor(); }
  int64_t scalar(mlir::Value value) const { return values.find(value)->second.getScalar(); }
  const CacheVersion &cache(mlir::Value value) const {
    return *values.find(value)->second.getCache();
  }
  Value get(mlir::Value value) const { return values.find(value)->second; }
  llvm::SmallVector<Value> get(mlir::ValueRange range) const;

  /// Fails unless `value` fits the type of `name`.
  llvm::Error bind(mlir::Value name, Value value);
  llvm::Error bind(mlir::ValueRange names, llvm::ArrayRef<Value> bound);

  /// Runs the ops of a block; yields the operands of its terminator.
  llvm::Expected<llvm::SmallVector<Value>> runBlock(mlir::Block &block);

  Interpreter &interpreter;

private:
  llvm::Error runOp(mlir::Operation *op);

  llvm::DenseMap<mlir::Value, Value> values;
};

/// An error that names the op and its location.
llvm::Error opError(mlir::Operation *op, const llvm::Twine &message);

/// Fails unless the tensors have the same extent along their first axis.
llvm::Error checkSameRows(mlir::Operation *op, const Scope &scope,
                          llvm::ArrayRef<mlir::Value> tensors);

/// Fails unless 0 <= index < size.
llvm::Error checkIndex(mlir::Operation *op, llvm::StringRef what, int64_t index, int64_t size);

using OpFunction =
    std::function<llvm::Expected<llvm::SmallVector<Value>>(mlir::Operation *, Scope &)>;

/// From the name of an op to the function that computes it.
class OpTable {
public:
  /// `function` returns the op's only result (a Tensor or a Value) or all results.
  template <typename OpT, typename ResultT>
  void add(llvm::Expected<ResultT> (*function)(OpT, Scope &)) {
    functions[OpT::getOperationName()] =
        [function](mlir::Operation *op, Scope &scope) -> llvm::Expected<llvm::SmallVector<Value>> {
      llvm::Expected<ResultT> result = function(llvm::cast<OpT>(op), scope);
      if (!result)
        return result.takeError();
      if constexpr (std::is_same_v<ResultT, Tensor>)
        result->roundRows();
      if constexpr (std::is_same_v<ResultT, llvm::SmallVector<Value>>)
        return result;
      else
        return llvm::SmallVector<Value>{Value(std::move(*result))};
    };
  }

  /// Null where the interpreter does not know the op.
  const OpFunction *lookup(mlir::Operation *op) const;

  /// The names of all known ops, for a test that none is missing.
  llvm::SmallVector<llvm::StringRef> names() const;

  static const OpTable &get();

private:
  llvm::StringMap<OpFunction> functions;
};

// One per topic, in the file of that name.
void addAttentionOps(OpTable &table);
void addControlOps(OpTable &table);
void addElementwiseOps(OpTable &table);
void addFusedOps(OpTable &table);
void addLinearOps(OpTable &table);
void addMoeOps(OpTable &table);
void addNormOps(OpTable &table);
void addStateOps(OpTable &table);
void addWeightOps(OpTable &table);

} // namespace mica::interp

#endif // MICA_IR_INTERPRETER_OPTABLE_H
