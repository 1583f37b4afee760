//===- Prefetch.h - prefetching of streams ----------------------*- C++ -*-===//

#ifndef MICA_BACKENDS_CPU_KERNELS_MATMUL_PREFETCH_H
#define MICA_BACKENDS_CPU_KERNELS_MATMUL_PREFETCH_H

#include "backends/cpu/kernels/matmul/Panel.h"

namespace mica::cpu {

/// Lines of a panel that a tile prefetches while it computes: each of its groups prefetches `lines`
/// lines starting at its own offset; the first group starts at `begin`.
struct LinesAhead {
  static constexpr int64_t kParts = 64;
  mlir::Value begin;    ///< in elements of the panel's memory
  mlir::Value perGroup; ///< distance between the offsets of two groups, in elements / kParts
  int64_t lines = 0;    ///< 0: no prefetches
};

/// If the target benefits and the panel `streams`, prefetches the lines 32 KiB after the `count`
/// elements at `offset` in the panel.
void prefetchAhead(KernelBuilder &b, const PackedPanel &panel, mlir::Value offset, int64_t count);

/// Prefetches lines for group `group` of a panel with `count` elements per group: those of `ahead`,
/// for groups from `from` on, and, if the target benefits and the panel streams, those 32 KiB after
/// the group.
void prefetchForGroup(KernelBuilder &b, const PackedPanel &panel, const LinesAhead &ahead,
                      mlir::Value from, mlir::Value group, int64_t count);

/// Prefetches the lines of `bytes` bytes starting at byte `at` of `memory`, which are used soon and
/// once.
void prefetchLines(KernelBuilder &b, mlir::Value memory, mlir::Value at, int64_t bytes);

/// If hardware prefetchers do not keep up with loops over blocks, prefetches `count` bytes at a
/// distance of `prefetch_bytes` from byte `at` of the memory of a block-quantized weight.
void prefetchBlocks(KernelBuilder &b, mlir::Value memory, mlir::Value at, int64_t count);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_KERNELS_MATMUL_PREFETCH_H
