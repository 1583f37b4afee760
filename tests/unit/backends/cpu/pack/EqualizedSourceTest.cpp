//===- EqualizedSourceTest.cpp - packed weights of equalized tensors ------===//

#include "ir/Mica/Equalize.h"
#include "ir/Quantize/Quantize.h"
#include "tests/unit/backends/cpu/pack/PackFixture.h"

#include "gmock/gmock.h"

using namespace mica;
using namespace mica::cpu;
using testing::HasSubstr;

namespace {

class EqualizedSourceTest : public PackTest {
protected:
  /// A plain weight in packed form.
  std::vector<float> floats(llvm::StringRef text) {
    std::vector<uint8_t> bytes = llvm::cantFail(pack(text));
    std::vector<float> result(bytes.size() / sizeof(float));
    std::memcpy(result.data(), bytes.data(), bytes.size());
    return result;
  }
};

TEST_F(EqualizedSourceTest, RowsAreDividedAndColumnsMultiplied) {
  source.add("norm", WeightType::F32, {4});
  source.add("q", WeightType::BF16, {5, 4});
  source.add("k", WeightType::BF16, {2, 4});
  source.set("norm", {32, 0.5f, 0, 2});
  source.set("q", {1, 1, 1, 0.25f, 0, 2, 1, 0, 0, 0, -1, 0, 0, 0, 0, 0, 0, 0, 1, -0.25f});
  source.set("k", {200, 100, 100, 50, 0, -8, 1, 0});
  std::string balance = "mica.equalize rows [\"norm\"] columns [\"q\", \"k\"]\n";
  // Channels: 32 and 1, 0.5 and 1, 0 and 1, 2 and 1/4, which is the median. The large first row of
  // k does not matter, because it has its own scale.
  EXPECT_THAT(floats(balance + "mica.weight @norm at 0 : tensor<4xf32>"),
              testing::ElementsAre(16, 2, 0, 2));
  EXPECT_THAT(floats(balance + "mica.weight @k at 0 : tensor<2x4xf32>"),
              testing::ElementsAre(400, 25, 100, 50, 0, -2, 1, 0));
  EXPECT_THAT(floats(balance + R"(mica.weight @w from ["k", "q"] concat at 0 : tensor<7x4xf32>)"),
              testing::ElementsAre(400, 25, 100, 50, 0, -2, 1, 0, 2, 0.25f, 1, 0.25f, 0, 0.5f, 1, 0,
                                   0, 0, -1, 0, 0, 0, 0, 0, 0, 0, 1, -0.25f));
  EXPECT_EQ(source.released.back(), "q");
}

TEST_F(EqualizedSourceTest, AnOffsetIsAddedBeforeRowsAreDivided) {
  source.add("norm", WeightType::BF16, {4});
  source.add("q", WeightType::F32, {1, 4});
  source.set("norm", {0, -0.5f, 15, -1});
  source.set("q", {1, 1, 1, 1});
  std::string balance = "mica.equalize rows [\"norm\"] offset(1.0) columns [\"q\"]\n";
  // Channels of 1, 1/2, 16 and 0; the median of the nonzero ones is 1.
  EXPECT_THAT(floats(balance + "mica.weight @norm at 0 : tensor<4xf32>"),
              testing::ElementsAre(1, 0.5f, 4, 0));
  EXPECT_THAT(floats(balance + "mica.weight @q at 0 : tensor<1x4xf32>"),
              testing::ElementsAre(1, 1, 4, 1));
}

TEST_F(EqualizedSourceTest, PackedMatricesOfEveryType) {
  // Rows of `up` are equalized with the columns of `down`, its columns with a norm.
  source.add("norm", WeightType::BF16, {100});
  source.add("up", WeightType::BF16, {70, 100});
  source.add("down", WeightType::BF16, {33, 70});
  auto scaled = [&] {
    MemorySource plain = source;
    std::vector<float> norm = source.values("norm"), up = source.values("up"),
                       down = source.values("down");
    llvm::SmallVector<float> upRows(70), downColumns(70), normWeights(100), upColumns(100);
    for (size_t i = 0; i < 70; ++i) {
      upRows[i] = largestMagnitude(llvm::ArrayRef(up).slice(i * 100, 100));
      raiseToShares(upColumns, llvm::ArrayRef(up).slice(i * 100, 100));
    }
    for (size_t i = 0; i < 33; ++i)
      raiseToShares(downColumns, llvm::ArrayRef(down).slice(i * 70, 70));
    for (size_t i = 0; i < 100; ++i)
      normWeights[i] = std::abs(norm[i]);
    llvm::SmallVector<float> rows = equalizationFactors(upRows, downColumns),
                             columns = equalizationFactors(normWeights, upColumns);
    for (size_t i = 0; i < up.size(); ++i)
      up[i] *= columns[i % 100] / rows[i / 100];
    for (size_t i = 0; i < down.size(); ++i)
      down[i] *= rows[i % 70];
    plain.set("up", up);
    plain.set("down", down);
    return plain;
  };
  const std::string balance = "mica.equalize rows [\"norm\"] columns [\"up\"]\n"
                              "mica.equalize rows [\"up\"] columns [\"down\"]\n";
  MemorySource original = source, expected = scaled();
  for (const char *type :
       {"x100x!mica.block<int8_g32>>", "x100x!mica.block<int4_g32>>",
        "x100xf32, #mica.packed<columns = 64, depth = 1, k_block = 16>>",
        "x100xbf16, #mica.packed<columns = 64, depth = 2, k_block = 32>>", "x100xf32>"}) {
    std::string weight =
        std::string(R"(mica.weight @w from ["up", "up"] interleave at 0 : tensor<256)") + type;
    std::vector<uint8_t> balanced = llvm::cantFail(pack(balance + weight));
    source = expected;
    EXPECT_TRUE(balanced == llvm::cantFail(pack(weight))) << type;
    source = original;
  }
}

/// Large tensors are read by several threads, each of some of the rows.
TEST_F(EqualizedSourceTest, ThreadsChangeNothing) {
  source.add("up", WeightType::F32, {640, 500});
  source.add("down", WeightType::F32, {500, 640});
  for (const char *weight :
       {"@up at 0 : tensor<640x500xf32>", "@down at 0 : tensor<500x640xf32>"}) {
    std::string text =
        std::string("mica.equalize rows [\"up\"] columns [\"down\"]\nmica.weight ") + weight;
    EXPECT_TRUE(llvm::cantFail(pack(text, 3)) == llvm::cantFail(pack(text, 1))) << weight;
  }
}

TEST_F(EqualizedSourceTest, RefusesTensorsOfDifferentShapes) {
  source.add("a", WeightType::F32, {3});
  source.add("b", WeightType::F32, {2, 4});
  source.add("c", WeightType::F32, {5});
  auto error = [&](const char *balance) {
    return errorOf(std::string(balance) + "\nmica.weight @b at 0 : tensor<2x4xf32>");
  };
  EXPECT_EQ(error(R"(mica.equalize rows ["a"] columns ["b"])"),
            "mica.equalize has 3 channels in rows, but 4 in columns");
  EXPECT_EQ(error(R"(mica.equalize rows ["a", "c"] columns ["b"])"),
            "mica.equalize names \"c\", which has 5 channels, not 3");
  EXPECT_EQ(error(R"(mica.equalize rows ["none"] columns ["b"])"), "no tensor \"none\"");
  source.add("scalar", WeightType::F32, {});
  EXPECT_EQ(error(R"(mica.equalize rows ["scalar"] columns ["b"])"),
            "mica.equalize names \"scalar\", which has no channels");
  // Rows of a stack are those of its matrices; its entries are equalized.
  source.add("stack", WeightType::F32, {3, 4, 8});
  source.add("next", WeightType::F32, {2, 3});
  EXPECT_EQ(errorOf("mica.equalize rows [\"stack\"] columns [\"next\"]\n"
                    "mica.weight @stack at 0 : tensor<3x4x8xf32>"),
            "weight \"stack\" is made of \"stack\", which is equalized over a different number of "
            "channels");
}

} // namespace
