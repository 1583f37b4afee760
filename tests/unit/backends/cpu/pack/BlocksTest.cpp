//===- BlocksTest.cpp - tensors stored in blocks --------------------------===//

#include "tests/unit/backends/cpu/pack/PackFixture.h"

#include "gmock/gmock.h"

#include <ranges>

using namespace mica;
using namespace mica::cpu;
using testing::HasSubstr;

namespace {

using BlocksTest = PackTest;

const std::vector<std::string> kTypes = {
    "x96x!mica.block<int8_g32>>", "x96x!mica.block<int4_g32>>",
    "x96xf32, #mica.packed<columns = 64, depth = 1, k_block = 16>>",
    "x96xbf16, #mica.packed<columns = 64, depth = 2, k_block = 32>>", "x96xf32>"};

/// Packs `text` for every type, from blocks and from their dequantized numbers.
#define EXPECT_SAME_PACKED(text)                                                                   \
  for (const std::string &type : kTypes) {                                                         \
    std::vector<uint8_t> blocks = llvm::cantFail(pack((text) + type));                             \
    source.decodeAll();                                                                            \
    EXPECT_TRUE(blocks == llvm::cantFail(pack((text) + type))) << type;                            \
    source.encodeAll();                                                                            \
  }

TEST_F(BlocksTest, AreDequantized) {
  source.addBlocks("w", {70, 96});
  EXPECT_SAME_PACKED(std::string("mica.weight @w at 0 : tensor<70"));
  EXPECT_EQ(source.released.back(), "w");
}

TEST_F(BlocksTest, CanBeMixedWithFloats) {
  source.addBlocks("q", {65, 96});
  source.add("k", WeightType::F32, {3, 96});
  source.addBlocks("v", {2, 96});
  EXPECT_SAME_PACKED(std::string(R"(mica.weight @w from ["q", "k", "v"] concat at 0 : tensor<70)"));
}

TEST_F(BlocksTest, AreEqualized) {
  source.add("norm", WeightType::F32, {96});
  source.addBlocks("up", {70, 96});
  EXPECT_SAME_PACKED(std::string("mica.equalize rows [\"norm\"] columns [\"up\"]\n"
                                 "mica.weight @up at 0 : tensor<70"));
}

TEST_F(BlocksTest, MismatchedShapesAreErrors) {
  source.addBlocks("w", {4, 96});
  EXPECT_THAT(errorOf("mica.weight @w at 0 : tensor<384xf32>"),
              HasSubstr("has rows of 1 elements, but \"w\" does not"));
  source.addBlocks("short", {4, 96}, /*missing=*/1);
  EXPECT_THAT(errorOf("mica.weight @short at 0 : tensor<4x96xf32>"),
              HasSubstr("has rows of 96 elements, but \"short\" does not"));
  EXPECT_THAT(errorOf("mica.equalize rows [\"short\"] columns [\"w\"]\n"
                      "mica.weight @w at 0 : tensor<4x96xf32>"),
              HasSubstr("mica.equalize names \"short\", which has no channels"));
}

TEST_F(BlocksTest, ArePreservedUnchangedOnly) {
  const std::string kept = "x96x!mica.block<q8_0>>";
  source.addBlocks("w", {4, 96});
  EXPECT_THAT(errorOf("mica.weight @w at 0 : tensor<4" + kept),
              HasSubstr("weight \"w\" preserves q8_0 blocks, but \"w\" is not stored as q8_0"));
  source.addBlocksOf(*blockFormatNamed("q8_0"), "q", {4, 96});
  source.addBlocksOf(*blockFormatNamed("q5_0"), "r", {4, 96});
  source.add("plain", WeightType::F32, {4, 96});
  EXPECT_THAT(errorOf("mica.weight @q at 0 : tensor<4x96x!mica.block<q4_0>>"),
              HasSubstr("weight \"q\" preserves q4_0 blocks, but \"q\" is not stored as q4_0"));
  EXPECT_THAT(errorOf(R"(mica.weight @w from ["q", "r"] concat at 0 : tensor<8)" + kept),
              HasSubstr("weight \"w\" preserves q8_0 blocks, but \"r\" is not stored as q8_0"));
  EXPECT_THAT(errorOf(R"(mica.weight @w from ["plain", "q"] concat at 0 : tensor<8)" + kept),
              HasSubstr("weight \"w\" preserves q8_0 blocks, but \"plain\" is not stored as q8_0"));
  source.add("norm", WeightType::F32, {96});
  EXPECT_THAT(errorOf("mica.equalize rows [\"norm\"] columns [\"q\"]\n"
                      "mica.weight @q at 0 : tensor<4" +
                      kept),
              HasSubstr("preserves blocks, but \"q\" is equalized"));
}

TEST_F(BlocksTest, NonfiniteOnesAreNamed) {
  source.addBlocks("w", {4, 96});
  source.corruptBlock("w", 5);
  EXPECT_THAT(errorOf("mica.weight @w at 0 : tensor<4x96xf32>"),
              HasSubstr("tensor \"w\" holds NaN or infinity in block 5; check the checkpoint"));
}

} // namespace
