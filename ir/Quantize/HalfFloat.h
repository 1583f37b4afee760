//===- HalfFloat.h - f16 without compiler support ---------------*- C++ -*-===//

#ifndef MICA_IR_QUANTIZE_HALFFLOAT_H
#define MICA_IR_QUANTIZE_HALFFLOAT_H

#include <bit>
#include <cstdint>

namespace mica {

/// Converts the bits of an f16 to the bits of the f32 with the same value. Exponent and fraction
/// are shifted by 13 bits, and a multiplication by 2^112 corrects the exponent's bias, also for
/// subnormal numbers; infinities and NaN get f32's exponent.
inline uint32_t fromF16(uint16_t bits) {
  uint32_t magnitude = uint32_t(bits & 0x7fff) << 13, sign = uint32_t(bits & 0x8000) << 16;
  uint32_t number = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
  uint32_t special = magnitude | 0x7f800000;
  return sign | (magnitude >= 0x0f800000 ? special : number);
}

} // namespace mica

#endif // MICA_IR_QUANTIZE_HALFFLOAT_H
