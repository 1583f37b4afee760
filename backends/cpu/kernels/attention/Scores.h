//===- Scores.h - what becomes of scores before the softmax -----*- C++ -*-===//

#ifndef MICA_BACKENDS_CPU_KERNELS_ATTENTION_SCORES_H
#define MICA_BACKENDS_CPU_KERNELS_ATTENTION_SCORES_H

#include "backends/cpu/kernels/attention/Chunks.h"

namespace mica::cpu {

/// Scores of pairs of a row and a query head with the positions of a block: capped, less what is
/// due to their distance, hidden where they are not seen.
class Scores {
public:
  /// `seen`: the last position that each pair sees.
  Scores(KernelBuilder &b, const AttentionSpec &spec, mlir::Value seen)
      : b(b), spec(spec), seen(seen), group(spec.headsOfTask()),
        block(spec.keys.getLayout().getBlock()) {}

  /// Of a score after the soft-cap and the slopes, which are of scaled scores.
  float log2PerScore() const;
  /// Scores [pairs][vectors] of the pairs from `pair` on after the soft-cap and the slopes.
  llvm::SmallVector<mlir::Value> shaped(mlir::Value part, const PositionBlock &at, mlir::Value pair,
                                        llvm::ArrayRef<mlir::Value> scores);
  /// Scores [pairs][vectors] of the pairs from `pair` on, hidden where they are not seen.
  llvm::SmallVector<mlir::Value> hide(const PositionBlock &at, mlir::Value pair,
                                      llvm::ArrayRef<mlir::Value> scores);

private:
  /// Lanes of the vector of positions from `first` on that a row at `position` sees.
  mlir::Value seenFrom(mlir::Value position, mlir::Value first);
  /// The scaled score of 16 keys from `first` on, less the slope of the pair's head times their
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
