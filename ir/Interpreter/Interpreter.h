//===- Interpreter.h - the meaning of the mica dialect ----------*- C++ -*-===//
//
// Runs functions of the mica dialect op by op. Every op computes in f64 from what its operands hold
// and rounds its result once to the result's type; where an op rounds inside, its description says
// so. Slow on purpose: one small function per op, written like the op's formula. It is the oracle
// of every pass and every kernel.
//
//===----------------------------------------------------------------------===//

#ifndef MICA_IR_INTERPRETER_INTERPRETER_H
#define MICA_IR_INTERPRETER_INTERPRETER_H

#include "ir/Interpreter/Value.h"
#include "ir/Mica/Equalize.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

#include <functional>

namespace mica::interp {

/// The tensor of the checkpoint with this name, of any float type. Composing and rounding to the
/// type of the `mica.weight` is the interpreter's work.
using WeightProvider = std::function<llvm::Expected<Tensor>(llvm::StringRef name)>;

/// Called after every op with its results, before anyone reads them: what it puts in their place is
/// what later ops see. A cache changes in place later: clone() what shall be kept.
using TraceHook = std::function<void(mlir::Operation *op, llvm::ArrayRef<Value> operands,
                                     llvm::MutableArrayRef<Value> results)>;

class Interpreter {
public:
  /// `module` must be verified and outlive the interpreter. Without `weights` every mica.get_weight
  /// is an error.
  explicit Interpreter(mlir::ModuleOp module, WeightProvider weights = {}, TraceHook trace = {});

  /// Runs `function` of the module. Caches among `args` are copied first, so that the caller's stay
  /// as they are. An error names the op and its location.
  llvm::Expected<llvm::SmallVector<Value>> run(mlir::func::FuncOp function,
                                               llvm::ArrayRef<Value> args);

  /// For the functions of ops: runs a function of the module on the values as they are.
  llvm::Expected<llvm::SmallVector<Value>> call(mlir::func::FuncOp function,
                                                llvm::ArrayRef<Value> args);

  /// For the functions of ops: the value of a weight; read once.
  llvm::Expected<Value> weight(WeightOp op);

  const TraceHook &getTrace() const { return trace; }

private:
  /// A source of weights as they read it: balanced.
  llvm::Expected<Tensor> source(mlir::Attribute source);
  /// The same before balancing.
  llvm::Expected<Tensor> unbalanced(mlir::Attribute source);
  /// What a mica.equalize divides rows by and multiplies columns with.
  llvm::Expected<llvm::SmallVector<float>> factors(EqualizeOp op);
  llvm::Expected<llvm::SmallVector<float>> magnitudes(EqualizeOp op, bool ofRows);

  mlir::ModuleOp module;
  WeightProvider weights;
  TraceHook trace;
  llvm::DenseMap<mlir::Attribute, Equalization> balancing;
  llvm::StringMap<Value> loaded;
  int depth = 0;
};

/// Runs one function once; see Interpreter.
llvm::Expected<llvm::SmallVector<Value>> interpret(mlir::func::FuncOp function,
                                                   llvm::ArrayRef<Value> args,
                                                   WeightProvider weights = {},
                                                   TraceHook trace = {});

} // namespace mica::interp

#endif // MICA_IR_INTERPRETER_INTERPRETER_H
