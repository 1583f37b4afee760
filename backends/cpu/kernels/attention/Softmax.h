//===- Softmax.h - online softmax -------------------------------*- C++ -*-===//

#ifndef MICA_BACKENDS_CPU_KERNELS_ATTENTION_SOFTMAX_H
#define MICA_BACKENDS_CPU_KERNELS_ATTENTION_SOFTMAX_H

#include "backends/cpu/kernels/KernelBuilder.h"

namespace mica::cpu {

/// 2^x for x up to 1. The relative error is less than 5.5e-7 for x >= -126, and 0 for integers; the
/// absolute error is less than 2^-126 for x in (-127, -126); the result is 0 for x <= -127,
/// including -infinity.
mlir::Value emitExp2(KernelBuilder &b, mlir::Value x);

/// Softmaxes over the positions so far, in units of log2 (Milakov and Gimelshein 2018,
/// arXiv:1805.02867). A state is a row of memory [sums, totals, maximum]: the sums of values times
/// weights 2^(score - maximum), 16 lanes whose sum is the sum of the weights, and the maximum.
class SoftmaxStates {
public:
  /// `buffer` has states as its last dimension; a state sums `values` numbers, a multiple of 16.
  SoftmaxStates(KernelBuilder &b, mlir::Value buffer, int64_t values)
      : b(b), buffer(buffer), values(values) {}
  static int64_t widthFor(int64_t values) { return values + 2 * kLanes; }
  mlir::Value memory() const { return buffer; }

  /// Resets a state to no positions.
  void clear(mlir::ValueRange at);
  /// Adds the positions of another state.
  void merge(mlir::ValueRange at, const SoftmaxStates &other, mlir::ValueRange otherAt);
  void copyFrom(mlir::ValueRange at, const SoftmaxStates &other, mlir::ValueRange otherAt);

  // Positions are added in three steps: raise the maximum, add the weights, then scale the sums and
  // add values to them.

  /// Raises the maximum to that of `scores` and returns the old maximum minus the new one: 2 to the
  /// power of that is the correction by which totals and sums must be scaled.
  mlir::Value raiseMaximum(mlir::ValueRange at, llvm::ArrayRef<mlir::Value> scores,
                           float log2PerScore);
  /// Scales the totals by `correction` (in all lanes), adds the scores' weights and returns them.
  llvm::SmallVector<mlir::Value> addWeights(mlir::ValueRange at, llvm::ArrayRef<mlir::Value> scores,
                                            float log2PerScore, mlir::Value correction);

  /// Adds a score without a value, in units of log2.
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

/// The score of a masked position: its weight is zero even if there is no other position yet.
float hiddenScore(float log2PerScore);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_KERNELS_ATTENTION_SOFTMAX_H
