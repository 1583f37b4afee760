//===- LaneDepth.h - values of one 32-bit lane ------------------*- C++ -*-===//
#ifndef MICA_BACKENDS_CPU_DISPATCH_LANEDEPTH_H
#define MICA_BACKENDS_CPU_DISPATCH_LANEDEPTH_H

#include "mlir/IR/Types.h"

namespace mica::cpu {

/// Values of a float type in a 32-bit lane, which products multiply together along K: 1 of f32, 2
/// of bf16.
inline int64_t laneDepth(mlir::Type element) { return 32 / element.getIntOrFloatBitWidth(); }

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_DISPATCH_LANEDEPTH_H
