//===- ChunkEmitter.h - the softmax of a chunk of positions -----*- C++ -*-===//

#ifndef MICA_BACKENDS_CPU_KERNELS_ATTENTION_CHUNKEMITTER_H
#define MICA_BACKENDS_CPU_KERNELS_ATTENTION_CHUNKEMITTER_H

#include "backends/cpu/kernels/attention/HighLowRows.h"
#include "backends/cpu/kernels/attention/Scores.h"
#include "backends/cpu/kernels/attention/Softmax.h"

namespace mica::cpu {

/// The number of pairs of a row and a query head that are multiplied by a block together: 4 times 4
/// vectors of scores.
inline constexpr int64_t kPairsOfTile = 4;

/// Emits the softmax of one chunk for all pairs of a row and a query head of a run. The order of a
/// pair's sums does not depend on the run: its operations are separate from those of other pairs,
/// and blocks to which only other rows attend do not change them, because masked scores have
/// weights of exactly zero.
class ChunkEmitter {
public:
  ChunkEmitter(KernelBuilder &b, mlir::ValueRange args, const AttentionSpec &spec);

  /// The states of all pairs of a run, on the stack.
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

  /// Stores `states` as the states of chunk `number`.
  void emit(const RowRun &run, mlir::Value number);

private:
  /// Whether AMX tiles could multiply by both caches: pairs of bf16 in whole steps.
  bool fitsTiles() const;

  /// The type of queries and softmax weights that are multiplied by a cache of `element`: that of
  /// the cache if the target multiplies pairs of it fast, else f32.
  mlir::Type factorType(mlir::Type element) const;

  /// Whether the integers of a cache are multiplied directly instead of being converted to f32.
  bool usesInt8Dot(KvCacheType cache) const {
    return isQuantized(cache.getElementType()) && b.target.int8Dot;
  }

  PositionBlock blockAt(const RowRun &run, mlir::Value number);

  /// Whether `pair` prefetches: single rows read a cache once, and the first pairs of a block
  /// prefetch it. Null if the target does not prefetch.
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

  /// Transposes the values in a block of keys to a block of values in `transposed`.
  void transposeValuesOf(const RowRun &run, const PositionBlock &at);

  /// The scales of a block of values.
  PackedPanel panelOfScales(const RowRun &run, const PositionBlock &at) {
    return spec.valuesInKeys ? panelOfKeys(run, at) : panelOfValues(run, at);
  }

  /// The factors of the values of 16 positions starting at `first`: softmax weights, times the
  /// scales of integers.
  mlir::Value factorOf(mlir::Value weight, const PackedPanel &scaled, int64_t first);

  /// Loads the scales of 16 positions starting at `first` in a block of integers.
  mlir::Value loadScales(const PackedPanel &block, KvCacheType cache, int64_t first);

  // The two matmuls with a block of a cache.

  /// The maximum number of vectors for `count` rows of a matmul: accumulators leave half of the
  /// registers for operands, or a quarter if the two values of a pair are summed separately.
  int64_t vectorsFor(int64_t count, const std::optional<HighLowRows> &rows) const;

  /// q k^T of `count` pairs and the block: [pairs][vectors of positions].
  llvm::SmallVector<mlir::Value> multiplyKeys(const RowRun &run, const PositionBlock &at,
                                              mlir::Value pair, int64_t count);

  /// sums = sums * correction + weights * values of the block, for as many columns at once as fit
  /// in registers.
  void addValues(PackedPanel panel, const PositionBlock &at, mlir::Value pair,
                 llvm::ArrayRef<mlir::Value> corrections);

  KernelBuilder &b;
  const AttentionSpec &spec;
  Chunks chunks;
  mlir::Value q, kCache, vCache, layer, sequences, positions;
  int64_t group, block;
  bool inTileOrder; ///< whether sums have the order of AMX tiles
  bool inTiles;     ///< whether AMX tiles are used
  int64_t pairs;    ///< maximum of a run, rounded up to whole tiles
  // On the stack.
  mlir::Value seen; ///< last position attended to by each pair
  Scores shaping;
  mlir::Value queries, weights;    ///< if they are multiplied as floats
  mlir::Value scores, corrections; ///< f32 [pairs, block], [pairs]; with AMX tiles
  mlir::Value transposed;          ///< a block of values that are cached in the keys
  std::optional<HighLowRows> queryRows, weightRows; ///< if they are multiplied as bytes

public:
  SoftmaxStates states; ///< of the current chunk, one per pair
};

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_KERNELS_ATTENTION_CHUNKEMITTER_H
