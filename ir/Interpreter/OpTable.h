//===- OpTable.h - one function per op --------------------------*- C++ -*-===//

#ifndef MICA_IR_INTERPRETER_OPTABLE_H
#define MICA_IR_INTERPRETER_OPTABLE_H

#include "ir/Interpreter/Value.h"
#include "ir/Mica/Mica.h"

#include "llvm/ADT/StringMap.h"

#include <functional>

namespace mica::interp {

class Interpreter;

/// The SSA values of a running function on one rank. Types were checked when they were bound, so
/// reading cannot fail.
class Scope {
public:
  Scope(Interpreter &interpreter, int64_t rank) : interpreter(interpreter), rank(rank) {}

  const Tensor &tensor(mlir::Value value) const { return *values.find(value)->second.getTensor(); }
  int64_t scalar(mlir::Value value) const { return values.find(value)->second.getScalar(); }
  const CacheVersion &cache(mlir::Value value) const {
    return *values.find(value)->second.getCache();
  }
  Value get(mlir::Value value) const { return values.find(value)->second; }
  llvm::SmallVector<Value> get(mlir::ValueRange range) const;

  /// Binds `value` to `name`; fails unless it fits the type of `name`.
  llvm::Error bind(mlir::Value name, Value value);
  llvm::Error bind(mlir::ValueRange names, llvm::ArrayRef<Value> bound);

  Interpreter &interpreter;
  int64_t rank;

private:
  llvm::DenseMap<mlir::Value, Value> values;
};

/// A running function on all ranks of the module, which run each op before any of them runs the
/// next one. Ranks thus exchange values in the middle of a function without threads and in a fixed
/// order. They take the same branches: no op returns a scalar that differs between ranks.
class Frame {
public:
  Frame(Interpreter &interpreter, int64_t ranks);

  /// The scope of each rank.
  llvm::MutableArrayRef<Scope> ranks() { return scopes; }
  /// A scalar, which is the same on all ranks.
  int64_t scalar(mlir::Value value) const { return scopes.front().scalar(value); }
  RankValues get(mlir::ValueRange range) const;

  /// Fails unless the values of each rank fit the types of `names`.
  llvm::Error bind(mlir::ValueRange names, llvm::ArrayRef<llvm::SmallVector<Value>> bound);

  Interpreter &interpreter;

private:
  llvm::SmallVector<Scope, 0> scopes;
};

/// An error that names the op and its location.
llvm::Error opError(mlir::Operation *op, const llvm::Twine &message);

/// Fails unless the tensors have the same extent along their first axis.
llvm::Error checkSameRows(mlir::Operation *op, const Scope &scope,
                          llvm::ArrayRef<mlir::Value> tensors);

/// Fails unless 0 <= index < size.
llvm::Error checkIndex(mlir::Operation *op, llvm::StringRef what, int64_t index, int64_t size);

using OpFunction = std::function<llvm::Expected<RankValues>(mlir::Operation *, Frame &)>;

/// Maps the name of an op to the function that computes it.
class OpTable {
public:
  /// Adds `function` for ops of type `OpT` that each rank computes by itself; it returns the op's
  /// only result (a Tensor or a Value) or all results.
  template <typename OpT, typename ResultT>
  void add(llvm::Expected<ResultT> (*function)(OpT, Scope &)) {
    functions[OpT::getOperationName()] = [function](mlir::Operation *op,
                                                    Frame &frame) -> llvm::Expected<RankValues> {
      RankValues results;
      for (Scope &scope : frame.ranks()) {
        llvm::Expected<ResultT> result = function(llvm::cast<OpT>(op), scope);
        if (!result)
          return result.takeError();
        if constexpr (std::is_same_v<ResultT, Tensor>)
          result->roundRows();
        if constexpr (std::is_same_v<ResultT, llvm::SmallVector<Value>>)
          results.push_back(std::move(*result));
        else
          results.push_back({Value(std::move(*result))});
      }
      return results;
    };
  }

  /// Adds `function` for ops that ranks compute together: control flow and communication.
  template <typename OpT> void add(llvm::Expected<RankValues> (*function)(OpT, Frame &)) {
    functions[OpT::getOperationName()] = [function](mlir::Operation *op, Frame &frame) {
      return function(llvm::cast<OpT>(op), frame);
    };
  }

  /// Null if the interpreter does not support the op.
  const OpFunction *lookup(mlir::Operation *op) const;

  /// The names of all supported ops, for a test that none is missing.
  llvm::SmallVector<llvm::StringRef> names() const;

  static const OpTable &get();

private:
  llvm::StringMap<OpFunction> functions;
};

// One per topic, defined in the file of that name.
void addAttentionOps(OpTable &table);
void addControlOps(OpTable &table);
void addElementwiseOps(OpTable &table);
void addFusedOps(OpTable &table);
void addLinearOps(OpTable &table);
void addMoeOps(OpTable &table);
void addNormOps(OpTable &table);
void addShardOps(OpTable &table);
void addStateOps(OpTable &table);
void addWeightOps(OpTable &table);

} // namespace mica::interp

#endif // MICA_IR_INTERPRETER_OPTABLE_H
