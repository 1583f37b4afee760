//===- Chunks.h - how positions are cut -------------------------*- C++ -*-===//

#ifndef MICA_BACKENDS_CPU_KERNELS_ATTENTION_CHUNKS_H
#define MICA_BACKENDS_CPU_KERNELS_ATTENTION_CHUNKS_H

#include "backends/cpu/kernels/attention/AttentionSpec.h"

namespace mica::cpu {

/// How the positions that a row sees are cut: chunk i is [i * size, (i + 1) * size), whatever the
/// window. A row before position 0 sees nothing; it has one chunk, which is empty.
class Chunks {
public:
  Chunks(KernelBuilder &b, const AttentionSpec &spec) : b(b), spec(spec) {}

  mlir::Value firstSeen(mlir::Value position) const {
    if (!spec.window)
      return b.idx(0);
    return mlir::arith::MaxSIOp::create(b, b.sub(b.add(position, 1), b.idx(*spec.window)),
                                        b.idx(0));
  }
  /// Positions of a chunk.
  mlir::Value size(mlir::Value position) const {
    int64_t chunk = spec.tiling.getChunk(), longest = chunk * AttentionSpec::kMaxChunks;
    mlir::Value seen = b.sub(b.add(position, 1), firstSeen(position));
    mlir::Value times = b.div(b.add(seen, longest - 1), longest);
    return b.mul(mlir::arith::MaxUIOp::create(b, times, b.idx(1)), chunk);
  }
  mlir::Value first(mlir::Value position) const {
    return mlir::arith::DivUIOp::create(b, firstSeen(position), size(position));
  }
  /// After the last one.
  mlir::Value end(mlir::Value position) const {
    mlir::Value last = mlir::arith::MaxSIOp::create(b, position, b.idx(0));
    return b.add(mlir::arith::DivUIOp::create(b, last, size(position)), 1);
  }
  mlir::Value count(mlir::Value position) const { return b.sub(end(position), first(position)); }

private:
  KernelBuilder &b;
  const AttentionSpec &spec;
};

/// Consecutive rows of one sequence, none at a lower position than the one before it, with chunks
/// of one size, and query heads that share a key/value head.
struct RowRun {
  mlir::Value part; ///< number of these query heads
  mlir::Value head; ///< of keys and values
  mlir::Value first, rows;
  mlir::Value sequence;
  mlir::Value firstPosition, lastPosition;
  mlir::Value chunkSize;
};

/// A block of positions, as a run sees it.
struct PositionBlock {
  mlir::Value inKeys, inValues; ///< its indices in the caches
  mlir::Value first;            ///< position
  mlir::Value liveGroups;       ///< groups of positions before those that no row of the run sees
  mlir::Value needsMask;        ///< whether some row does not see all of it
  mlir::Value streams = {}; ///< whether its keys and values come from memory, with more after them
};

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_KERNELS_ATTENTION_CHUNKS_H
