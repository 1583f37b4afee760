//===- Prefetch.h - reading streams of memory faster ------------*- C++ -*-===//

#ifndef MICA_BACKENDS_CPU_KERNELS_MATMUL_PREFETCH_H
#define MICA_BACKENDS_CPU_KERNELS_MATMUL_PREFETCH_H

#include "backends/cpu/kernels/matmul/Panel.h"

namespace mica::cpu {

/// Lines of a panel that a tile asks for while it computes: each of its groups for the `lines` from
/// its own place on, the first group from `begin` on.
struct LinesAhead {
  static constexpr int64_t kParts = 64;
  mlir::Value begin;    ///< in elements of the panel's memory
  mlir::Value perGroup; ///< from a group's place to the next one's, in elements / kParts
  int64_t lines = 0;    ///< 0: none are asked for
};

/// Where the target gains by it and the panel `streams`, asks for lines 32 KiB after the `count`
/// elements that are `offset` after the panel's first.
void prefetchAhead(KernelBuilder &b, const PackedPanel &panel, mlir::Value offset, int64_t count);

/// Asks for lines on behalf of group `group` of a panel, which has `count` elements for each: those
/// `ahead`, of groups from `from` on, and where the target gains by it and the panel streams those
/// 32 KiB after the group.
void prefetchForGroup(KernelBuilder &b, const PackedPanel &panel, const LinesAhead &ahead,
                      mlir::Value from, mlir::Value group, int64_t count);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_KERNELS_MATMUL_PREFETCH_H
