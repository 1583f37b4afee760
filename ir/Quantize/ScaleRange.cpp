//===- ScaleRange.cpp - whether a block's elements are finite -------------===//

#include "ir/Quantize/ScaleRange.h"

#include <algorithm>
#include <cmath>

namespace mica {

ScaleRange scaleRangeOf(const BlockFormat &format, const BlockParts &parts) {
  // The magnitudes of sub-scales, and of levels that are not from a table, are at most 128.
  float reach = 128;
  if (format.levels)
    reach = std::abs(*std::max_element(format.levels, format.levels + 16, [](int8_t a, int8_t b) {
      return std::abs(a) < std::abs(b);
    }));
  if (format.hasSubScales())
    reach *= 128;
  // The code of NaN, for which scaleOf returns a number.
  if (format.scaleType == ScaleType::E8M0Half && parts.scale == 0xff)
    return ScaleRange::NotFinite;
  float scale = scaleOf(format, parts.scale),
        offset = format.hasOffsets() ? scaleOf(format, parts.offset) : 0;
  if (!std::isfinite(scale) || !std::isfinite(offset))
    return ScaleRange::NotFinite;
  return std::isfinite(scale * reach) && std::isfinite(offset * reach) ? ScaleRange::Finite
                                                                       : ScaleRange::Overflow;
}

} // namespace mica
