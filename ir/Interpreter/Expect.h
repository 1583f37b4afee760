//===- Expect.h - functions that state their expected results ---*- C++ -*-===//

#ifndef MICA_IR_INTERPRETER_EXPECT_H
#define MICA_IR_INTERPRETER_EXPECT_H

#include "ir/Interpreter/Interpreter.h"

namespace mica::interp {

/// On a function: its expected results, one dense attribute per result; caches as tensors [layers,
/// batch, positions, heads, headDim]. A unit attribute matches any value.
inline constexpr llvm::StringLiteral kExpectAttr = "mica.expect";

/// On a function: the maximum error of results, max |a - b| / max |b|; default 1e-6.
inline constexpr llvm::StringLiteral kToleranceAttr = "mica.tolerance";

/// Unit attribute on a function: its results come in pairs that must be equal within the tolerance.
inline constexpr llvm::StringLiteral kExpectPairsAttr = "mica.expect_pairs";

/// On a function that must fail: a string that the error contains.
inline constexpr llvm::StringLiteral kExpectErrorAttr = "mica.expect_error";

/// max |a - b| / max |b| over all elements. Infinite if shapes or types differ, or if elements
/// differ of which one is not finite. Integers are compared exactly, quantized rows as f32.
double distance(const Tensor &actual, const Tensor &expected);

/// Whether the function has one of the attributes above.
bool hasExpectation(mlir::func::FuncOp function);

/// Compares the outcome of `function` with its expectation. Succeeds if the results are as expected
/// or the function failed as expected. Otherwise returns the error of the function, or one that
/// states the result, both values and the distance.
llvm::Error checkExpected(mlir::func::FuncOp function,
                          llvm::Expected<llvm::SmallVector<Value>> outcome);

} // namespace mica::interp

#endif // MICA_IR_INTERPRETER_EXPECT_H
