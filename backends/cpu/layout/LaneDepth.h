//===- LaneDepth.h - values of one 32-bit lane ------------------*- C++ -*-===//
#ifndef MICA_BACKENDS_CPU_LAYOUT_LANEDEPTH_H
#define MICA_BACKENDS_CPU_LAYOUT_LANEDEPTH_H

#include "mlir/IR/Types.h"

namespace mica::cpu {

/// The number of values along K in a 32-bit lane, which a dot-product instruction consumes
/// together: 1 for f32, 2 for bf16, 4 for quantized types. 4-bit integers are widened to 8 bits
/// first.
int64_t laneDepth(mlir::Type element);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_LAYOUT_LANEDEPTH_H
