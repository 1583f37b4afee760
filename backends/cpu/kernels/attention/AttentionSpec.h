//===- AttentionSpec.h - parameters of attention kernels --------*- C++ -*-===//

#ifndef MICA_BACKENDS_CPU_KERNELS_ATTENTION_ATTENTIONSPEC_H
#define MICA_BACKENDS_CPU_KERNELS_ATTENTION_ATTENTIONSPEC_H

#include "backends/cpu/kernels/KernelBuilder.h"
#include "ir/Mica/Mica.h"

namespace mica::cpu {

/// Attention that reads the caches: formula of mica.attention, with an online softmax over blocks
/// of positions. Positions are split into chunks (see #mica.attention_tiling): their number depends
/// only on the row's position.
struct AttentionSpec {
  /// The maximum number of chunks of a row without window; a window may start in one more chunk.
  static constexpr int64_t kMaxChunks = 16;

  int64_t heads;
  KvCacheType keys, values;
  double scale;
  std::optional<int64_t> window;
  std::optional<double> softcap;
  AttentionTilingAttr tiling;
  mlir::memref::GlobalOp slopes = {}; ///< slopes of ALiBi [H], or null
  bool sinks = false;
  /// Whether values are the first elements of the keys, and only keys are cached. `values` then
  /// describes the block of values after transposition.
  bool valuesInKeys = false;

  /// The number of query heads of a task, which share a key/value head; and the number of tasks
  /// that the query heads of a key/value head are split into.
  int64_t headsOfTask() const {
    int64_t shared = heads / keys.getHeads();
    return tiling.getHeads() == 0 ? shared : std::min(tiling.getHeads(), shared);
  }
  int64_t parts() const { return heads / keys.getHeads() / headsOfTask(); }
  /// The number of tasks of a tile or a chunk.
  int64_t headTasks() const { return keys.getHeads() * parts(); }

  int64_t maxChunks() const { return kMaxChunks + (window ? 1 : 0); }
  /// The number of f32 in the softmax state of a chunk: see SoftmaxStates.
  int64_t stateWidth() const;
};

/// The number of elements of a value, in whole units of caches.
inline int64_t valuesOf(const AttentionSpec &spec) {
  return roundUp(spec.values.getHeadDim(), kHeadDimUnit);
}

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_KERNELS_ATTENTION_ATTENTIONSPEC_H
