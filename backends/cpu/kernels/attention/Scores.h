//===- Scores.h - softcap, ALiBi and masks of scores ------------*- C++ -*-===//

#ifndef MICA_BACKENDS_CPU_KERNELS_ATTENTION_SCORES_H
#define MICA_BACKENDS_CPU_KERNELS_ATTENTION_SCORES_H

#include "backends/cpu/kernels/attention/Chunks.h"

namespace mica::cpu {

/// Scores of pairs of a row and a query head for the positions of a block: soft-capped, with
/// ALiBi's bias, and masked.
class Scores {
public:
  /// `seen`: the last position that each pair attends to.
  Scores(KernelBuilder &b, const AttentionSpec &spec, mlir::Value seen)
      : b(b), spec(spec), seen(seen), group(spec.headsOfTask()),
        block(spec.keys.getLayout().getBlock()) {}

  /// The factor that converts scores to units of log2: the softmax scale, unless soft-cap or slopes
  /// have already applied it, times log2(e).
  float log2PerScore() const;
  /// Applies the soft-cap and the slopes to scores [pairs][vectors], for the pairs starting at
  /// `pair`.
  llvm::SmallVector<mlir::Value> shaped(mlir::Value part, const PositionBlock &at, mlir::Value pair,
                                        llvm::ArrayRef<mlir::Value> scores);
  /// Masks scores [pairs][vectors], for the pairs starting at `pair`.
  llvm::SmallVector<mlir::Value> hide(const PositionBlock &at, mlir::Value pair,
                                      llvm::ArrayRef<mlir::Value> scores);

private:
  /// The lanes of the positions starting at `first` to which a row at `position` attends.
  mlir::Value seenFrom(mlir::Value position, mlir::Value first);
  /// Scores of 16 keys starting at `first`, scaled, minus the slope of the pair's head times their
  /// distance.
  mlir::Value addDistance(mlir::Value part, mlir::Value score, mlir::Value pair, mlir::Value first);
  mlir::Value cap(mlir::Value score);

  KernelBuilder &b;
  const AttentionSpec &spec;
  mlir::Value seen;
  int64_t group, block;
};

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_KERNELS_ATTENTION_SCORES_H
