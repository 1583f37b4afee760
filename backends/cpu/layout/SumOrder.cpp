//===- SumOrder.cpp - the order in which products are added ---------------===//

#include "backends/cpu/layout/SumOrder.h"

#include <algorithm>

using namespace mica;
using namespace mica::cpu;

bool mica::cpu::isLibraryFast(Precision type, const TargetDescription &target) {
  // oneDNN's blocked kernels need AVX-512; without it, generated kernels compute all matmuls.
  return target.vectorBits == 512 && (type == Precision::F32 || target.bf16Dot);
}

bool mica::cpu::tilesSupport(Precision weights, int64_t k) {
  return weights == Precision::BF16 && k % 2 == 0;
}

int64_t mica::cpu::sumSegment(Precision type, int64_t k, const TargetDescription &target) {
  bool byTiles = type == Precision::BF16 && target.tiles;
  bool byLibrary = isLibraryFast(type, target) && !byTiles;
  constexpr int64_t wide = 1024, narrow = 512;
  return byLibrary ? std::min(k, k > wide ? wide : narrow) : k;
}
