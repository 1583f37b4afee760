#include "frontend/formats/safetensors/Safetensors.h"

#include "tests/unit/frontend/TestFolder.h"

using namespace mica;
using namespace mica::test;
using testing::HasSubstr;

namespace {

llvm::Expected<std::vector<TensorInfo>> read(const std::string &bytes) {
  return readSafetensorsHeader({reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()},
                               "m");
}

/// The error for a file whose only header entry is `entry`, with `dataBytes` bytes of data.
std::string problemOfEntry(const std::string &entry, size_t dataBytes = 8) {
  return messageOf(read(lengthPrefixed("{\"t\":" + entry + "}", std::string(dataBytes, '\0'))));
}

TEST(Safetensors, ReadsNamesShapesAndOffsets) {
  std::string bytes = safetensors({{"a", {2, 3}}, {"b", {}, "BF16"}, {"c", {4}, "F16"}});
  auto tensors = read(bytes);
  ASSERT_TRUE(bool(tensors));
  ASSERT_EQ(tensors->size(), 3u);
  EXPECT_EQ((*tensors)[0].name, "a");
  EXPECT_EQ(shown((*tensors)[0].shape), "[2, 3]");
  EXPECT_EQ((*tensors)[0].size, 24u);
  EXPECT_EQ((*tensors)[1].type, StoredType::BF16);
  EXPECT_EQ(shown((*tensors)[1].shape), "[]");
  EXPECT_EQ((*tensors)[1].offset, (*tensors)[0].offset + 24);
  EXPECT_EQ((*tensors)[2].offset + (*tensors)[2].size, bytes.size());
}

TEST(Safetensors, OrdersByOffsetNotByHeader) {
  auto tensors =
      read(lengthPrefixed(R"({"late":{"dtype":"U8","shape":[1],"data_offsets":[2,3]},)"
                          R"("early":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}  )",
                          "abc"));
  ASSERT_TRUE(bool(tensors));
  EXPECT_EQ((*tensors)[0].name, "early");
}

TEST(Safetensors, ToleratesEmptyTensors) {
  EXPECT_EQ(messageOf(read(safetensors({{"a", {0, 4}}, {"b", {1}}}))), "");
}

TEST(Safetensors, RejectsAWrongHeaderLength) {
  EXPECT_EQ(messageOf(read("short")), "m: is not a safetensors file (5 bytes); download it again");
  std::string huge(8, '\xff');
  EXPECT_THAT(messageOf(read(huge + "{}")),
              HasSubstr("declares a header of 18446744073709551615 bytes"));
  std::string beyond = lengthPrefixed("{}", "");
  beyond[0] = 3;
  EXPECT_THAT(
      messageOf(read(beyond)),
      HasSubstr(
          "declares a header of 3 bytes, but 2 follow; it is truncated or not a safetensors file"));
}

TEST(Safetensors, RefusesATruncatedFile) {
  std::string bytes = safetensors({{"a", {2, 3}}});
  bytes.pop_back();
  EXPECT_THAT(messageOf(read(bytes)), HasSubstr("tensor \"a\" ends at byte 24 of 23 bytes of data, "
                                                "the file is truncated or its header is wrong"));
}

TEST(Safetensors, RejectsDataWithoutATensor) {
  EXPECT_THAT(messageOf(read(safetensors({{"a", {1}}}) + "x")),
              HasSubstr("has 5 bytes of data, but its tensors end at 4"));
}

TEST(Safetensors, RefusesOverlapsAndGaps) {
  auto pair = [](const char *offsets) {
    return messageOf(read(lengthPrefixed(
        std::string(
            R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],)") +
            "\"data_offsets\":" + offsets + "}}",
        std::string(9, '\0'))));
  };
  EXPECT_THAT(
      pair("[3,7]"),
      HasSubstr("tensor \"b\" starts at byte 3 of the data, which overlaps the tensor before "
                "it (ends at 4)"));
  EXPECT_THAT(pair("[5,9]"),
              HasSubstr("tensor \"b\" starts at byte 5 of the data, which leaves a gap before it "
                        "(ends at 4)"));
  EXPECT_THAT(pair("[0,4]"), HasSubstr("overlaps"));
}

TEST(Safetensors, RejectsWrongSizes) {
  EXPECT_THAT(problemOfEntry(R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})"),
              HasSubstr("tensor \"t\" has 8 bytes, but F32 [3] needs 12"));
  EXPECT_THAT(
      problemOfEntry(R"({"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]})"),
      HasSubstr("has the shape [4294967296, 4294967296], whose size overflows"));
  EXPECT_THAT(
      problemOfEntry(R"({"dtype":"F32","shape":[9223372036854775807,0],"data_offsets":[0,8]})"),
      HasSubstr("whose size overflows"));
  EXPECT_THAT(problemOfEntry(R"({"dtype":"F4","shape":[3],"data_offsets":[0,8]})"),
              HasSubstr("has 8 bytes"));
}

TEST(Safetensors, RefusesOddEntries) {
  EXPECT_THAT(problemOfEntry(R"({"dtype":"F99","shape":[2],"data_offsets":[0,8]})"),
              HasSubstr("has the unknown dtype \"F99\""));
  EXPECT_THAT(problemOfEntry(R"({"shape":[2],"data_offsets":[0,8]})"),
              HasSubstr("has no dtype in the header"));
  EXPECT_THAT(problemOfEntry(R"({"dtype":"F32","data_offsets":[0,8]})"),
              HasSubstr("has no shape in the header"));
  EXPECT_THAT(problemOfEntry(R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})"),
              HasSubstr("has the invalid dimension -2"));
  EXPECT_THAT(problemOfEntry(R"({"dtype":"F32","shape":[1.5],"data_offsets":[0,8]})"),
              HasSubstr("has the invalid dimension 1.5"));
  EXPECT_THAT(problemOfEntry(R"({"dtype":"F32","shape":[1,1,1,1,1,1,1,1,2],"data_offsets":[0,8]})"),
              HasSubstr("has 9 dimensions"));
  EXPECT_THAT(problemOfEntry(R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})"),
              HasSubstr("has the invalid data_offsets [8,0]"));
  EXPECT_THAT(problemOfEntry(R"({"dtype":"F32","shape":[2],"data_offsets":[0]})"),
              HasSubstr("has no pair of data_offsets in the header"));
  EXPECT_THAT(problemOfEntry(R"({"dtype":"F32","shape":[2],"data_offsets":[-1,8]})"),
              HasSubstr("has the invalid data_offsets"));
  EXPECT_THAT(problemOfEntry(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1})"),
              HasSubstr("has the unknown entry \"x\" in the header"));
  EXPECT_THAT(problemOfEntry("3"), HasSubstr("has a header entry \"t\" that is not an object"));
}

TEST(Safetensors, RefusesBrokenHeaders) {
  EXPECT_THAT(messageOf(read(lengthPrefixed("{\"a\":", ""))), HasSubstr("is not valid JSON"));
  EXPECT_THAT(messageOf(read(lengthPrefixed("[1]", ""))),
              HasSubstr("has a header that does not begin with \"{\""));
  EXPECT_THAT(messageOf(read(lengthPrefixed(R"({"__metadata__":{"a":1}})", ""))),
              HasSubstr("has a __metadata__ entry \"a\" that is not a string"));
  EXPECT_THAT(messageOf(read(lengthPrefixed(R"({"__metadata__":[]})", ""))),
              HasSubstr("has a __metadata__ in its header that is not an object"));
  EXPECT_THAT(messageOf(read(lengthPrefixed("{\"a\":" + std::string(100000, '['), ""))),
              HasSubstr("nests deeper"));
}

/// Padding is only allowed after the header's object.
TEST(Safetensors, RefusesDataBeforeTheHeader) {
  const std::string entry = R"({"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})";
  EXPECT_EQ(messageOf(read(lengthPrefixed(entry + "   ", "a"))), "");
  for (const char *before : {"\xEF\xBB\xBF", " ", "\n", "\t"})
    EXPECT_EQ(messageOf(read(lengthPrefixed(before + entry, "a"))),
              "m: has a header that does not begin with \"{\"; download it again");
}

TEST(Safetensors, RefusesARepeatedName) {
  std::string entry = R"("t":{"dtype":"U8","shape":[1],"data_offsets":[0,1]})";
  EXPECT_EQ(messageOf(read(lengthPrefixed("{" + entry + "," + entry + "}", "x"))),
            "m: key \"t\" occurs twice; keep one");
}

TEST(Safetensors, EscapesNamesInMessages) {
  EXPECT_THAT(messageOf(read(lengthPrefixed("{\"a\\nb\":3}", ""))), HasSubstr("\"a\\0Ab\""));
}

TEST(StoredTypes, KeepTheirNames) {
  for (llvm::StringRef name : {"F64", "F32", "BF16", "F16", "F8_E4M3", "I64", "U8", "BOOL"})
    EXPECT_EQ(nameOf(*storedTypeNamed(name)), name);
  EXPECT_EQ(bitsOf(StoredType::BF16), 16u);
  EXPECT_EQ(storedTypeNamed("F31"), std::nullopt);
}

} // namespace
