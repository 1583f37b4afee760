// The types of GGUF files and their block formats.

#include "frontend/formats/gguf/TensorTypes.h"

#include "tests/unit/Paths.h"
#include "tests/unit/frontend/TestFolder.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mica;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

namespace {

TEST(Mxfp4, PairLayoutHasTheSameValues) {
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
  size_t formats = 0;
  for (const TensorType *type : blockTypes())
    EXPECT_EQ(type->name.lower(), type->format->name);
  for (const BlockFormat &format : blockFormats())
    formats += !format.isOwn;
  EXPECT_EQ(blockTypes().size(), formats);
}

TEST(TensorTypeTable, TypesAreFoundByNumber) {
  EXPECT_EQ(tensorTypeNumbered(4), nullptr) << "a type that is gone";
  EXPECT_EQ(tensorTypeNumbered(1000), nullptr);
  EXPECT_TRUE(tensorTypeNumbered(30)->isPlain());
  EXPECT_EQ(tensorTypeNumbered(8)->bits(), 8.5);
  EXPECT_EQ(tensorTypeNumbered(16)->format, nullptr) << "known by name only";
  EXPECT_THAT(readableTypeNames(),
              AllOf(StartsWith("F32, F16, BF16, Q4_0, "), HasSubstr(", Q4_K, ")));
}

/// A page of the documentation with line breaks replaced by spaces.
std::string pageOf(const std::string &path) {
  std::ifstream file(std::filesystem::path(MICA_SOURCE_DIR) / path);
  std::string text((std::istreambuf_iterator<char>(file)), {});
  EXPECT_FALSE(text.empty()) << path;
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

/// "`a`, `b` and `c`": the names of the formats for which `isListed` holds.
std::string listOf(llvm::function_ref<bool(const BlockFormat &)> isListed) {
  std::vector<std::string> names;
  for (const BlockFormat &format : blockFormats())
    if (isListed(format))
      names.push_back("`" + std::string(format.name) + "`");
  std::string last = names.back();
  names.pop_back();
  return llvm::join(names, ", ") + " and " + last;
}

/// The page names the formats with the properties in the table.
TEST(TensorTypeTable, MatchesThePage) {
  auto isSubtracted = [](const BlockFormat &format) { return format.offsetSign < 0; };
  auto isOwn = [](const BlockFormat &format) { return format.isOwn; };
  EXPECT_THAT(pageOf("docs/dialect.md"),
              AllOf(HasSubstr("The sign is -1 for " + listOf(isSubtracted) + ", else 1."),
                    HasSubstr(listOf(isOwn) + " are Mica's own,")));
}

} // namespace
