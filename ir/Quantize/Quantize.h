//===- Quantize.h - rows of integers ----------------------------*- C++ -*-===//
//
// How numbers become !mica.int8, !mica.int_rows and Mica's own block formats: one formula for the
// interpreter, which computes with what the integers stand for, and for the packer, which stores
// them. Results are the same on every CPU.
//
//===----------------------------------------------------------------------===//

#ifndef MICA_IR_QUANTIZE_QUANTIZE_H
#define MICA_IR_QUANTIZE_QUANTIZE_H

#include "ir/Quantize/BlockFormats.h"

#include "llvm/ADT/ArrayRef.h"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace mica {

/// Rows and groups whose largest magnitude is below have scales without an inverse and count as
/// zero.
inline constexpr float kSmallestMagnitude = 0x1p-100f;

/// The largest magnitude in a row; infinite or NaN where it holds such a number. Inlined, so that
/// it is compiled for the processors of its caller; a maximum of integers, as one of numbers
/// has an order that keeps several from being looked at together.
[[gnu::always_inline]] inline float largestMagnitude(const float *row, int64_t count) {
  int32_t largest = 0;
  for (int64_t i = 0; i < count; ++i)
    largest = std::max(largest, std::bit_cast<int32_t>(row[i]) & 0x7fffffff);
  return std::bit_cast<float>(largest);
}
inline float largestMagnitude(llvm::ArrayRef<float> row) {
  return largestMagnitude(row.data(), static_cast<int64_t>(row.size()));
}

/// row[i] ~ scale * q[i] with q in [-127, 127]. Returns the scale: 0 where the row is zero,
/// infinite or NaN where the row holds such a number, and then q is zero.
float quantizeInt8(llvm::ArrayRef<float> row, llvm::MutableArrayRef<int8_t> q);

/// Quantizes a row to blocks of one of Mica's own formats, the last of which is padded. `blocks`
/// has room for all of them. `importance` says how much the error of each element counts, as the
/// mean square of what it is multiplied with; empty where that is not known. False where a number
/// is not finite.
bool quantizeBlocks(const BlockFormat &format, llvm::ArrayRef<float> row,
                    llvm::ArrayRef<float> importance, llvm::MutableArrayRef<uint8_t> blocks);

} // namespace mica

#endif // MICA_IR_QUANTIZE_QUANTIZE_H
