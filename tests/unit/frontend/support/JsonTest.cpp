#include "frontend/support/Json.h"

#include "frontend/support/InputError.h"
#include "tests/unit/frontend/TestFolder.h"

using namespace mica;
using namespace mica::test;
using testing::HasSubstr;

namespace {

std::string problemOf(llvm::StringRef text, const JsonLimits &limits = {}) {
  return messageOf(parseJson(text, "f.json", limits));
}

TEST(Json, BuildsValues) {
  auto value = parseJson(R"({"a": [1, -2, 2.5, true, null], "b": {"c": "text"}})", "f.json");
  ASSERT_TRUE(bool(value));
  EXPECT_EQ(shown(*value), R"({"a":[1,-2,2.5,true,null],"b":{"c":"text"}})");
}

TEST(Json, KeepsLargeIntegersExact) {
  auto value = parseJson("[18446744073709551615, -9223372036854775808]", "f.json");
  ASSERT_TRUE(bool(value));
  EXPECT_EQ((*value->getAsArray())[0].getAsUINT64(), UINT64_MAX);
  EXPECT_EQ((*value->getAsArray())[1].getAsInteger(), INT64_MIN);
}

TEST(Json, RefusesARepeatedKey) {
  EXPECT_EQ(problemOf(R"({"a": 1, "b": 2, "a": 3})"), "f.json: key \"a\" occurs twice; keep one");
}

TEST(Json, AllowsTheSameKeyInDifferentObjects) {
  EXPECT_EQ(problemOf(R"([{"a": 1}, {"a": {"a": 2}}])"), "");
}

TEST(Json, RefusesNotANumberNearItsKey) {
  EXPECT_EQ(problemOf("{\"eps\":\n NaN}"),
            "f.json: is not valid JSON (line 2, column 2 near key \"eps\"); correct it");
  EXPECT_THAT(problemOf("{\"eps\": -Infinity}"), HasSubstr("near key \"eps\""));
}

TEST(Json, RefusesNumbersBeyondDouble) {
  EXPECT_THAT(problemOf("{\"eps\": 1e999}"), HasSubstr("has a number out of range (line 1"));
}

TEST(Json, RefusesDepthWithoutRecursing) {
  EXPECT_THAT(problemOf(std::string(1000000, '[')), HasSubstr("nests deeper than 32 levels"));
  std::string objects;
  for (int i = 0; i < 100000; ++i)
    objects += "{\"k\":";
  EXPECT_THAT(problemOf(objects), HasSubstr("nests deeper than 32 levels near key \"k\""));
}

TEST(Json, BoundsBytesAndValues) {
  EXPECT_THAT(problemOf("[1, 2]", {.bytes = 5}),
              HasSubstr("is larger than the 5 bytes that such a file may have"));
  EXPECT_THAT(problemOf("[1, 2, 3]", {.values = 3}), HasSubstr("holds more than 3 values"));
  EXPECT_EQ(problemOf("[1, 2]", {.values = 3}), "");
}

TEST(Json, RefusesTrailingTextAndTruncation) {
  EXPECT_THAT(problemOf("{} {}"), HasSubstr("is not valid JSON (line 1, column 4"));
  EXPECT_THAT(problemOf("{\"a\": "), HasSubstr("is not valid JSON"));
  EXPECT_THAT(problemOf(""), HasSubstr("is not valid JSON"));
}

TEST(Json, RefusesNulBytes) {
  using namespace std::string_literals;
  EXPECT_EQ(problemOf("{}\0"s), "f.json: is not valid JSON (a NUL byte at 2); correct it");
  EXPECT_THAT(problemOf("{}\0 and more"s), HasSubstr("a NUL byte at 2"));
}

TEST(Json, RefusesInvalidUtf8) {
  EXPECT_THAT(problemOf("\"\xff\xfe\""), HasSubstr("is not valid JSON"));
}

TEST(Json, FileMustHoldAnObject) {
  TestFolder folder;
  std::string path = folder.write("a.json", "[1]");
  EXPECT_EQ(messageOf(readJsonObject(path)), path + ": does not hold a JSON object; correct it");
}

/// Python writes infinity without quotes.
TEST(Json, FilesMayHoldInfinity) {
  TestFolder folder;
  auto value = readJsonObject(
      folder.write("a.json", R"({"a": [0, Infinity], "\\\"Infinity": "an Infinity\\"})"));
  ASSERT_TRUE(bool(value)) << llvm::toString(value.takeError());
  EXPECT_EQ(shown(llvm::json::Value(std::move(*value))),
            R"({"\\\"Infinity":"an Infinity\\","a":[0,"Infinity"]})");
  EXPECT_THAT(messageOf(readJsonObject(folder.write("b.json", R"({"a": -Infinity})"))),
              HasSubstr("near key \"a\""));
}

TEST(InputError, StaysOnOneLine) {
  EXPECT_EQ(messageOf(inputError("a\nb", "is\twrong", "do\rit")), "a?b: is?wrong; do?it");
  EXPECT_EQ(inQuotes("a\n\"\x80"), "\"a\\0A\\22\\80\"");
  EXPECT_EQ(inQuotes(std::string(200, 'x')).size(), 120u + 5);
}

} // namespace
