//===- BlockReader.h - packed blocks in registers ---------------*- C++ -*-===//

#ifndef MICA_BACKENDS_CPU_KERNELS_MATMUL_BLOCKREADER_H
#define MICA_BACKENDS_CPU_KERNELS_MATMUL_BLOCKREADER_H

#include "backends/cpu/kernels/matmul/Panel.h"
#include "ir/Mica/Mica.h"

namespace mica::cpu {

/// Reads what a panel of a weight in blocks has of 16 neighboring columns; see PackedBlocks. Bytes
/// are those of the panel's memory.
class BlockReader {
public:
  BlockReader(KernelBuilder &b, const PackedPanel &panel);

  const BlockFormat &format;
  PackedBlocks packed;

  /// The byte where block `block` begins, and where chunk `chunk` of the block at byte `block`
  /// does.
  mlir::Value blockAt(mlir::Value block) const;
  mlir::Value chunkAt(mlir::Value block, mlir::Value chunk) const;

  /// Prefetches for the header of the block that begins at byte `block`, and for the planes of the
  /// chunk that begins at byte `chunk`.
  void prefetchHeader(mlir::Value block) const;
  void prefetchChunk(mlir::Value chunk) const;

  /// Scales of the columns from `column` on as f32, of the block that begins at byte `block`; and,
  /// with their sign, what levels times steps are added to. Null without offsets.
  mlir::Value loadScales(mlir::Value block, mlir::Value column) const;
  mlir::Value loadOffsets(mlir::Value block, mlir::Value column) const;

  /// What one unit of a level is in group `group` of a chunk, and its offset: the block's own,
  /// times the sub-scales.
  mlir::Value stepOf(mlir::Value scales, mlir::Value chunk, mlir::Value column,
                     int64_t group) const;
  mlir::Value offsetOf(mlir::Value offsets, mlir::Value chunk, mlir::Value column,
                       int64_t group) const;

  /// Lines of the planes of a chunk, which are loaded when a quad first needs them.
  struct Lines {
    mlir::Value begin; ///< the byte of the first column in the first line, without the planes' own
    llvm::SmallVector<mlir::Value> low, high;
  };
  /// Of the chunk that begins at byte `chunk`.
  Lines linesOf(mlir::Value chunk, mlir::Value column) const;
  /// Levels of quad `quad` of a chunk, with format.unsignedBias() added: [64 x i8], four neighbors
  /// along K of each of the 16 columns.
  mlir::Value loadQuad(Lines &lines, int64_t quad) const;
  /// The same without the bias: with their sign, where isSigned().
  mlir::Value loadLevels(Lines &lines, int64_t quad) const;
  bool isSigned() const { return format.unsignedBias() != 0; }

  /// Groups of a chunk with steps of their own, at least one.
  int64_t groupsOfChunk() const { return std::max<int64_t>(packed.groups, 1); }

  /// Calls `take(i, values)` for elements i = 0 .. 31 of a chunk, with its values [16 x f32]: bit
  /// for bit those of decodeBlock. `scales` and `offsets` are loadScales() and loadOffsets().
  void eachElement(mlir::Value scales, mlir::Value offsets, mlir::Value chunk, mlir::Value column,
                   llvm::function_ref<void(int64_t, mlir::Value)> take) const;

private:
  mlir::Value load(mlir::Value at, mlir::Type element) const;
  mlir::Value loadHeader(mlir::Value at) const;
  mlir::Value loadSubScales(mlir::Value chunk, mlir::Value column, int64_t group,
                            bool ofOffsets) const;
  mlir::Value loadPlane(Lines &lines, bool isHigh, int64_t quad, int64_t up) const;
  /// Codes of a quad, [64 x i8].
  mlir::Value loadCodes(Lines &lines, int64_t quad) const;
  /// The same as levels of the format's table, `added` to each.
  mlir::Value lookUpLevels(mlir::Value codes, int64_t added) const;

  KernelBuilder &b;
  mlir::Value memory, offset;
};

/// Elements along K of a row of `k` that was expanded to floats: whole groups of 16 lanes of
/// `depth` neighbors, as oneDNN's BA16a64b (f32) and BA16a64b2a (bf16) have them.
inline int64_t expandedColumns(int64_t k, int64_t depth) { return roundUp(k, kLanes * depth); }

/// Expands the blocks [from, to) along K of a panel into floats: `buffer` has, in its own element
/// type, [elements / depth][64][depth] of each block from `at` on, `depth` neighbors along K
/// beside each other: 2 of bf16, 1 of f32. Elements from `k` to expandedColumns
/// are zero.
void expandBlocks(KernelBuilder &b, const PackedPanel &panel, int64_t k, mlir::Value from,
                  mlir::Value to, mlir::Value buffer, mlir::Value at);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_KERNELS_MATMUL_BLOCKREADER_H
