//===- Formulas.h - arithmetic shared by plain and fused ops ----*- C++ -*-===//

#ifndef MICA_IR_INTERPRETER_FORMULAS_H
#define MICA_IR_INTERPRETER_FORMULAS_H

#include "ir/Interpreter/Value.h"

namespace mica::interp {

/// sum_i a[i] b[i] in f64.
double dot(llvm::ArrayRef<float> a, llvm::ArrayRef<float> b);

/// The values of `weight` in a matmul with rows of element type `rows`: block-quantized weights are
/// rounded to bf16 if rows are bf16. `rounded` is storage for the result if it is not `weight`
/// itself.
const Tensor &asMultiplied(const Tensor &weight, mlir::Type rows, Tensor &rounded);

/// The activation function of x; the formulas are in the descriptions of the ops of these names.
double activate(Activation activation, double x);

/// 1 / sqrt(mean(x^2) + eps).
double inverseRms(llvm::ArrayRef<float> x, double eps);

/// Cosines and sines of one position for all rope frequencies, [rotaryDim / 2] each.
struct Angles {
  llvm::SmallVector<double> cosines;
  llvm::SmallVector<double> sines;
};
Angles anglesAt(int64_t position, llvm::ArrayRef<float> frequencies, double amplitude);

/// Rotates the first rotaryDim elements of a head: each pair (a, b) becomes (a cos - b sin, b cos +
/// a sin).
void rotate(llvm::MutableArrayRef<double> head, const Angles &angles, Pairing pairing);

} // namespace mica::interp

#endif // MICA_IR_INTERPRETER_FORMULAS_H
