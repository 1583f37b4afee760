//===- Interpreter.h - the reference interpreter ----------------*- C++ -*-===//
//
// Runs functions of the mica dialect op by op and thereby defines its semantics. Every op computes
// in f64 from the values of its operands and rounds its result once to the result's type; ops that
// round intermediate values state so in their descriptions. Slow on purpose: one small function per
// op, written like the op's formula. It is the oracle for every pass and every kernel.
//
//===----------------------------------------------------------------------===//

#ifndef MICA_IR_INTERPRETER_INTERPRETER_H
#define MICA_IR_INTERPRETER_INTERPRETER_H

#include "ir/Interpreter/Value.h"
#include "ir/Interpreter/WeightLoader.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

#include <functional>

namespace mica::interp {

class Frame;

/// Called after every op with its results, which it may replace before later ops use them. Caches
/// are later updated in place: clone() values that must be kept.
using TraceHook = std::function<void(mlir::Operation *op, llvm::ArrayRef<Value> operands,
                                     llvm::MutableArrayRef<Value> results)>;

class Interpreter {
public:
  /// `module` must be verified and outlive the interpreter. Without `weights`, every
  /// mica.get_weight is an error.
  explicit Interpreter(mlir::ModuleOp module, WeightProvider weights = {}, TraceHook trace = {});

  /// Runs `function` of the module. Caches among `args` are copied first, so that the caller's are
  /// not modified. An error names the op and its location. If several ranks run the module, all get
  /// these arguments and must return the same tensors; of caches, those of rank 0 are returned.
  llvm::Expected<llvm::SmallVector<Value>> run(mlir::func::FuncOp function,
                                               llvm::ArrayRef<Value> args);

  /// For op functions: runs a function of the module on the values of each rank, without copying
  /// caches.
  llvm::Expected<RankValues> call(mlir::func::FuncOp function, const RankValues &args);

  /// For op functions: the value of a weight on a rank, which is loaded once.
  llvm::Expected<Value> weight(WeightOp op, int64_t rank) { return weights.load(op, rank); }

  /// The number of ranks that run the module.
  int64_t getRanks() const { return weights.getRanks(); }

  /// For op functions: runs the ops of a block; returns the operands of its terminator.
  llvm::Expected<RankValues> runBlock(mlir::Block &block, Frame &frame);

private:
  llvm::Error runOp(mlir::Operation *op, Frame &frame);
  WeightLoader weights;
  TraceHook trace;
  int depth = 0;
};

/// Runs `function` once; see Interpreter.
llvm::Expected<llvm::SmallVector<Value>> interpret(mlir::func::FuncOp function,
                                                   llvm::ArrayRef<Value> args,
                                                   WeightProvider weights = {},
                                                   TraceHook trace = {});

} // namespace mica::interp

#endif // MICA_IR_INTERPRETER_INTERPRETER_H
