//===- LevelPanel.h - blocks expanded for integer matmuls -------*- C++ -*-===//

#ifndef MICA_BACKENDS_CPU_KERNELS_MATMUL_LEVELPANEL_H
#define MICA_BACKENDS_CPU_KERNELS_MATMUL_LEVELPANEL_H

#include "backends/cpu/kernels/matmul/ProductRows.h"
#include "backends/cpu/kernels/matmul/ProductTile.h"
#include "ir/Mica/Mica.h"

namespace mica::cpu {

/// A few chunks along K of a panel of a block-quantized weight, expanded for several tiles of
/// integer rows: on the stack, in the L1 cache.
class LevelPanel {
public:
  /// Allocates memory for levels that up to `maxRows` rows of `weight.rowBits` multiply.
  LevelPanel(KernelBuilder &b, const WeightSpec &weight, int64_t maxRows);

  /// The maximum number of chunks.
  static constexpr int64_t kChunks = 2;

  /// Expands the chunks [from, to) of a panel of the weight.
  void expand(const PackedPanel &panel, mlir::Value from, mlir::Value to) const;

  /// Sums the values of rows [first, end) in each group of the chunks [from, to), if the format has
  /// offsets, which multiply the sums.
  void sumRows(const ProductRows &rows, mlir::Value first, mlir::Value end, mlir::Value from,
               mlir::Value to) const;

  /// emitProductTile with those chunks: `tile.from` and `tile.groups` are `from` and `to`. The
  /// first of its rows is row `firstRow` of those of sumRows. Adds the same products in the same
  /// order as emitBlockTile.
  llvm::SmallVector<mlir::Value> emitTile(const ProductTile &tile, mlir::Value firstRow) const;

private:
  /// sums [16 x i32] + two consecutive words [32 x i16].
  mlir::Value addWords(mlir::Value sums, mlir::Value words) const;
  llvm::SmallVector<mlir::Value> sumGroup(const ProductTile &tile, mlir::Value chunk,
                                          int64_t group) const;
  llvm::SmallVector<mlir::Value> sumWords(const ProductTile &tile, mlir::Value chunk,
                                          int64_t group) const;
  /// Adds the products of pair `pair` of a chunk to sums [rows][vectors].
  void addPair(const ProductTile &tile, mlir::Value chunk, mlir::Value pair,
               llvm::MutableArrayRef<mlir::Value> sums) const;
  llvm::SmallVector<mlir::Value> sumBytes(const ProductTile &tile, mlir::Value chunk,
                                          int64_t group) const;
  mlir::Value loadLevels(const ProductTile &tile, mlir::Value chunk, mlir::Value number,
                         int64_t vector) const;
  void prefetchNext(const ProductTile &tile, mlir::Value chunk) const;
  mlir::Value offsetOfGroup(mlir::Value inPanel, int64_t group, mlir::Value column) const;

  /// How products of bytes are summed in words without overflow, by the number of bits of a level.
  enum class ByteSums {
    WholeGroup, ///< all quads of a group
    Pairs,      ///< two quads: registers are full of sums, so that more would not help
    Signed,     ///< one quad, and only as magnitudes of levels times rows with the levels' signs
  };
  ByteSums byteSums() const;
  bool hasWords() const { return b.hasWords(rowBits); }
  /// Pairs of words or quads of bytes of a chunk and a group.
  int64_t lanesPerChunk() const;
  int64_t lanesOfGroup() const { return lanesPerChunk() / groups; }

  KernelBuilder &b;
  const BlockFormat &format;
  int64_t rowBits, k;
  int64_t groups; ///< per chunk
  /// [kChunks][16 pairs][64][2] words, signed levels; or [kChunks][8 quads][64][4] bytes, as
  /// returned by loadQuad(), or signed if they have 8 bits.
  mlir::Value levels;
  mlir::Value steps, offsets; ///< [kChunks][groups][64]; null without offsets
  mlir::Value totals;         ///< [rows][kChunks][groups], of sumRows; null without offsets
};

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_KERNELS_MATMUL_LEVELPANEL_H
