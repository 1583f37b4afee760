//===- Tile.h - the inner loop of all products --------------------*- C++ -*-===//

#ifndef MICA_BACKENDS_CPU_KERNELS_MATMUL_TILE_H
#define MICA_BACKENDS_CPU_KERNELS_MATMUL_TILE_H

#include "backends/cpu/kernels/KernelBuilder.h"

#include <functional>

namespace mica::cpu {

/// A panel of packed values [groups along K][columns][depth] in contiguous memory: a block of a
/// weight, or of a cache.
struct PackedPanel {
  mlir::Value memory; ///< rank 1
  mlir::Value offset; ///< of the panel, in elements
  int64_t columns, depth;
  mlir::Type quantized = {}; ///< !mica.block of a weight, whose memory are bytes, else null
  /// Whether the one who reads it brings it from memory, as a part of a stream; null: no.
  mlir::Value streams = {};
};

/// A contiguous buffer as one row of memory.
mlir::Value flatten(KernelBuilder &b, mlir::Value buffer);

/// The panel of a contiguous buffer [..., groups, columns, depth] that `leading` indices select.
PackedPanel panelOf(KernelBuilder &b, mlir::Value buffer, mlir::ValueRange leading);

/// The panel [groups, columns, depth] that is the last axis of a contiguous buffer of any extents.
PackedPanel panelOf(KernelBuilder &b, mlir::Value buffer, mlir::ValueRange leading, int64_t columns,
                    int64_t depth);

/// A weight [..., n, k] of a product. `element` is its element type in the dialect.
struct WeightSpec {
  int64_t n, k;
  mlir::Type element;
  int64_t limbs = 0; ///< of rows of !mica.int_rows that multiply it; 0: rows of other types
};

/// The panel of 64 rows of a packed weight that `leading` indices (the block, or the expert and the
/// block) select.
PackedPanel weightPanel(KernelBuilder &b, mlir::Value buffer, mlir::ValueRange leading,
                        const WeightSpec &weight);

/// Groups along K of a panel that one multiplication of tile registers takes.
inline constexpr int64_t kTileGroups = 16;

/// Lines of a panel that a tile asks for while it computes: each of its groups for the `lines` from
/// its own place on, the first group from `begin` on.
struct LinesAhead {
  static constexpr int64_t kParts = 64;
  mlir::Value begin;    ///< in elements of the panel's memory
  mlir::Value perGroup; ///< from a group's place to the next one's, in elements / kParts
  int64_t lines = 0;    ///< 0: none are asked for
};

/// Sums over K for some rows and some columns of a panel.
struct ProductTile {
  mlir::Value x;      ///< the last axis is K
  int64_t k;          ///< extent of K where the panel is quantised
  mlir::Value groups; ///< whole groups of `depth` values along K, or where they end
  bool partial;       ///< one more value follows them
  PackedPanel panel;
  mlir::Value firstColumn;
  int64_t vectors;                                             ///< how many vectors of 16 columns
  llvm::SmallVector<llvm::SmallVector<mlir::Value>> rows = {}; ///< leading indices of x of each row
  llvm::SmallVector<mlir::Value> inits = {}; ///< what the sums start from; empty: zero
  mlir::Value from = {};                     ///< the first of the groups; null: 0
  LinesAhead ahead = {};
  /// Whether pairs are summed as tile registers do it: in each step of kTileGroups groups from
  /// zero, the first and the second values apart. Then there are three accumulators for each sum.
  bool asTiles = false;
  int64_t limbs = 0; ///< of rows of !mica.int_rows

  /// The sums [rows][vectors] of f32. Each adds its products in the order of K, whatever the tile's
  /// shape.
  llvm::SmallVector<mlir::Value> emit(KernelBuilder &b) const;
};

/// Asks for lines on behalf of a group of a tile, whose panel has `count` elements for each: for
/// those `ahead`, and where the target gains by it and the panel streams for those 32 KiB behind
/// the group.
void prefetchForGroup(KernelBuilder &b, const ProductTile &tile, mlir::Value group, int64_t count);

/// Where the target gains by it and the panel `streams`, asks for lines 32 KiB behind the `count`
/// elements that are `offset` behind the panel's first.
void prefetchAhead(KernelBuilder &b, const PackedPanel &panel, mlir::Value offset, int64_t count);

/// How many of [0, columns) a vector at `column` covers, at least zero; null where blocks of 64 are
/// whole.
mlir::Value liveColumns(KernelBuilder &b, mlir::Value column, int64_t columns);

/// The rows [from, to) of a product.
struct ProductRows {
  mlir::Value x; ///< the last axis is K
  mlir::Value from, to;
  /// What the number of a row stands for; null: itself.
  std::function<mlir::Value(mlir::Value)> name = {};
  /// Leading indices of x of the row of that name; null: the name.
  std::function<llvm::SmallVector<mlir::Value>(mlir::Value)> at = {};

  mlir::Value nameOf(mlir::Value number) const { return name ? name(number) : number; }
  llvm::SmallVector<mlir::Value> indicesOf(mlir::Value named) const {
    return at ? at(named) : llvm::SmallVector<mlir::Value>{named};
  }
};

/// Takes the sums [panels] of 16 columns from `column` of a block on, of the row of that name.
using StoreBlockSums = llvm::function_ref<void(mlir::Value block, mlir::Value name,
                                               mlir::Value column, llvm::ArrayRef<mlir::Value>)>;

/// Blocks [from, to) of a weight. The panels of one, of 64 columns each, and those of neighbouring
/// blocks stand behind each other in memory.
struct BlockSpan {
  mlir::Value from, to;
  int64_t panels = 1; ///< of a block
};
using PanelsOfBlock = llvm::function_ref<llvm::SmallVector<PackedPanel>(mlir::Value block)>;

/// Products of all rows with the columns of the blocks' panels, which are of a weight of the shape
/// and element type of `weight`. By vectors, or by the target's tile registers.
void emitBlockSums(KernelBuilder &b, const ProductRows &rows, const WeightSpec &weight,
                   BlockSpan blocks, PanelsOfBlock panelsOf, StoreBlockSums store);

/// The first and the second values of 16 pairs of bf16, as f32; and a pair in all lanes.
llvm::SmallVector<mlir::Value> widenPairs(KernelBuilder &b, mlir::Value pairs);
mlir::Value broadcastPair(KernelBuilder &b, mlir::Value pair);

/// Whether the target's tile registers multiply rows of x [..., k] with such a weight: pairs of
/// bf16, none left over.
bool multipliesInTiles(KernelBuilder &b, mlir::Value x, const WeightSpec &weight);

/// How many panels tile registers should meet at once: what is copied of the rows serves all of
/// them, and with 256 rows their part of K and their sums fit a second-level cache of 2 MiB.
inline constexpr int64_t kPanelsTogether = 8;

/// Neighbouring blocks of a weight, at least one.
struct BlockRun {
  mlir::Value first, count;
  int64_t most; ///< bound of the count
  PanelsOfBlock panelsOf;
};

/// emitBlockSums by tile registers, for a run.
void emitSumsInTiles(KernelBuilder &b, const ProductRows &rows, const WeightSpec &weight,
                     const BlockRun &run, StoreBlockSums store);

/// Rows in memory that tile registers multiply by columns of a panel of pairs of bf16. There are
/// whole tiles of kTileRows rows.
struct RowTiles {
  static constexpr int64_t kTileRows = 16;

  mlir::Value x;     ///< bf16 [rows, K]
  mlir::Value tiles; ///< of rows
  mlir::Value steps; ///< of kTileGroups groups along K
  PackedPanel panel;

  /// sums[row, column] = the products of [0, columns), a multiple of 16; `accumulate`: += those.
  void emit(KernelBuilder &b, mlir::Value sums, int64_t columns, bool accumulate) const;
};

/// The element of `x` whose bytes begin at `byte` of the row that `leading` names, in every lane.
mlir::Value broadcastOfRow(KernelBuilder &b, mlir::Value x, llvm::ArrayRef<mlir::Value> leading,
                           mlir::Value byte, mlir::Type element);

/// ProductTile::emit for panels of !mica.block and rows of !mica.int_rows: sums of integers within
/// a group, and these times both scales in f32, one group after the other. Groups along K are
/// blocks.
llvm::SmallVector<mlir::Value> emitBlockTile(KernelBuilder &b, const ProductTile &tile);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_KERNELS_MATMUL_TILE_H
