//===- Chunks.h - chunks of positions ---------------------------*- C++ -*-===//

#ifndef MICA_BACKENDS_CPU_KERNELS_ATTENTION_CHUNKS_H
#define MICA_BACKENDS_CPU_KERNELS_ATTENTION_CHUNKS_H

#include "backends/cpu/kernels/attention/AttentionSpec.h"

namespace mica::cpu {

/// The chunks of the positions to which a row attends: chunk i is [i * size, (i + 1) * size),
/// independently of the window. A row before position 0 has one empty chunk.
class Chunks {
public:
  Chunks(KernelBuilder &b, const AttentionSpec &spec) : b(b), spec(spec) {}

  mlir::Value firstSeen(mlir::Value position) const {
    if (!spec.window)
      return b.idx(0);
    return mlir::arith::MaxSIOp::create(b, b.sub(b.add(position, 1), b.idx(*spec.window)),
                                        b.idx(0));
  }
  /// The number of positions of a chunk.
  mlir::Value size(mlir::Value position) const {
    int64_t chunk = spec.tiling.getChunk(), longest = chunk * AttentionSpec::kMaxChunks;
    mlir::Value seen = b.sub(b.add(position, 1), firstSeen(position));
    mlir::Value times = b.div(b.add(seen, longest - 1), longest);
    return b.mul(mlir::arith::MaxUIOp::create(b, times, b.idx(1)), chunk);
  }
  mlir::Value first(mlir::Value position) const {
    return mlir::arith::DivUIOp::create(b, firstSeen(position), size(position));
  }
  /// The end of the last chunk.
  mlir::Value end(mlir::Value position) const {
    mlir::Value last = mlir::arith::MaxSIOp::create(b, position, b.idx(0));
    return b.add(mlir::arith::DivUIOp::create(b, last, size(position)), 1);
  }
  mlir::Value count(mlir::Value position) const { return b.sub(end(position), first(position)); }

private:
  KernelBuilder &b;
  const AttentionSpec &spec;
};

/// Consecutive rows of one sequence in order of positions, with chunks of one size, and query heads
/// that share a key/value head.
struct RowRun {
  mlir::Value part; ///< index of the group of query heads
  mlir::Value head; ///< key/value head
  mlir::Value first, rows;
  mlir::Value sequence;
  mlir::Value firstPosition, lastPosition;
  mlir::Value chunkSize;
};

/// A block of positions to which rows of a run attend.
struct PositionBlock {
  mlir::Value inKeys, inValues; ///< its indices in the caches
  mlir::Value first;            ///< position
  mlir::Value
      liveGroups;        ///< number of groups of positions up to the last one that a row attends to
  mlir::Value needsMask; ///< whether some row does not attend to all of it
  mlir::Value streams = {}; ///< whether its keys and values are read from memory as a stream
};

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_KERNELS_ATTENTION_CHUNKS_H
