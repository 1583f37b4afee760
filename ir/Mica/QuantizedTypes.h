//===- QuantizedTypes.h - quantized element types ---------------*- C++ -*-===//

#ifndef MICA_IR_MICA_QUANTIZEDTYPES_H
#define MICA_IR_MICA_QUANTIZEDTYPES_H

#include "ir/Quantize/BlockFormats.h"

#include "mlir/IR/BuiltinTypes.h"

#include <string>

namespace mica {

/// What a quantized element type is used for.
enum class QuantizedUse {
  Weights, ///< matrices that a program stores
  Rows,    ///< activations multiplied by such weights
  Cache,   ///< keys and values
};

/// Whether `element` is quantized, for any use.
bool isQuantized(mlir::Type element);
/// Whether `element` is quantized and for this use.
bool isQuantized(mlir::Type element, QuantizedUse use);

/// `value` rounded up to a multiple of `unit`.
inline constexpr int64_t roundUp(int64_t value, int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

/// The element type of activations quantized to integers of 8 or 16 bits.
mlir::Type integerRowType(mlir::MLIRContext *context, int64_t bits);
/// The bits of the row element type `rows`; 0 for other types.
int64_t integerRowBits(mlir::Type rows);

/// The block format of `element`; null if it is not block-quantized.
const BlockFormat *blockFormatOf(mlir::Type element);

/// The layout of a row of !mica.int_rows with `k` elements, in bytes.
struct IntegerRowLayout {
  static constexpr int64_t group = 32, sumGroup = 16;

  IntegerRowLayout(int64_t bits, int64_t k)
      : bits(bits), padded(roundUp(k, 2 * group)), scales(bits / 8 * padded),
        sums(scales + roundUp(padded / group * 4, 64)),
        bytes(sums + roundUp(padded / sumGroup * 4, 64)) {}

  int64_t bits;   ///< in planes [padded] of signed bytes at byte 0, the high bytes first
  int64_t padded; ///< elements of a plane: k, padded with zeros
  int64_t scales; ///< offset of the f32 scales of the groups
  int64_t sums;   ///< offset of the i32 sums: minus the sum of q over each 16 elements
  int64_t bytes;  ///< of the row

  /// The largest integer of a row of `bits` bits.
  static constexpr float limitOf(int64_t bits) { return bits == 8 ? 127.0f : 32639.0f; }
};

/// The size in bytes of a packed block-quantized matrix [n, k].
int64_t bytesOfMatrix(const BlockFormat &format, int64_t n, int64_t k);

/// The size in bytes of a weight of that type in a program, in the packed layout if it has one as
/// its encoding.
int64_t getStoredBytes(mlir::RankedTensorType type);

} // namespace mica

#include "ir/Mica/QuantizedTypeInterface.h.inc"

#endif // MICA_IR_MICA_QUANTIZEDTYPES_H
