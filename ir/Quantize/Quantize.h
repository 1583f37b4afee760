//===- Quantize.h - quantization of rows ------------------------*- C++ -*-===//
//
// Quantization to !mica.int8, !mica.int_rows and Mica's own block formats: one formula for the
// interpreter, which computes with the quantized values, and for the packer, which stores the
// integers. Results are the same on every CPU.
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

/// Rows and groups whose largest magnitude is below this are treated as zero, because the inverse
/// of their scale would overflow.
inline constexpr float kSmallestMagnitude = 0x1p-100f;

/// The largest magnitude in a row; infinite or NaN if the row contains such a value. Inlined, so
/// that it is compiled for the target of its caller. Compares integers, because the order of
/// floating-point comparisons would prevent vectorization.
[[gnu::always_inline]] inline float largestMagnitude(const float *row, int64_t count) {
  int32_t largest = 0;
  for (int64_t i = 0; i < count; ++i)
    largest = std::max(largest, std::bit_cast<int32_t>(row[i]) & 0x7fffffff);
  return std::bit_cast<float>(largest);
}
inline float largestMagnitude(llvm::ArrayRef<float> row) {
  return largestMagnitude(row.data(), static_cast<int64_t>(row.size()));
}

/// row[i] ~ scale * q[i] with q in [-127, 127]. Returns the scale: 0 if the row is zero; infinite
/// or NaN if the row contains such a value, in which case q is zero.
float quantizeInt8(llvm::ArrayRef<float> row, llvm::MutableArrayRef<int8_t> q);

/// Quantizes a row to blocks of one of Mica's own formats; the last block is padded. `blocks` must
/// have the size of all blocks in bytes. `importance` weights the error of each element by the mean
/// square of the activations that it is multiplied by; empty if unknown. Returns false if a value
/// is not finite.
bool quantizeBlocks(const BlockFormat &format, llvm::ArrayRef<float> row,
                    llvm::ArrayRef<float> importance, llvm::MutableArrayRef<uint8_t> blocks);

} // namespace mica

#endif // MICA_IR_QUANTIZE_QUANTIZE_H
