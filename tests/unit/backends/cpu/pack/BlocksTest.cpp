//===- BlocksTest.cpp - numbers that are stored in blocks -----------------===//

#include "tests/unit/backends/cpu/pack/PackFixture.h"

#include "gmock/gmock.h"

#include <ranges>

using namespace mica;
using namespace mica::cpu;
using testing::HasSubstr;

namespace {

using BlocksTest = PackTest;

const std::vector<std::string> kTypes = {
    "x96x!mica.int8>", "x96x!mica.int4<group = 32>>",
    "x96xf32, #mica.packed<columns = 64, depth = 1, k_block = 16>>",
    "x96xbf16, #mica.packed<columns = 64, depth = 2, k_block = 32>>", "x96xf32>"};

/// Packs `text` for every type, from blocks and from what they stand for.
#define EXPECT_SAME_PACKED(text)                                                                   \
  for (const std::string &type : kTypes) {                                                         \
    std::vector<uint8_t> blocks = llvm::cantFail(pack((text) + type));                             \
    source.decodeAll();                                                                            \
    EXPECT_TRUE(blocks == llvm::cantFail(pack((text) + type))) << type;                            \
    source.encodeAll();                                                                            \
  }

TEST_F(BlocksTest, BecomeWhatTheyStandFor) {
  source.addBlocks("w", {70, 96});
  EXPECT_SAME_PACKED(std::string("mica.weight @w at 0 : tensor<70"));
  EXPECT_EQ(source.released.back(), "w");
}

TEST_F(BlocksTest, StandBesidePlainNumbers) {
  source.addBlocks("q", {65, 96});
  source.add("k", WeightType::F32, {3, 96});
  source.addBlocks("v", {2, 96});
  EXPECT_SAME_PACKED(std::string(R"(mica.weight @w from ["q", "k", "v"] concat at 0 : tensor<70)"));
}

TEST_F(BlocksTest, AreBalanced) {
  source.add("gain", WeightType::F32, {96});
  source.addBlocks("up", {70, 96});
  EXPECT_SAME_PACKED(std::string("mica.balance rows [\"gain\"] columns [\"up\"]\n"
                                 "mica.weight @up at 0 : tensor<70"));
}

TEST_F(BlocksTest, MustFillRows) {
  source.addBlocks("w", {4, 96});
  EXPECT_THAT(errorOf("mica.weight @w at 0 : tensor<384xf32>"),
              HasSubstr("has rows of 1 elements, but \"w\" does not"));
  source.addBlocks("short", {4, 96}, /*missing=*/1);
  EXPECT_THAT(errorOf("mica.weight @short at 0 : tensor<4x96xf32>"),
              HasSubstr("has rows of 96 elements, but \"short\" does not"));
  EXPECT_THAT(errorOf("mica.balance rows [\"short\"] columns [\"w\"]\n"
                      "mica.weight @w at 0 : tensor<4x96xf32>"),
              HasSubstr("mica.balance names \"short\", which has no channels"));
}

/// The numbers of a matrix [n, k] of !mica.block_int<bits = 8, group = 32>, read byte by byte.
std::vector<float> readKept(llvm::ArrayRef<uint8_t> bytes, int64_t n, int64_t k) {
  std::vector<float> values(n * k);
  int64_t groupBytes = 64 * 34;
  for (int64_t row = 0; row < n; ++row)
    for (int64_t column = 0; column < k; ++column) {
      const uint8_t *group = bytes.data() + (row / 64 * (k / 32) + column / 32) * groupBytes;
      _Float16 scale;
      std::memcpy(&scale, group + row % 64 * 2, 2);
      uint8_t q = group[128 + column % 32 / 4 * 256 + row % 64 * 4 + column % 4];
      values[row * k + column] = float(scale) * float(int(q) - 128);
    }
  return values;
}

TEST_F(BlocksTest, AreKeptBitForBit) {
  const std::string kept = "x96x!mica.block_int<bits = 8, group = 32>>";
  for (const char *name : {"a", "b"}) {
    source.addBlocks(name, {70, 96});
    source.keepable(name);
  }
  std::vector<uint8_t> bytes = llvm::cantFail(pack("mica.weight @a at 0 : tensor<70" + kept));
  EXPECT_EQ(bytes.size(), size_t(128 * 3 * 34));
  EXPECT_EQ(readKept(bytes, 70, 96), source.values("a"));
  // Rows that are padded are zero times zero.
  for (float value : readKept(bytes, 128, 96) | std::views::drop(70 * 96))
    ASSERT_EQ(value, 0);
  bytes = llvm::cantFail(pack(R"(mica.weight @w from ["a", "b"] concat at 0 : tensor<140)" + kept));
  std::vector<float> both = source.values("a");
  llvm::append_range(both, source.values("b"));
  EXPECT_EQ(readKept(bytes, 140, 96), both);
}

TEST_F(BlocksTest, AreKeptOnlyAsTheyAre) {
  const std::string kept = "x96x!mica.block_int<bits = ";
  source.addBlocks("w", {4, 96});
  EXPECT_THAT(errorOf("mica.weight @w at 0 : tensor<4" + kept + "8, group = 32>>"),
              HasSubstr("weight \"w\" keeps blocks of 32 integers of 8 bits, but \"w\" is not "
                        "stored in such"));
  source.keepable("w");
  EXPECT_THAT(errorOf("mica.weight @w at 0 : tensor<4" + kept + "4, group = 32>>"),
              HasSubstr("keeps blocks of 32 integers of 4 bits"));
  source.add("gain", WeightType::F32, {96});
  EXPECT_THAT(errorOf("mica.balance rows [\"gain\"] columns [\"w\"]\n"
                      "mica.weight @w at 0 : tensor<4" +
                      kept + "8, group = 32>>"),
              HasSubstr("keeps blocks as they are, but \"w\" is balanced"));
  source.spoilBlock("w", 5);
  EXPECT_THAT(errorOf("mica.weight @w at 0 : tensor<4" + kept + "8, group = 32>>"),
              HasSubstr("tensor \"w\" holds NaN or infinity, check the checkpoint"));
}

TEST_F(BlocksTest, ThatAreNotFiniteAreNamed) {
  source.addBlocks("w", {4, 96});
  source.spoilBlock("w", 5);
  EXPECT_THAT(errorOf("mica.weight @w at 0 : tensor<4x96xf32>"),
              HasSubstr("tensor \"w\" holds NaN or infinity, check the checkpoint"));
}

} // namespace
