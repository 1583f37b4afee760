//===- PackWeightsTest.cpp - whole weights compared with a naive packer ---===//

#include "tests/unit/backends/cpu/pack/PackFixture.h"

#include "gmock/gmock.h"

using namespace mica;
using namespace mica::cpu;
using namespace mlir;
using testing::HasSubstr;

namespace {

float elementAt(const std::vector<uint8_t> &bytes, int64_t index, bool bf16) {
  uint32_t bits = 0;
  if (bf16)
    std::memcpy(reinterpret_cast<uint8_t *>(&bits) + 2, bytes.data() + 2 * index, 2);
  else
    std::memcpy(&bits, bytes.data() + 4 * index, 4);
  return std::bit_cast<float>(bits);
}

/// The packed form defined by oneDNN's tag, element by element.
std::vector<float> naive(const std::vector<float> &matrix, int64_t rows, int64_t columns,
                         int64_t depth) {
  int64_t padded = (columns + 16 * depth - 1) / (16 * depth) * 16 * depth,
          blocks = (rows + 63) / 64;
  std::vector<float> packed(blocks * 64 * padded);
  for (int64_t n = 0; n < rows; ++n)
    for (int64_t k = 0; k < columns; ++k)
      packed[((n / 64 * (padded / depth) + k / depth) * 64 + n % 64) * depth + k % depth] =
          matrix[n * columns + k];
  return packed;
}

void expectEqual(const std::vector<uint8_t> &bytes, const std::vector<float> &expected, bool bf16) {
  ASSERT_EQ(bytes.size(), expected.size() * (bf16 ? 2 : 4));
  for (size_t i = 0; i < expected.size(); ++i)
    ASSERT_EQ(elementAt(bytes, i, bf16), expected[i]) << "element " << i;
}

std::string packedType(int64_t rows, int64_t columns, bool bf16) {
  return "tensor<" + std::to_string(rows) + "x" + std::to_string(columns) +
         (bf16 ? "xbf16, #mica.packed<columns = 64, depth = 2, k_block = 32>>"
               : "xf32, #mica.packed<columns = 64, depth = 1, k_block = 16>>");
}

TEST_F(PackTest, MatricesOfOddShapesInEveryType) {
  for (auto [rows, columns] : {std::pair<int64_t, int64_t>{1, 1},
                               {64, 64},
                               {65, 31},
                               {172, 64},
                               {3, 1000},
                               {200, 33},
                               {700, 700}})
    for (WeightType from : {WeightType::F32, WeightType::BF16, WeightType::F16})
      for (bool bf16 : {false, true}) {
        source.add("w", from, {rows, columns});
        auto bytes = pack("mica.weight @w at 0 : " + packedType(rows, columns, bf16));
        ASSERT_TRUE(bool(bytes)) << llvm::toString(bytes.takeError());
        expectEqual(*bytes, naive(source.values("w"), rows, columns, bf16 ? 2 : 1), bf16);
        ASSERT_FALSE(HasFatalFailure()) << rows << " x " << columns;
        source = MemorySource();
      }
}

TEST_F(PackTest, LargeMatrixInSeveralBatchesIsTheSameOnAnyNumberOfThreads) {
  source.add("w", WeightType::BF16, {3000, 2050});
  std::string text = "mica.weight @w at 0 : " + packedType(3000, 2050, true);
  std::vector<uint8_t> one = llvm::cantFail(pack(text, 1)), two = llvm::cantFail(pack(text, 2)),
                       five = llvm::cantFail(pack(text, 5)), many = llvm::cantFail(pack(text, 256));
  expectEqual(one, naive(source.values("w"), 3000, 2050, 2), true);
  EXPECT_TRUE(one == two && one == five && one == many);
}

/// Memory does not grow with the machine: 256 threads and the largest panels of common models.
TEST(PanelsPerBatch, AreBounded) {
  EXPECT_EQ(panelsPerBatch(64 << 10, 2), 64);
  EXPECT_EQ(panelsPerBatch(2 << 20, 16), 32) << "two for each thread";
  for (unsigned threads : {1, 2, 16, 128, 256, 1024})
    for (int64_t k : {1, 33, 4096, 14336, 53248}) {
      int64_t bytes = 64 * k * 4, count = panelsPerBatch(bytes, threads);
      EXPECT_GE(count, 1);
      EXPECT_LE(count * bytes, kMaxBatchBytes) << k << " at " << threads;
      EXPECT_GE(count, std::min<int64_t>(threads, kMaxBatchBytes / bytes)) << "work for each";
    }
  EXPECT_EQ(panelsPerBatch(2 * kMaxBatchBytes, 4), 1);
}

/// Rows of a tensor in order, by heads and transposed.
TEST_F(PackTest, PartsOfTensors) {
  source.add("qkv", WeightType::F32, {12, 33});
  source.add("t", WeightType::BF16, {31, 10});
  source.add("e", WeightType::F32, {3, 7, 5});
  source.add("f", WeightType::F32, {4, 7, 5});
  std::vector<float> qkv = source.values("qkv"), t = source.values("t"), e = source.values("e");
  auto rowsOf = [&](llvm::ArrayRef<int64_t> rows) {
    std::vector<float> matrix;
    for (int64_t row : rows)
      matrix.insert(matrix.end(), qkv.begin() + row * 33, qkv.begin() + (row + 1) * 33);
    return matrix;
  };
  auto packed = [&](llvm::StringRef sources, int64_t rows, int64_t columns) {
    return llvm::cantFail(pack("mica.weight @w from [" + sources.str() +
                               "] at 0 : " + packedType(rows, columns, false)));
  };
  expectEqual(packed(R"(#mica.slice<"qkv", rows 4 to 9 of 12>)", 5, 33),
              naive(rowsOf({4, 5, 6, 7, 8}), 5, 33, 1), false);
  expectEqual(packed(R"(#mica.slice<"qkv", rows 1 to 3 of 6>)", 4, 33),
              naive(rowsOf({1, 2, 7, 8}), 4, 33, 1), false);
  std::vector<float> transposed;
  for (int64_t row : {2, 3, 7, 8})
    for (int64_t column = 0; column < 31; ++column)
      transposed.push_back(t[column * 10 + row]);
  expectEqual(packed(R"(#mica.slice<"t", transposed, rows 2 to 4 of 5>)", 4, 31),
              naive(transposed, 4, 31, 1), false);
  // Rows as columns, of a tensor and of its transpose.
  std::vector<float> columnMajor, twice;
  for (int64_t column = 0; column < 33; ++column)
    for (int64_t row : {1, 2, 7, 8})
      columnMajor.push_back(qkv[row * 33 + column]);
  for (int64_t column = 0; column < 31; ++column)
    for (int64_t row : {2, 3, 7, 8})
      twice.push_back(t[column * 10 + row]);
  expectEqual(packed(R"(#mica.slice<"qkv", rows 1 to 3 of 6, as_columns>)", 33, 4),
              naive(columnMajor, 33, 4, 1), false);
  expectEqual(packed(R"(#mica.slice<"t", transposed, rows 2 to 4 of 5, as_columns>)", 31, 4),
              naive(twice, 31, 4, 1), false);
  EXPECT_THAT(
      llvm::toString(pack(R"(mica.weight @w from [#mica.slice<"qkv", rows 1 to 3 of 5>] at 0 : )" +
                          packedType(4, 33, false))
                         .takeError()),
      HasSubstr("\"qkv[1:3 of 5]\" is not part of its tensor"));
  EXPECT_THAT(
      llvm::toString(pack(R"(mica.weight @w from [#mica.slice<"e", rows 0 to 1 of 2>] at 0 : )" +
                          packedType(1, 5, false))
                         .takeError()),
      HasSubstr("\"e[0:1 of 2]\" is not part of its tensor"));
  EXPECT_THAT(
      llvm::toString(pack(R"(mica.weight @w from [#mica.slice<"f", rows 0 to 1 of 2>] at 0 : )" +
                          packedType(1, 5, false))
                         .takeError()),
      HasSubstr("\"f[0:1 of 2]\" is a part of more than a matrix"));
  expectEqual(packed(R"(#mica.slice<"e", entry 1>)", 7, 5),
              naive(std::vector<float>(e.begin() + 35, e.begin() + 70), 7, 5, 1), false);
}

/// Blocks along rows that are read along columns.
TEST_F(PackTest, TransposedEntriesInBlocks) {
  source.addBlocks("k", {2, 5, 32});
  std::vector<float> k = source.values("k"), joined;
  for (int64_t entry = 0; entry < 2; ++entry)
    for (int64_t column = 0; column < 32; ++column)
      for (int64_t row = 0; row < 5; ++row)
        joined.push_back(k[(entry * 5 + row) * 32 + column]);
  expectEqual(
      llvm::cantFail(pack(
          R"(mica.weight @w from [#mica.slice<"k", entry 0, transposed>, #mica.slice<"k", entry 1, transposed>] concat at 0 : )" +
          packedType(64, 5, false))),
      naive(joined, 64, 5, 1), false);
}

TEST_F(PackTest, PlainMatricesAndVectorsKeepTheirOrder) {
  source.add("m", WeightType::F16, {300, 1100});
  source.add("v", WeightType::BF16, {77});
  std::vector<uint8_t> bytes =
      llvm::cantFail(pack("mica.weight @m at 0 bytes 660000 : tensor<300x1100xbf16>\n"
                          "mica.weight @v at 660032 : tensor<77xf32>"));
  std::vector<uint8_t> matrix(bytes.begin(), bytes.begin() + 660000),
      vector(bytes.begin() + 660032, bytes.end());
  expectEqual(matrix, source.values("m"), true);
  expectEqual(vector, source.values("v"), false);
  EXPECT_THAT(std::vector<uint8_t>(bytes.begin() + 660000, bytes.begin() + 660032),
              testing::Each(0));
  EXPECT_THAT(source.released, testing::ElementsAre("m", "v"));
}

TEST_F(PackTest, ConcatJoinsRows) {
  source.add("a", WeightType::F32, {70, 20});
  source.add("b", WeightType::F32, {10, 20});
  std::vector<float> joined = source.values("a");
  joined.insert(joined.end(), source.values("b").begin(), source.values("b").end());
  expectEqual(llvm::cantFail(pack(R"(mica.weight @w from ["a", "b"] concat at 0 : )" +
                                  packedType(80, 20, false))),
              naive(joined, 80, 20, 1), false);
}

/// Blocks of 64 rows of each part alternately, zero rows after the end of a part.
std::vector<float> interleaved(llvm::ArrayRef<std::vector<float>> parts, int64_t columns) {
  std::vector<float> out;
  int64_t rows = parts.front().size() / columns;
  for (int64_t block = 0; block < (rows + 63) / 64; ++block)
    for (const std::vector<float> &part : parts)
      for (int64_t i = 0; i < 64 * columns; ++i) {
        int64_t at = block * 64 * columns + i;
        out.push_back(at < int64_t(part.size()) ? part[at] : 0);
      }
  return out;
}

TEST_F(PackTest, InterleaveAlternatesBlocks) {
  source.add("g", WeightType::BF16, {72, 32});
  source.add("u", WeightType::BF16, {72, 32});
  std::vector<float> rows = interleaved({source.values("g"), source.values("u")}, 32);
  expectEqual(llvm::cantFail(pack(R"(mica.weight @w from ["g", "u"] interleave at 0 : )" +
                                  packedType(256, 32, true))),
              naive(rows, 256, 32, 2), true);
  source.add("bg", WeightType::BF16, {72});
  source.add("bu", WeightType::BF16, {72});
  expectEqual(
      llvm::cantFail(pack(R"(mica.weight @b from ["bg", "bu"] interleave at 0 : tensor<256xf32>)")),
      interleaved({source.values("bg"), source.values("bu")}, 1), false);
}

TEST_F(PackTest, PaddingFillsGroupsOfRows) {
  source.add("g", WeightType::BF16, {72, 32});
  source.add("u", WeightType::BF16, {72, 32});
  constexpr int64_t ofRow = 32 * sizeof(uint16_t);
  llvm::cantFail(
      pack(R"(mica.weight @w from ["g", "u"] interleave at 0 : )" + packedType(256, 32, true)));
  EXPECT_EQ(padding["w"], (256 - 2 * 72) * ofRow);
  llvm::cantFail(pack(R"(mica.weight @w from ["g"] at 0 : )" + packedType(72, 32, true)));
  EXPECT_EQ(padding["w"], (128 - 72) * ofRow);
  llvm::cantFail(pack(R"(module attributes {mica.ranks = 2 : i64} {
mica.weight @w from ["g"] shard <axis = 0, ranks = 2> at 0 : )" +
                          packedType(36, 32, true) + "}",
                      1, 4096));
  EXPECT_EQ(padding["w"], (64 - 36) * ofRow);
  llvm::cantFail(pack(R"(mica.weight @w from ["g"] at 0 : tensor<72x32xbf16>)"));
  EXPECT_EQ(padding["w"], 0);
}

TEST_F(PackTest, BlocksAreMultipliedByTheirScales) {
  source.addApart("e", {3, 4, 64});
  std::vector<float> e = source.values("e"), expected;
  for (int64_t expert : {0, 1, 2})
    for (int64_t row : {1, 3})
      expected.insert(expected.end(), e.begin() + (expert * 4 + row) * 64,
                      e.begin() + (expert * 4 + row + 1) * 64);
  std::vector<float> stack;
  for (int64_t expert : {0, 1, 2})
    llvm::append_range(stack, naive(std::vector<float>(expected.begin() + expert * 128,
                                                       expected.begin() + (expert + 1) * 128),
                                    2, 64, 1));
  expectEqual(llvm::cantFail(pack(R"(
mica.weight @w from [#mica.slice<"e", entry 0, rows 1 to 2 of 2>, #mica.slice<"e", entry 1, rows 1 to 2 of 2>,
    #mica.slice<"e", entry 2, rows 1 to 2 of 2>] stack at 0
    : tensor<3x2x64xf32, #mica.packed<columns = 64, depth = 1, k_block = 16>>)")),
              stack, false);
  expectEqual(llvm::cantFail(pack(R"(mica.weight @all from [#mica.slice<"e", entry 1>] at 0 : )" +
                                  packedType(4, 64, false))),
              naive(std::vector<float>(e.begin() + 256, e.begin() + 512), 4, 64, 1), false);
}

TEST_F(PackTest, StackPacksEachMatrixAndInterleavesParts) {
  std::vector<float> plain, gated;
  for (const char *expert : {"0", "1", "2"}) {
    std::string gate = std::string("g") + expert, up = std::string("u") + expert;
    source.add(gate, WeightType::F32, {72, 40});
    source.add(up, WeightType::F32, {72, 40});
    llvm::append_range(plain, naive(source.values(gate), 72, 40, 1));
    llvm::append_range(
        gated, naive(interleaved({source.values(gate), source.values(up)}, 40), 256, 40, 1));
  }
  constexpr llvm::StringLiteral layout =
      "xf32, #mica.packed<columns = 64, depth = 1, k_block = 16>>";
  expectEqual(llvm::cantFail(pack(
                  (R"(mica.weight @w from ["g0", "g1", "g2"] stack at 0 : tensor<3x72x40)" + layout)
                      .str())),
              plain, false);
  expectEqual(
      llvm::cantFail(pack(
          (R"(mica.weight @w from ["g0", "u0", "g1", "u1", "g2", "u2"] stack parts(2) at 0 : tensor<3x256x40)" +
           layout)
              .str())),
      gated, false);
  source.add("all", WeightType::F32, {3, 72, 40});
  std::vector<float> all;
  for (int64_t e = 0; e < 3; ++e) {
    auto begin = source.values("all").begin() + e * 72 * 40;
    llvm::append_range(all, naive(std::vector<float>(begin, begin + 72 * 40), 72, 40, 1));
  }
  expectEqual(llvm::cantFail(pack(("mica.weight @all at 0 : tensor<3x72x40" + layout).str())), all,
              false);
}

/// Rows `begin` to `begin + count` of a matrix; zero beyond its end.
std::vector<float> rowsOf(const std::vector<float> &matrix, int64_t columns, int64_t begin,
                          int64_t count) {
  std::vector<float> rows(count * columns);
  for (int64_t i = 0; i < count * columns; ++i)
    if (int64_t at = begin * columns + i; at < int64_t(matrix.size()))
      rows[i] = matrix[at];
  return rows;
}

// A rank has rows of each source before they are composed, padded with zeros to those of the
// others; the same part of ranks that share one; columns of vectors; some of the entries of a
// stack.
TEST_F(PackTest, RanksHaveParts) {
  source.add("a", WeightType::F32, {5, 4});
  source.add("b", WeightType::F32, {7, 4});
  source.add("e0", WeightType::F32, {6, 4});
  source.add("e1", WeightType::F32, {6, 4});
  source.add("all", WeightType::F32, {2, 6, 4});
  source.add("v", WeightType::F32, {2, 6});
  constexpr int64_t stride = 4096;
  std::vector<uint8_t> bytes = llvm::cantFail(pack(R"(
module attributes {mica.ranks = 4 : i64} {
  mica.weight @joined from ["a", "b"] concat shard <axis = 0, ranks = 4> at 0 : tensor<4x4xf32>
  mica.weight @shared from ["e0"] shard <axis = 0, ranks = 4, replicas = 2> at 64 : tensor<3x4xf32>
  mica.weight @experts from ["e0", "e1"] stack shard <axis = 1, ranks = 4> at 128 : tensor<2x2x4xf32>
  mica.weight @tensor from ["all"] shard <axis = 1, ranks = 4> at 192 : tensor<2x2x4xf32>
  mica.weight @columns from ["v"] shard <axis = 1, ranks = 4> at 256 : tensor<2x2xf32>
  mica.weight @entries from ["a", "a", "b", "b"] stack parts(2) shard <axis = 0, ranks = 4, replicas = 2> at 320
      : tensor<1x128x4xf32>
  mica.weight @whole from ["a"] at 2368 : tensor<5x4xf32>
})",
                                                   2, stride));
  for (int64_t rank = 0; rank < 4; ++rank) {
    auto at = [&](int64_t offset, const std::vector<float> &expected) {
      auto begin = bytes.begin() + rank * stride + offset;
      SCOPED_TRACE("rank " + std::to_string(rank) + ", offset " + std::to_string(offset));
      expectEqual({begin, begin + int64_t(expected.size() * sizeof(float))}, expected, false);
    };
    auto joined = [](std::vector<float> a, const std::vector<float> &b) {
      a.insert(a.end(), b.begin(), b.end());
      return a;
    };
    std::vector<float> a = source.values("a"), b = source.values("b"), e0 = source.values("e0"),
                       e1 = source.values("e1"), all = source.values("all"), v = source.values("v");
    at(0, joined(rowsOf(a, 4, rank * 2, 2), rowsOf(b, 4, rank * 2, 2)));
    at(64, rowsOf(e0, 4, rank / 2 * 3, 3));
    at(128, joined(rowsOf(e0, 4, rank * 2, 2), rowsOf(e1, 4, rank * 2, 2)));
    std::vector<float> first(all.begin(), all.begin() + 24), second(all.begin() + 24, all.end());
    at(192, joined(rowsOf(first, 4, rank * 2, 2), rowsOf(second, 4, rank * 2, 2)));
    std::vector<float> v0(v.begin(), v.begin() + 6), v1(v.begin() + 6, v.end());
    at(256, joined(rowsOf(v0, 1, rank * 2, 2), rowsOf(v1, 1, rank * 2, 2)));
    std::vector<float> entry = rank < 2 ? a : b;
    at(320, interleaved({entry, entry}, 4));
    at(2368, a);
  }
}

TEST_F(PackTest, RefusesPartsAlongAxesThatSourcesLack) {
  source.add("a", WeightType::F32, {4});
  EXPECT_THAT(errorOf(R"(
module attributes {mica.ranks = 2 : i64} {
  mica.weight @w from ["a"] shard <axis = 1, ranks = 2> at 0 : tensor<2x2xf32>
})"),
              testing::HasSubstr("is partitioned along axis 1, which \"a\" does not have"));
}

TEST_F(PackTest, NamesTheTensorWithNonFiniteValues) {
  for (float poison : {NAN, INFINITY, -INFINITY})
    for (bool bf16 : {true, false}) {
      source = MemorySource();
      source.add("a", WeightType::F32, {70, 20});
      source.add("b", WeightType::F32, {10, 20});
      source.poison("b", 199, poison);
      EXPECT_EQ(
          errorOf(R"(mica.weight @w from ["a", "b"] concat at 0 : )" + packedType(80, 20, bf16)),
          std::string(R"(tensor "b" holds NaN)") +
              (bf16 ? ", infinity or a number beyond bf16" : " or infinity") +
              "; check the checkpoint");
    }
  source.poison("b", 199, 3.4e38f);
  EXPECT_EQ(errorOf(R"(mica.weight @w from ["a", "b"] concat at 0 : )" + packedType(80, 20, true)),
            R"(tensor "b" holds NaN, infinity or a number beyond bf16; check the checkpoint)");
  EXPECT_EQ(errorOf(R"(mica.weight @b at 0 : tensor<10x20xf32>)"), "");
}

/// Rows keep the values of their own tensor, whatever the type of the others.
TEST_F(PackTest, JoinsSourcesOfDifferentTypes) {
  source.add("a", WeightType::F32, {70, 20});
  source.add("b", WeightType::BF16, {30, 20});
  source.add("c", WeightType::F16, {20, 20});
  std::vector<float> all;
  for (const char *name : {"a", "b", "c"})
    for (float value : source.values(name))
      all.push_back(value);
  auto bytes = pack(R"(mica.weight @w from ["a", "b", "c"] concat at 0 : tensor<120x20xf32>)");
  ASSERT_TRUE(bool(bytes)) << llvm::toString(bytes.takeError());
  expectEqual(*bytes, all, false);
}

TEST_F(PackTest, RefusesSourcesThatDoNotFit) {
  source.add("a", WeightType::F32, {70, 20});
  source.add("b", WeightType::BF16, {70, 20});
  EXPECT_EQ(errorOf("mica.weight @none at 0 : tensor<4xf32>"), "no tensor \"none\"");
  EXPECT_THAT(errorOf("mica.weight @a at 0 : tensor<70x21xf32>"),
              HasSubstr("has rows of 21 elements, but \"a\" does not"));
  EXPECT_THAT(errorOf("mica.weight @a at 0 : tensor<71x20xf32>"),
              HasSubstr("has 71 rows, but its sources have 70"));
  EXPECT_THAT(errorOf(R"(mica.weight @w from ["a"] stack at 0 : tensor<1x72x20xf32>)"),
              HasSubstr("stacks matrices of 72 rows, but \"a\" has 70"));
  EXPECT_THAT(errorOf("mica.weight @a at 0 : tensor<70x20xf16>"),
              HasSubstr("is stored as f16, but programs hold f32, bf16 and blocks"));
  source.add("c", WeightType::F32, {10, 20});
  EXPECT_THAT(errorOf(R"(mica.weight @w from ["a", "c"] interleave at 0 : tensor<256x20xf32>)"),
              HasSubstr("interleaves sources of different numbers of rows"));
  source.add("d", WeightType::F32, {-1, -20});
  EXPECT_THAT(errorOf("mica.weight @d at 0 : tensor<1x20xf32>"),
              HasSubstr("is made of \"d\", whose shape is invalid"));
}

TEST_F(PackTest, RefusesTypesThatNoProgramHolds) {
  source.add("a", WeightType::F32, {2, 2, 2, 2});
  EXPECT_THAT(
      errorOf("mica.weight @a at 0 : tensor<2x2x2x2xf32>"),
      HasSubstr("has 4 dimensions, but only vectors, matrices and stacks of matrices are stored"));
  source.add("b", WeightType::F32, {64, 32});
  EXPECT_THAT(errorOf("mica.weight @b at 0 : tensor<64x32xf32, #mica.packed<columns = 64, depth = "
                      "2, k_block = 32>>"),
              HasSubstr("has a layout whose groups along K are not 4 bytes"));
  source.add("c", WeightType::F32, {64});
  EXPECT_THAT(errorOf("mica.weight @c at 0 : tensor<64xf32, #mica.packed<columns = 64, depth = 1, "
                      "k_block = 16>>"),
              HasSubstr("is a vector with the layout of a matrix"));
}

TEST_F(PackTest, RejectsInvalidOffsets) {
  source.add("a", WeightType::F32, {4, 4});
  source.add("b", WeightType::F32, {4, 4});
  EXPECT_THAT(
      errorOf("mica.weight @a at 0 : tensor<4x4xf32>\nmica.weight @b at 32 : tensor<4x4xf32>"),
      HasSubstr("weight \"b\" needs an offset after the end of the previous weight"));
  EXPECT_THAT(errorOf("mica.weight @a : tensor<4x4xf32>"),
              HasSubstr("needs an offset after the end of the previous weight"));
  EXPECT_THAT(errorOf("mica.weight @a at 0 bytes 60 : tensor<4x4xf32>"),
              HasSubstr("expected 60 bytes at offset 0, got 64"));
}

TEST_F(PackTest, StopsWhenTheSinkFails) {
  source.add("w", WeightType::F32, {3000, 2050});
  OwningOpRef<ModuleOp> module = parse("mica.weight @w at 0 : " + packedType(3000, 2050, false));
  int calls = 0;
  auto sink = [&](llvm::ArrayRef<uint8_t>) {
    return ++calls == 2 ? llvm::createStringError("full") : llvm::Error::success();
  };
  EXPECT_EQ(llvm::toString(packWeights(*module, source, {sink, {}, 2})), "full");
  EXPECT_EQ(calls, 2);
}

} // namespace
