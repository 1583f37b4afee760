//===- KernelTarget.h - what decides how kernels are written ----*- C++ -*-===//

#ifndef MICA_BACKENDS_CPU_KERNELS_KERNELTARGET_H
#define MICA_BACKENDS_CPU_KERNELS_KERNELTARGET_H

#include "backends/cpu/target/TargetDescription.h"

namespace mica::cpu {

/// What of the target decides which instructions a kernel is made of.
struct KernelTarget {
  /// vdpbf16ps: products of pairs of bf16 summed into f32.
  bool bf16Dot = false;
  /// vpdpbusd: products of bytes summed into i32.
  bool int8Dot = false;
  /// Vectors of 16 f32 that are held in registers: 32 where registers have 512 bits, 8 where two
  /// of 16 make one.
  int64_t registers() const { return wide ? 32 : 8; }
  bool wide = true;
  /// Whether vdpbf16ps takes no longer than the two multiply-adds of f32 that it stands for.
  bool fastBf16Dot = true;
  /// tdpbf16ps: products of tiles of bf16 summed into f32.
  bool tiles = false;
  /// Whether rows of two limbs are stored and multiplied as words (vpmaddwd, vpdpwssd).
  bool words = false;
  /// Whether memory is read faster by asking for lines of several pages in turn, ahead of a loop.
  bool prefetchPages = false;

  static KernelTarget of(const TargetDescription &target) {
    return {target.avx512Bf16, target.vnni,        target.vectorBits == 512, target.fastBf16Dot,
            target.tiles,      target.usesWords(), target.prefetchPages};
  }
};

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_KERNELS_KERNELTARGET_H
