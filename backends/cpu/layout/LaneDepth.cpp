//===- LaneDepth.cpp - values of one 32-bit lane --------------------------===//

#include "backends/cpu/layout/LaneDepth.h"

#include "ir/Mica/Mica.h"

int64_t mica::cpu::laneDepth(mlir::Type element) {
  return 32 / (isQuantized(element) ? 8 : element.getIntOrFloatBitWidth());
}
