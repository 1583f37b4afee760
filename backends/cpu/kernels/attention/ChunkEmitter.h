//===- ChunkEmitter.h - the softmax of a chunk of positions -----*- C++ -*-===//

#ifndef MICA_BACKENDS_CPU_KERNELS_ATTENTION_CHUNKEMITTER_H
#define MICA_BACKENDS_CPU_KERNELS_ATTENTION_CHUNKEMITTER_H

#include "backends/cpu/kernels/attention/LimbRows.h"
#include "backends/cpu/kernels/attention/Scores.h"
#include "backends/cpu/kernels/attention/Softmax.h"

namespace mica::cpu {

/// Pairs of a row and a query head that are multiplied by a block together: 4 times 4 vectors of
/// scores.
inline constexpr int64_t kPairsOfTile = 4;

/// Emits the softmax of one chunk for all pairs of a row and a query head of a run. The order of a
/// pair's sums does not depend on the run: its operations are separate from those of other pairs,
/// and blocks that only other rows attend to do not change them, because masked scores have weights
/// of exactly zero.
class ChunkEmitter {
public:
  ChunkEmitter(KernelBuilder &b, mlir::ValueRange args, const AttentionSpec &spec);

  /// States of all pairs of a run, on the stack.
  SoftmaxStates makeStates() {
    return {b, b.stackBuffer({pairs, spec.stateWidth()}, b.getF32Type()), valuesOf(spec)};
  }

  mlir::Value positionOf(mlir::Value row) { return b.loadIndex(positions, row); }

  /// Starts a run of the rows [first, first + rows): loads their queries of part `part` of all
  /// heads.
  RowRun begin(mlir::Value part, mlir::Value first, mlir::Value rows);

  /// Calls `body(pair, row, query head)` for all pairs of a run.
  void eachPair(const RowRun &run,
                llvm::function_ref<void(mlir::Value, mlir::Value, mlir::Value)> body);

  /// Whether a row belongs to the run of the row before it.
  mlir::Value continuesRun(mlir::Value row);

  /// Stores `states` as those of chunk `number`.
  void emit(const RowRun &run, mlir::Value number);

private:
  /// Whether tile registers could multiply by both caches: pairs of bf16 in whole steps.
  bool fitsTiles() const;

  /// The type in which queries and softmax weights are stored for products with a cache of
  /// `element`: that of the cache if the target multiplies pairs of it fast, else f32.
  mlir::Type factorType(mlir::Type element) const;

  /// Whether the integers of a cache are multiplied directly; else they are converted to f32.
  bool usesInt8Dot(KvCacheType cache) const {
    return isQuantized(cache.getElementType()) && b.target.int8Dot;
  }

  PositionBlock blockAt(const RowRun &run, mlir::Value number);

  /// Single rows read a cache once; the first pairs of a block prefetch it. Null if the target does
  /// not prefetch.
  mlir::Value streamsAt(const RowRun &run, const PositionBlock &at, mlir::Value pair);

  /// Calls `body(first pair, pairs)` for tiles of the run's pairs.
  void eachPairTile(const RowRun &run, llvm::function_ref<void(mlir::Value, int64_t)> body);

  /// Adds a block to the softmaxes of `count` pairs.
  void emitBlock(const RowRun &run, const PositionBlock &at, mlir::Value pair, int64_t count);

  /// Adds a block to the softmaxes of all pairs of a run.
  void emitBlockInTiles(const RowRun &run, const PositionBlock &at);

  /// Adds the weights of a pair's scores of a block to its softmax and stores them in row `row`,
  /// multiplied by the scales of the values. `scaled` holds the scales of integers.
  void accumulateWeights(const PackedPanel &scaled, mlir::Value pair,
                         llvm::ArrayRef<mlir::Value> scores, mlir::Value correction,
                         mlir::Value row);

  PackedPanel panelOfKeys(const RowRun &run, const PositionBlock &at);
  PackedPanel panelOfValues(const RowRun &run, const PositionBlock &at);

  /// The values of a block of keys, as a block of values in `transposed`.
  void transposeValuesOf(const RowRun &run, const PositionBlock &at);

  /// Where the scales of a block of values are.
  PackedPanel panelOfScales(const RowRun &run, const PositionBlock &at) {
    return spec.valuesInKeys ? panelOfKeys(run, at) : panelOfValues(run, at);
  }

  /// What the values of 16 positions from `first` on are multiplied by: weights of the softmax,
  /// times the scales of integers.
  mlir::Value factorOf(mlir::Value weight, const PackedPanel &scaled, int64_t first);

  /// The scales of 16 positions from `first` on of a block of integers.
  mlir::Value loadScales(const PackedPanel &block, KvCacheType cache, int64_t first);

  // The two products with a block of a cache.

  /// How many vectors `count` rows of a product may have: accumulators leave half of the registers
  /// for what is multiplied, or a quarter where the two values of a pair are summed apart.
  int64_t vectorsFor(int64_t count, const std::optional<LimbRows> &limbs) const;

  /// q k^T of `count` pairs with the block: [pairs][vectors of positions].
  llvm::SmallVector<mlir::Value> multiplyKeys(const RowRun &run, const PositionBlock &at,
                                              mlir::Value pair, int64_t count);

  /// sums = sums * correction + weights * values of the block, as many columns at once as fit the
  /// registers.
  void addValues(PackedPanel panel, const PositionBlock &at, mlir::Value pair,
                 llvm::ArrayRef<mlir::Value> corrections);

  KernelBuilder &b;
  const AttentionSpec &spec;
  Chunks chunks;
  mlir::Value q, kCache, vCache, layer, sequences, positions;
  int64_t group, block;
  bool inTileOrder; ///< whether sums are made as tile registers make them
  bool inTiles;     ///< whether those do
  int64_t pairs;    ///< the most of a run, with room for whole tiles
  // On the stack.
  mlir::Value seen; ///< the last position that a pair attends to
  Scores shaping;
  mlir::Value queries, weights;    ///< where they are multiplied as floats
  mlir::Value scores, corrections; ///< f32 [pairs, block], [pairs]; with tiles
  mlir::Value transposed;          ///< a block of values that are cached in the keys
  std::optional<LimbRows> queryLimbs, weightLimbs; ///< for products with bytes

public:
  SoftmaxStates states; ///< of the current chunk, one per pair
};

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_KERNELS_ATTENTION_CHUNKEMITTER_H
