//===- Quantize.cpp - rows of integers ------------------------------------===//

#include "ir/Quantize/Quantize.h"

#include "ir/Quantize/TargetClones.h"

#include <bit>
#include <cmath>
#include <vector>

using namespace llvm;
using namespace mica;

/// Adding and subtracting this rounds a number below 2^22 to an integer, ties to even.
static constexpr float kRounder = 0x1.8p23f;

MICA_CLONES static float quantizeRow(const float *row, int8_t *q, int64_t count) {
  float largest = largestMagnitude(row, count), inverse = 127 / largest;
  if (!(largest >= kSmallestMagnitude) || std::isinf(largest)) {
    std::fill_n(q, count, 0);
    return std::isfinite(largest) ? 0 : largest;
  }
  for (int64_t i = 0; i < count; ++i)
    q[i] = static_cast<int8_t>(static_cast<int32_t>(row[i] * inverse + kRounder - kRounder));
  return largest / 127;
}

float mica::quantizeInt8(ArrayRef<float> row, MutableArrayRef<int8_t> q) {
  return quantizeRow(row.data(), q.data(), row.size());
}
