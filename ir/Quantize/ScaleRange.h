//===- ScaleRange.h - whether a block's elements are finite -----*- C++ -*-===//
#ifndef MICA_IR_QUANTIZE_SCALERANGE_H
#define MICA_IR_QUANTIZE_SCALERANGE_H

#include "ir/Quantize/BlockFormats.h"

namespace mica {

/// Whether the elements of a block are finite for any codes (scale, offset and the largest products
/// with them are), and if not, why.
enum class ScaleRange : uint8_t {
  Finite,
  Overflow,  ///< scale and offset are finite, but not the largest products with them
  NotFinite, ///< scale or offset is NaN or infinite
};
ScaleRange scaleRangeOf(const BlockFormat &format, const BlockParts &parts);

} // namespace mica

#endif // MICA_IR_QUANTIZE_SCALERANGE_H
