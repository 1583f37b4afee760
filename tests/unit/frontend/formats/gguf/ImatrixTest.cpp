//===- ImatrixTest.cpp - statistics written by llama-imatrix --------------===//

#include "frontend/formats/gguf/Imatrix.h"

#include "tests/unit/frontend/GgufWriter.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mica;
using mica::test::GgufWriter;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

llvm::Expected<Imatrix> read(const std::string &bytes) {
  return readImatrix({reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()}, "m.imatrix");
}

std::string errorOf(const std::string &bytes) {
  llvm::Expected<Imatrix> imatrix = read(bytes);
  return imatrix ? "none" : llvm::toString(imatrix.takeError());
}

/// An entry of the older format.
std::string entry(const std::string &name, int32_t calls, const std::vector<float> &values) {
  return GgufWriter::raw<int32_t>(name.size()) + name + GgufWriter::raw(calls) +
         GgufWriter::raw<int32_t>(values.size()) +
         std::string(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(float));
}

TEST(Imatrix, SumsAreDividedByTheRowsOfTheirMatrix) {
  GgufWriter writer;
  writer.floats("blk.0.ffn_up_exps.weight.in_sum2", {3, 2}, {2, 4, 6, 8, 1, 1})
      .floats("blk.0.ffn_up_exps.weight.counts", {3, 1}, {2, 4, 0});
  llvm::Expected<Imatrix> imatrix = read(writer.bytes());
  ASSERT_TRUE(bool(imatrix)) << llvm::toString(imatrix.takeError());
  const ImatrixEntry &entry = imatrix->find("blk.0.ffn_up_exps.weight")->second;
  EXPECT_THAT(entry.meanSquares, ElementsAre(1, 2, 1.5, 2, 0, 0));
  EXPECT_THAT(llvm::cantFail(entry.matrix(1, 3)), ElementsAre(1.5, 2));
  EXPECT_EQ(llvm::toString(entry.matrix(0, 4).takeError()), "6 numbers for 4 matrices");
}

TEST(Imatrix, TheOlderFormatHoldsSumsOfMeans) {
  std::string bytes = GgufWriter::raw<int32_t>(2) + entry("a", 2, {2, 4}) + entry("b", 0, {0, 0}) +
                      GgufWriter::raw<int32_t>(7) + entry("text", 0, {});
  llvm::Expected<Imatrix> imatrix = read(bytes);
  ASSERT_TRUE(bool(imatrix)) << llvm::toString(imatrix.takeError());
  EXPECT_THAT(imatrix->find("a")->second.meanSquares, ElementsAre(1, 2));
  EXPECT_THAT(imatrix->find("b")->second.meanSquares, ElementsAre(0, 0));
}

TEST(Imatrix, OtherFilesAreRefused) {
  EXPECT_THAT(errorOf(""), HasSubstr("m.imatrix: is not a llama-imatrix file (it has no entries); "
                                     "use a file written by llama-imatrix for this model"));
  EXPECT_THAT(errorOf(GgufWriter().floats("a", {1}, {1}).bytes()),
              HasSubstr("it has no tensor whose name ends with .in_sum2"));
  EXPECT_THAT(errorOf(GgufWriter().floats("a.in_sum2", {1}, {1}).bytes()),
              HasSubstr("\"a.in_sum2\" has no counts"));
  EXPECT_THAT(
      errorOf(
          GgufWriter().floats("a.in_sum2", {3}, {1, 1, 1}).floats("a.counts", {2}, {1, 1}).bytes()),
      HasSubstr("\"a.in_sum2\" and its counts do not fit together"));
}

TEST(Imatrix, RejectsInvalidMeanSquares) {
  auto sums = [](float value) {
    return GgufWriter().floats("a.in_sum2", {1}, {value}).floats("a.counts", {1}, {1}).bytes();
  };
  EXPECT_EQ(errorOf(sums(1)), "none");
  for (float value : {-1.0f, INFINITY, NAN}) {
    EXPECT_THAT(errorOf(sums(value)),
                HasSubstr("has a mean square that is negative or not finite (\"a\")"));
    EXPECT_THAT(errorOf(GgufWriter::raw<int32_t>(1) + entry("a", 1, {value})),
                HasSubstr("has a mean square that is negative or not finite (\"a\")"));
  }
}

TEST(Imatrix, EveryCutOfTheOlderFormat) {
  std::string bytes = GgufWriter::raw<int32_t>(2) + entry("a", 2, {2, 4}) + entry("bc", 1, {1});
  EXPECT_EQ(errorOf(bytes), "none");
  for (size_t size = sizeof(int32_t); size < bytes.size(); ++size)
    EXPECT_THAT(
        errorOf(bytes.substr(0, size)),
        testing::AnyOf(HasSubstr("entry 0 of 2 is cut off"), HasSubstr("entry 1 of 2 is cut off")))
        << size;
  EXPECT_THAT(errorOf(GgufWriter::raw<int32_t>(2) + entry("a", 1, {1}) + entry("a", 1, {1})),
              HasSubstr("\"a\" occurs twice"));
}

} // namespace
