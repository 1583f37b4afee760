//===- Formulas.h - arithmetic that plain and fused ops share ---*- C++ -*-===//

#ifndef MICA_IR_INTERPRETER_FORMULAS_H
#define MICA_IR_INTERPRETER_FORMULAS_H

#include "ir/Interpreter/Value.h"

namespace mica::interp {

/// sum_i a[i] b[i] in f64.
double dot(llvm::ArrayRef<float> a, llvm::ArrayRef<float> b);

/// A weight as rows of element type `rows` multiply it: weights in blocks are rounded to bf16 where
/// rows are bf16. `rounded` is where the result is, if it is not the weight itself.
const Tensor &asMultiplied(const Tensor &weight, mlir::Type rows, Tensor &rounded);

/// silu, gelu, gelu_tanh or relu of x; formulas: the ops of these names.
double activate(Activation activation, double x);

/// 1 / sqrt(mean(x^2) + eps).
double inverseRms(llvm::ArrayRef<float> x, double eps);

/// Cosine and sine of one position for every frequency of rope, [rotaryDim / 2] each.
struct Angles {
  llvm::SmallVector<double> cosines;
  llvm::SmallVector<double> sines;
};
Angles anglesAt(int64_t position, llvm::ArrayRef<float> frequencies, double amplitude);

/// Rotates the first 2 * angles elements of a head: each pair (a, b) becomes (a cos - b sin, b cos
/// + a sin).
void rotate(llvm::MutableArrayRef<double> head, const Angles &angles, Pairing pairing);

} // namespace mica::interp

#endif // MICA_IR_INTERPRETER_FORMULAS_H
