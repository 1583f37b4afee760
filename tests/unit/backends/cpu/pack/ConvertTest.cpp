//===- ConvertTest.cpp - element conversions, exhaustively ----------------===//

#include "backends/cpu/pack/Elements.h"

#include "gtest/gtest.h"

#include "llvm/ADT/APFloat.h"

#include <bit>

using namespace mica::cpu;

namespace {

std::vector<uint16_t> allPatterns() {
  std::vector<uint16_t> patterns(1 << 16);
  for (size_t i = 0; i < patterns.size(); ++i)
    patterns[i] = i;
  return patterns;
}

template <typename To, typename From>
std::vector<To> converted(const std::vector<From> &in, WeightType from, WeightType to) {
  std::vector<To> out(in.size());
  convertElements(reinterpret_cast<const uint8_t *>(in.data()), from,
                  reinterpret_cast<uint8_t *>(out.data()), to, in.size());
  return out;
}

/// The result of LLVM's software floating point.
uint32_t reference(uint32_t bits, const llvm::fltSemantics &from, unsigned width,
                   const llvm::fltSemantics &to) {
  llvm::APFloat value(from, llvm::APInt(width, bits));
  bool inexact;
  value.convert(to, llvm::APFloat::rmNearestTiesToEven, &inexact);
  return value.bitcastToAPInt().getZExtValue();
}

TEST(Convert, EveryF16ToF32) {
  std::vector<uint16_t> in = allPatterns();
  std::vector<uint32_t> out = converted<uint32_t>(in, WeightType::F16, WeightType::F32);
  for (size_t i = 0; i < in.size(); ++i) {
    if ((in[i] & 0x7fff) > 0x7c00)
      EXPECT_GT(out[i] & 0x7fffffff, 0x7f800000u) << i;
    else
      ASSERT_EQ(out[i],
                reference(in[i], llvm::APFloat::IEEEhalf(), 16, llvm::APFloat::IEEEsingle()))
          << i;
  }
}

TEST(Convert, EveryF16ToBf16) {
  std::vector<uint16_t> in = allPatterns();
  std::vector<uint16_t> out = converted<uint16_t>(in, WeightType::F16, WeightType::BF16);
  for (size_t i = 0; i < in.size(); ++i)
    if ((in[i] & 0x7fff) <= 0x7c00)
      ASSERT_EQ(out[i], reference(in[i], llvm::APFloat::IEEEhalf(), 16, llvm::APFloat::BFloat()))
          << i;
}

TEST(Convert, F32ToBf16RoundsToNearestEven) {
  std::vector<uint32_t> in;
  for (uint32_t high = 0; high < 0x10000; high += 7)
    for (uint32_t low : {0x0000u, 0x0001u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      if (((high << 16 | low) & 0x7fffffff) <= 0x7f800000)
        in.push_back(high << 16 | low);
  std::vector<uint16_t> out = converted<uint16_t>(in, WeightType::F32, WeightType::BF16);
  for (size_t i = 0; i < in.size(); ++i)
    ASSERT_EQ(out[i], reference(in[i], llvm::APFloat::IEEEsingle(), 32, llvm::APFloat::BFloat()))
        << std::hex << in[i];
}

TEST(Convert, Bf16AndF32KeepTheirBits) {
  std::vector<uint16_t> in = allPatterns();
  EXPECT_EQ(converted<uint16_t>(in, WeightType::BF16, WeightType::BF16), in);
  std::vector<uint32_t> wide = converted<uint32_t>(in, WeightType::BF16, WeightType::F32);
  for (size_t i = 0; i < in.size(); ++i)
    ASSERT_EQ(wide[i], uint32_t(i) << 16);
  EXPECT_EQ(converted<uint32_t>(wide, WeightType::F32, WeightType::F32), wide);
}

TEST(Convert, FindsNonFiniteValues) {
  auto clean = [](uint32_t bits, WeightType from, WeightType to) {
    uint8_t out[4];
    return convertElements(reinterpret_cast<const uint8_t *>(&bits), from, out, to, 1);
  };
  for (WeightType to : {WeightType::F32, WeightType::BF16}) {
    EXPECT_FALSE(clean(0x7f800000, WeightType::F32, to));
    EXPECT_FALSE(clean(0x7f800001, WeightType::F32, to));
    EXPECT_FALSE(clean(0xffc00000, WeightType::F32, to));
    EXPECT_FALSE(clean(0xff80, WeightType::BF16, to));
    EXPECT_FALSE(clean(0x7f81, WeightType::BF16, to));
    EXPECT_FALSE(clean(0xfc00, WeightType::F16, to));
    EXPECT_FALSE(clean(0x7c01, WeightType::F16, to));
    EXPECT_TRUE(clean(0xff7f7fff, WeightType::F32, to)) << "the largest that rounds to a bf16";
    EXPECT_TRUE(clean(0xff7f, WeightType::BF16, to));
    EXPECT_TRUE(clean(0xfbff, WeightType::F16, to));
  }
  EXPECT_TRUE(clean(0xff7f8000, WeightType::F32, WeightType::F32));
  EXPECT_FALSE(clean(0xff7f8000, WeightType::F32, WeightType::BF16)) << "rounds to infinity";
}

} // namespace
