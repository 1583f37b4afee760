//===- Softmax.h - softmax over positions that come piece by piece -*- C++ -*-===//

#ifndef MICA_BACKENDS_CPU_KERNELS_ATTENTION_SOFTMAX_H
#define MICA_BACKENDS_CPU_KERNELS_ATTENTION_SOFTMAX_H

#include "backends/cpu/kernels/KernelBuilder.h"

namespace mica::cpu {

/// 2^x for x up to 1, with a relative error below 5.5e-7 from -126 on and exact at integers; an
/// absolute one below 2^-126 between -127 and -126; zero from there on, -infinity included.
mlir::Value emitExp2(KernelBuilder &b, mlir::Value x);

/// Softmaxes over the positions seen so far, all numbers in units of log2 (Milakov and Gimelshein
/// 2018, arXiv:1805.02867). Each is a row of memory [sums, totals, maximum]: the sums of values by
/// weights 2^(score - maximum), 16 lanes whose sum is the sum of the weights, and the maximum.
class SoftmaxStates {
public:
  /// `buffer` holds states in its last axis; a state sums `values` numbers, a multiple of 16.
  SoftmaxStates(KernelBuilder &b, mlir::Value buffer, int64_t values)
      : b(b), buffer(buffer), values(values) {}
  static int64_t widthFor(int64_t values) { return values + 2 * kLanes; }
  mlir::Value memory() const { return buffer; }

  /// No positions.
  void clear(mlir::ValueRange at);
  /// Both sets of positions.
  void merge(mlir::ValueRange at, const SoftmaxStates &other, mlir::ValueRange otherAt);
  void copyFrom(mlir::ValueRange at, const SoftmaxStates &other, mlir::ValueRange otherAt);

  // Adding positions takes three steps: the maximum, the weights, and the code that adds values
  // scales the sums first.

  /// Raises the maximum to that of `scores` and returns what it was less what it is: 2 to the power
  /// of that is the correction, by which totals and sums must be scaled.
  mlir::Value raiseMaximum(mlir::ValueRange at, llvm::ArrayRef<mlir::Value> scores,
                           float log2PerScore);
  /// Scales the totals by `correction` (in all lanes), adds the scores' weights and returns those.
  llvm::SmallVector<mlir::Value> addWeights(mlir::ValueRange at, llvm::ArrayRef<mlir::Value> scores,
                                            float log2PerScore, mlir::Value correction);

  /// One more score, of no value, in units of log2.
  void addScore(mlir::ValueRange at, mlir::Value log2Score);

  mlir::Value loadSum(mlir::ValueRange at, mlir::Value column) const {
    return b.loadVector(buffer, place(at, column));
  }
  void storeSum(mlir::Value sum, mlir::ValueRange at, mlir::Value column) {
    b.storeVector(sum, buffer, place(at, column));
  }
  /// Calls `store(column, live, vector)` for the weighted means of the values.
  void eachMean(mlir::ValueRange at, int64_t columns,
                llvm::function_ref<void(mlir::Value, mlir::Value, mlir::Value)> store);

private:
  llvm::SmallVector<mlir::Value> place(mlir::ValueRange at, mlir::Value column) const {
    llvm::SmallVector<mlir::Value> index(at);
    index.push_back(column);
    return index;
  }
  llvm::SmallVector<mlir::Value> totalsAt(mlir::ValueRange at) const {
    return place(at, b.idx(values));
  }
  llvm::SmallVector<mlir::Value> maximumAt(mlir::ValueRange at) const {
    return place(at, b.idx(values + kLanes));
  }

  KernelBuilder &b;
  mlir::Value buffer;
  int64_t values;
};

/// A score that is not seen: its weight is zero even where no position is seen yet.
float hiddenScore(float log2PerScore);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_KERNELS_ATTENTION_SOFTMAX_H
