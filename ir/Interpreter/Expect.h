//===- Expect.h - functions that state their own results --------*- C++ -*-===//

#ifndef MICA_IR_INTERPRETER_EXPECT_H
#define MICA_IR_INTERPRETER_EXPECT_H

#include "ir/Interpreter/Interpreter.h"

namespace mica::interp {

/// Name of the attribute of a function that lists what it must return, one dense attribute per
/// result; caches as tensors [layers, batch, positions, heads, headDim]. A unit attribute stands
/// for any value.
inline constexpr llvm::StringLiteral kExpectAttr = "mica.expect";

/// Name of the attribute of a function that says how far results may be off: max |a - b| / max |b|,
/// default 1e-6.
inline constexpr llvm::StringLiteral kToleranceAttr = "mica.tolerance";

/// Name of the unit attribute of a function whose results come in pairs, which must be equal within
/// the tolerance.
inline constexpr llvm::StringLiteral kExpectPairsAttr = "mica.expect_pairs";

/// Name of the attribute of a function that must fail: a string that the error contains.
inline constexpr llvm::StringLiteral kExpectErrorAttr = "mica.expect_error";

/// max |a - b| / max |b| over all elements; infinite where shapes or types differ or one of both is
/// not finite where the other one differs from it. Integers are compared exactly, rows of integers
/// with a scale as f32.
double distance(const Tensor &actual, const Tensor &expected);

/// Whether the function says what it must return or how it must fail.
bool hasExpectation(mlir::func::FuncOp function);

/// Compares the outcome of `function` with its expectation. Succeeds where the results are as
/// expected or the function failed as it must; an error is the function's own or names the result,
/// both values and the distance.
llvm::Error checkExpected(mlir::func::FuncOp function,
                          llvm::Expected<llvm::SmallVector<Value>> outcome);

} // namespace mica::interp

#endif // MICA_IR_INTERPRETER_EXPECT_H
