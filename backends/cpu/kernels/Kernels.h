//===- Kernels.h - the bodies of the generated kernels -----------*- C++ -*-===//
//
// One function per kernel. All take the builder and the kernel's arguments (begin, end, buffers...)
// in the order that the comment gives, and emit the work of the tasks [begin, end). Rows may have a
// stride; everything else is contiguous. A row's result depends on that row alone and on nothing
// that the number of rows or of threads changes.
//
//===----------------------------------------------------------------------===//

#ifndef MICA_BACKENDS_CPU_KERNELS_KERNELS_H
#define MICA_BACKENDS_CPU_KERNELS_KERNELS_H

#include "backends/cpu/kernels/matmul/Tile.h"
#include "ir/Mica/Mica.h"

namespace mica::cpu {

//===- Rows ------------------------------------------------------------------===//

/// x [T, C] or [T, H, D], gain, y: formula of mica.rmsnorm. A task is a row.
struct RmsNormSpec {
  double eps;
  double gainOffset;
  bool roundBeforeGain;
  int64_t limbs = 0; ///< of a result of !mica.int_rows; 0: it is of another type
};
void emitRmsNorm(KernelBuilder &b, mlir::ValueRange args, const RmsNormSpec &spec);

/// x, gain, (bias), y: formula of mica.layernorm. A task is a row.
void emitLayerNorm(KernelBuilder &b, mlir::ValueRange args, double eps, bool bias,
                   int64_t limbs = 0);

/// inputs..., y of one shape: y = compute(inputs), element by element. A task is a row.
void emitElementwise(
    KernelBuilder &b, mlir::ValueRange args,
    llvm::function_ref<mlir::Value(KernelBuilder &, llvm::ArrayRef<mlir::Value>)> compute);

/// x, rows i32 [O], y [O, C]. A task is a row of y.
void emitSelectRows(KernelBuilder &b, mlir::ValueRange args);
/// y = x times the logistic function of the row's own number.
void emitSigmoidGate(KernelBuilder &b, mlir::ValueRange args);

/// tokens i32 [T], table [V, C] or packed, y [T, C]. A task is a row.
void emitEmbedding(KernelBuilder &b, mlir::ValueRange args, const WeightSpec &table);

/// The nonlinearity on a vector of f32.
mlir::Value emitActivation(KernelBuilder &b, mlir::Value x, Activation activation);

/// What becomes of a gate and of what it lets through: activation(gate) * up, or, between limits,
/// what mica.moe_experts says of `clamped`.
struct Gating {
  struct Clamp {
    double alpha, limit;
  };
  Activation activation;
  std::optional<Clamp> clamp = std::nullopt;
};
mlir::Value emitGated(KernelBuilder &b, mlir::Value gate, mlir::Value up, const Gating &gating);

//===- Products ---------------------------------------------------------------===//

/// x [T, K], packed weight, (bias [N]), y [T, N]: y = x W^T + bias, or y += ... with `accumulate`.
/// A task is a block of 64 columns.
struct ProductSpec {
  WeightSpec weight;
  bool bias, accumulate;
};
void emitProduct(KernelBuilder &b, mlir::ValueRange args, const ProductSpec &spec);

/// x [T, K], packed gate and up, y [T, inner]: formula of mica.gated_linear. A task is a block of
/// 64 columns of y.
void emitGatedProduct(KernelBuilder &b, mlir::ValueRange args, const WeightSpec &weight,
                      int64_t inner, Activation activation);

/// x [T, H, K], packed weight [H, ...], y [T, H, N]: formula of mica.head_linear. A task is a head
/// and a block of 64 columns; those of a head are neighbours.
void emitHeadProduct(KernelBuilder &b, mlir::ValueRange args, const WeightSpec &weight);

/// The end of a gated product: of `sums`, the gate's and up's, 16 columns from `column` of block
/// `block` on, into the row of y [..., inner] with the leading indices `at`.
void storeGated(KernelBuilder &b, llvm::ArrayRef<mlir::Value> sums, mlir::Value block,
                mlir::Value column, const Gating &gating, int64_t inner, mlir::Value y,
                llvm::SmallVector<mlir::Value> at);

/// sums [T, columns] by oneDNN of the columns from `first` on, first, (bias [N]), y [T, N]: what
/// emitProduct makes of those columns. A task is a row.
void emitEpilogue(KernelBuilder &b, mlir::ValueRange args, const ProductSpec &spec,
                  int64_t columns);

/// The same for a gated product: sums, first, y [T, inner].
void emitGatedEpilogue(KernelBuilder &b, mlir::ValueRange args, int64_t inner,
                       Activation activation, int64_t columns);

/// packed weight in blocks, first block of 64 columns, panels [blocks][K / depth][64][depth] of f32
/// or bf16: those blocks as floats. A task is a block.
void emitExpandBlocks(KernelBuilder &b, mlir::ValueRange args, const WeightSpec &weight);

/// x [T, K] or [T, J, K], y: formula of a mica.cast to !mica.int_rows of so many limbs. A task is a
/// row.
void emitQuantize(KernelBuilder &b, mlir::ValueRange args, int64_t limbs);

//===- Positions, caches, attention ---------------------------------------------===//

/// The frequencies are a constant table: those of a short sequence [P], and behind them those of
/// one longer than `border`, [P], unless theta grows there.
struct RopeSpec {
  mlir::memref::GlobalOp frequencies;
  int64_t pairs;
  double theta;
  std::optional<int64_t> border; ///< where frequencies follow the length
  double growth = 0;             ///< factor of dynamic scaling
  float amplitude = 1;
};

/// positions i32 [T], (lengths i32 [T]), y [T, 2, P]: formula of mica.rope_table. A task is a row.
void emitRopeTable(KernelBuilder &b, mlir::ValueRange args, const RopeSpec &spec);

/// x [T, H, D], table [T, 2, P], y [T, H, D]. A task is a row.
void emitRope(KernelBuilder &b, mlir::ValueRange args, Pairing pairing);

/// positions, y [T, C]: formula of mica.sinusoid. A task is a row.
void emitSinusoid(KernelBuilder &b, mlir::ValueRange args, mlir::memref::GlobalOp frequencies,
                  int64_t offset, std::optional<int64_t> paddingIdx);

/// a, b, y [T, H, D]: formula of mica.join_heads. A task is a row.
void emitJoinHeads(KernelBuilder &b, mlir::ValueRange args);

/// x [T, G, D], sequences, positions, layer, cache: formula of mica.kv_append. A task is a row.
void emitKvAppend(KernelBuilder &b, mlir::ValueRange args, KvCacheType cache);

/// qkv [T, (H + 2G) D] or the first of several products with these columns, table, sequences,
/// positions, layer, (q gain, k gain), (the other products), q [T, H, D], k cache, v cache: formula
/// of mica.qkv_append. A task is a row.
struct QkvAppendSpec {
  int64_t heads;
  KvCacheType keys, values;
  Pairing pairing;
  std::optional<double> eps;
  float gainOffset = 0;
  int64_t parts = 0; ///< products besides the first
};
void emitQkvAppend(KernelBuilder &b, mlir::ValueRange args, const QkvAppendSpec &spec);

/// Attention over the caches themselves: formula of mica.attention, with an online softmax over
/// blocks of positions. Positions are cut into chunks (see #mica.attention_tiling): how many a row
/// has depends on its position alone.
struct AttentionSpec {
  /// Of a row without window; a window may begin inside of one more.
  static constexpr int64_t kMostChunks = 16;

  int64_t heads;
  KvCacheType keys, values;
  double scale;
  std::optional<int64_t> window;
  std::optional<double> softcap;
  AttentionTilingAttr tiling;
  mlir::memref::GlobalOp slopes = {}; ///< of ALiBi [H], or null
  bool sinks = false;
  /// Whether values are the first elements of the keys, which alone are cached. `values` then says
  /// how they stand in a block once that has been turned.
  bool valuesInKeys = false;

  /// Query heads of a task, which share a key/value head, and into how many tasks those that share
  /// one are cut.
  int64_t headsOfTask() const {
    int64_t shared = heads / keys.getHeads();
    return tiling.getHeads() == 0 ? shared : std::min(tiling.getHeads(), shared);
  }
  int64_t parts() const { return heads / keys.getHeads() / headsOfTask(); }
  /// Tasks of a tile or a chunk.
  int64_t headTasks() const { return keys.getHeads() * parts(); }

  int64_t mostChunks() const { return kMostChunks + (window ? 1 : 0); }
  /// Numbers of which the softmax over a chunk consists: see SoftmaxStates.
  int64_t stateWidth() const;
};

/// q [T, H, D], k cache, v cache, layer, sequences, positions, (sinks [H]), y [T, H, D]. A task is
/// some query heads of a key/value head and a tile of rows.
void emitAttention(KernelBuilder &b, mlir::ValueRange args, const AttentionSpec &spec);

/// q, k cache, v cache, layer, sequences, positions, N (the most chunks of a row), (sinks), parts
/// [T', most chunks, H, state width], y: rows that see one chunk get y, others parts. A task is
/// some query heads of a key/value head, one of N chunks and a row.
void emitAttentionChunks(KernelBuilder &b, mlir::ValueRange args, const AttentionSpec &spec);

/// positions, parts, (sinks), y: the other rows of y. A task is a query head of a row.
void emitAttentionCombine(KernelBuilder &b, mlir::ValueRange args, const AttentionSpec &spec);

/// How many chunks a row at `position` sees.
mlir::Value emitChunkCount(KernelBuilder &b, mlir::Value position, const AttentionSpec &spec);

//===- Mixtures of experts ----------------------------------------------------------===//

/// logits [T, E], (correction [E]), weights [T, k], experts i32 [T, k]: scoring, choice and
/// normalisation of mica.moe_gate. A task is a row.
struct GateSpec {
  Scoring scoring;
  int64_t experts, k;
  bool normalize;
  bool correction = false;
  int64_t groups = 0, keptGroups = 0; ///< 0: there are none
  GroupScoring groupScoring = GroupScoring::Best;
};
void emitGate(KernelBuilder &b, mlir::ValueRange args, const GateSpec &spec);

/// experts i32 [T, k], order i32 [T, k], starts i32 [E + 1]: sorts the pairs (row, choice),
/// numbered row * k + choice, by expert; those of expert e stand at order[starts[e] .. starts[e +
/// 1]). One task.
void emitRoute(KernelBuilder &b, mlir::ValueRange args, int64_t experts, int64_t k);

/// x [T, K], order, starts, packed gate and up [E, ...], (biases of gate and up [E, inner]), h [T,
/// k, inner]. A task is an expert and a block of 64 columns of h.
void emitExpertsUp(KernelBuilder &b, mlir::ValueRange args, const WeightSpec &weight, int64_t inner,
                   const Gating &gating);

/// h [T, k, inner], order, starts, packed down [E, ...], (bias [E, C]), parts [T, k, C]. A task is
/// an expert and a block of 64 columns.
void emitExpertsDown(KernelBuilder &b, mlir::ValueRange args, const WeightSpec &weight);

/// parts [T, k, C], weights [T, k], y [T, C]: y = sum_j weights_j parts_j, or y += with
/// `accumulate`. A task is a row.
void emitCombine(KernelBuilder &b, mlir::ValueRange args, bool accumulate);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_KERNELS_KERNELS_H
