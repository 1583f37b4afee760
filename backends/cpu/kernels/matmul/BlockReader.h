//===- BlockReader.h - packed blocks in registers ---------------*- C++ -*-===//

#ifndef MICA_BACKENDS_CPU_KERNELS_MATMUL_BLOCKREADER_H
#define MICA_BACKENDS_CPU_KERNELS_MATMUL_BLOCKREADER_H

#include "backends/cpu/kernels/matmul/Panel.h"
#include "ir/Mica/Mica.h"

namespace mica::cpu {

/// Reads 16 consecutive columns of a panel of a block-quantized weight; see PackedBlocks. Byte
/// offsets are relative to the panel's memory.
class BlockReader {
public:
  BlockReader(KernelBuilder &b, const PackedPanel &panel);

  const BlockFormat &format;
  PackedBlocks packed;

  /// The byte offset of block `block`, and that of chunk `chunk` of the block at byte `block`.
  mlir::Value blockAt(mlir::Value block) const;
  mlir::Value chunkAt(mlir::Value block, mlir::Value chunk) const;

  /// Prefetches for the header of the block that begins at byte `block`, and for the planes of the
  /// chunk that begins at byte `chunk`.
  void prefetchHeader(mlir::Value block) const;
  void prefetchChunk(mlir::Value chunk) const;

  /// The f32 scales of the columns starting at `column`, of the block that begins at byte `block`;
  /// and the offsets that are added to level * step, including their sign. Null without offsets.
  mlir::Value loadScales(mlir::Value block, mlir::Value column) const;
  mlir::Value loadOffsets(mlir::Value block, mlir::Value column) const;

  /// The step and the offset of group `group` of a chunk: those of the block times the sub-scales.
  mlir::Value stepOf(mlir::Value scales, mlir::Value chunk, mlir::Value column,
                     int64_t group) const;
  mlir::Value offsetOf(mlir::Value offsets, mlir::Value chunk, mlir::Value column,
                       int64_t group) const;

  /// Cache lines of the planes of a chunk, loaded when a quad first needs them.
  struct Lines {
    mlir::Value
        begin; ///< byte of the first column in the first line, without the offsets of planes
    llvm::SmallVector<mlir::Value> low, high;
  };
  /// The lines of the chunk that begins at byte `chunk`.
  Lines linesOf(mlir::Value chunk, mlir::Value column) const;
  /// Levels of quad `quad` of a chunk, plus format.unsignedBias(): [64 x i8], four consecutive
  /// values along K of each of the 16 columns.
  mlir::Value loadQuad(Lines &lines, int64_t quad) const;
  /// The same without the bias: signed if isSigned().
  mlir::Value loadLevels(Lines &lines, int64_t quad) const;
  bool isSigned() const { return format.unsignedBias() != 0; }

  /// Groups of a chunk with separate steps, at least one.
  int64_t groupsOfChunk() const { return std::max<int64_t>(packed.groups, 1); }

  /// Calls `take(i, values)` for elements i = 0 .. 31 of a chunk, with values [16 x f32] that are
  /// bit-identical to decodeBlock. `scales` and `offsets` are loadScales() and loadOffsets().
  void eachElement(mlir::Value scales, mlir::Value offsets, mlir::Value chunk, mlir::Value column,
                   llvm::function_ref<void(int64_t, mlir::Value)> take) const;

private:
  mlir::Value load(mlir::Value at, mlir::Type element) const;
  mlir::Value loadHeader(mlir::Value at) const;
  mlir::Value loadSubScales(mlir::Value chunk, mlir::Value column, int64_t group,
                            bool ofOffsets) const;
  mlir::Value loadPlane(Lines &lines, bool isHigh, int64_t quad, int64_t up) const;
  /// Loads the codes of a quad, [64 x i8].
  mlir::Value loadCodes(Lines &lines, int64_t quad) const;
  /// The same as levels of the format's table, plus `added`.
  mlir::Value lookUpLevels(mlir::Value codes, int64_t added) const;

  KernelBuilder &b;
  mlir::Value memory, offset;
};

/// The number of elements along K of a row of `k` that is expanded to floats: whole groups of 16
/// lanes of `depth` consecutive elements, as in oneDNN's BA16a64b (f32) and BA16a64b2a (bf16).
inline int64_t expandedColumns(int64_t k, int64_t depth) { return roundUp(k, kLanes * depth); }

/// Expands the blocks [from, to) along K of a panel into floats: `buffer` contains, in its own
/// element type, [elements / depth][64][depth] of each block, starting at `at`, with `depth`
/// consecutive elements along K: 2 of bf16, 1 of f32. Elements from `k` to expandedColumns are
/// zero.
void expandBlocks(KernelBuilder &b, const PackedPanel &panel, int64_t k, mlir::Value from,
                  mlir::Value to, mlir::Value buffer, mlir::Value at);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_KERNELS_MATMUL_BLOCKREADER_H
