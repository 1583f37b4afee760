// Blocks are dequantized bit-identically to the package gguf.

#include "frontend/formats/gguf/TensorTypes.h"

#include "tests/unit/Paths.h"
#include "tests/unit/frontend/TestFolder.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace mica;
using testing::HasSubstr;

namespace {

/// The data of an .npy file, after its header.
std::vector<uint8_t> npyBytes(const std::filesystem::path &path) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), {});
  EXPECT_GT(bytes.size(), 10u) << path;
  size_t header = 10 + uint8_t(bytes[8]) + (size_t(uint8_t(bytes[9])) << 8);
  return {bytes.begin() + header, bytes.end()};
}

/// Formats a number with the fewest digits that represent it exactly.
std::string shortest(double number) {
  std::string text = llvm::formatv("{0:f6}", number);
  return llvm::StringRef(text).rtrim('0').rtrim('.').str();
}

class TensorTypes : public testing::TestWithParam<std::string> {};

const TensorType *typeNamed(const std::string &name) {
  for (uint32_t number = 0; number < 64; ++number)
    if (const TensorType *type = tensorTypeNumbered(number); type && type->name == name)
      return type;
  return nullptr;
}

TEST_P(TensorTypes, BecomeTheReferencesNumbers) {
  std::filesystem::path goldens = MICA_SOURCE_DIR "/tests/goldens/gguf";
  std::vector<uint8_t> blocks = npyBytes(goldens / (GetParam() + ".blocks.npy")),
                       expected = npyBytes(goldens / (GetParam() + ".values.npy"));
  const TensorType *type = typeNamed(GetParam());
  ASSERT_TRUE(type && type->format);
  size_t count = blocks.size() / type->bytes;
  ASSERT_EQ(blocks.size(), count * type->bytes);
  ASSERT_EQ(expected.size(), count * type->elements * sizeof(float));
  std::vector<float> values(count * type->elements);
  decodeBlocks(*type, blocks.data(), count, values.data());
  for (size_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(0, std::memcmp(&values[i], &expected[4 * i], 4)) << "number " << i;
}

INSTANTIATE_TEST_SUITE_P(Goldens, TensorTypes,
                         testing::Values("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K",
                                         "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS", "MXFP4"),
                         [](const auto &info) { return info.param; });

TEST(Mxfp4, OfPairsIsTheSameNumbers) {
  uint8_t pairs[16], block[17];
  for (int i = 0; i < 16; ++i)
    pairs[i] = static_cast<uint8_t>(2 * i % 16 | (2 * i + 1) % 16 << 4);
  joinMxfp4(pairs, 128, block);
  float values[32];
  decodeBlocks(mxfp4Type(), block, 1, values);
  constexpr float magnitudes[] = {0, 1, 2, 3, 4, 6, 8, 12};
  for (int i = 0; i < 32; ++i)
    EXPECT_EQ(values[i], i % 16 < 8 ? magnitudes[i % 8] : -magnitudes[i % 8]) << i;
}

/// Each format but Mica's own belongs to one type.
TEST(TensorTypeTable, CoversTheFormats) {
  size_t types = 0, formats = 0;
  for (uint32_t number = 0; number < 64; ++number)
    if (const TensorType *type = tensorTypeNumbered(number); type && type->format) {
      EXPECT_EQ(type->name.lower(), type->format->name);
      ++types;
    }
  for (const BlockFormat &format : blockFormats())
    formats += !format.isOwn;
  EXPECT_EQ(types, formats);
}

TEST(TensorTypeTable, KnowsItsNumbers) {
  EXPECT_EQ(tensorTypeNumbered(4), nullptr) << "a type that is gone";
  EXPECT_EQ(tensorTypeNumbered(1000), nullptr);
  EXPECT_TRUE(tensorTypeNumbered(30)->isPlain());
  EXPECT_EQ(tensorTypeNumbered(8)->bits(), 8.5);
  EXPECT_EQ(tensorTypeNumbered(16)->format, nullptr) << "known by name only";
  EXPECT_EQ(readableTypeNames(), "F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K, Q3_K, Q4_K, "
                                 "Q5_K, Q6_K, IQ4_NL, IQ4_XS, MXFP4");
}

/// A page of the documentation with line breaks replaced by spaces.
std::string pageOf(const std::string &path) {
  std::ifstream file(std::filesystem::path(MICA_SOURCE_DIR) / path);
  std::string text((std::istreambuf_iterator<char>(file)), {});
  EXPECT_FALSE(text.empty()) << path;
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

/// The pages list the types in the table, with sizes that follow from it.
TEST(TensorTypeTable, MatchesThePages) {
  EXPECT_THAT(pageOf("README.md"), HasSubstr("(" + readableTypeNames() + ")"));
  EXPECT_THAT(pageOf("docs/gguf.md"), HasSubstr("| types | " + readableTypeNames() + " |"));
  std::string rows;
  for (uint32_t number = 0; number < 64; ++number)
    if (const TensorType *type = tensorTypeNumbered(number); type && type->format) {
      constexpr int64_t k = 256; // of 64 rows
      double packed = 8.0 * static_cast<double>(PackedBlocks(*type->format).bytesOf(k)) / (64 * k);
      llvm::raw_string_ostream(rows)
          << "| " << type->name << " | " << type->elements << " | "
          << llvm::formatv("{0} | {1} | ", shortest(type->bits()), shortest(packed));
    }
  EXPECT_THAT(pageOf("docs/gguf.md"), HasSubstr(rows));
}

} // namespace
