#include "backends/cpu/runtime/tokenizer/Utf8.h"

#include "gtest/gtest.h"

namespace mica::rt::tokenizer {
namespace {

struct Case {
  const char *name;
  std::string_view bytes, repaired; // what Python's decode(errors="replace") makes of the bytes
};

using namespace std::string_view_literals;

const Case cases[] = {
    {"Ascii", "abc", "abc"},
    {"Characters", "\xC3\xA9\xE4\xBD\xA0\xF0\x9F\xA6\x99", "\u00e9\u4f60\U0001f999"},
    {"Zero", "a\0b"sv, "a\0b"sv},
    {"LoneContinuation", "a\x80z", "a\ufffdz"},
    {"LeadAlone", "a\xC3z", "a\ufffdz"},
    {"LeadAtTheEnd", "a\xC3", "a\ufffd"},
    {"TwoOfThree", "\xE4\xBDz", "\ufffdz"},
    {"TwoOfThreeAtTheEnd", "\xE4\xBD", "\ufffd"},
    {"ThreeOfFour", "\xF0\x9F\xA6!", "\ufffd!"},
    {"TwiceThreeOfFour", "\xF0\x9F\xA6\xF0\x9F\xA6", "\ufffd\ufffd"},
    {"OverlongSlash", "\xC0\xAF", "\ufffd\ufffd"},
    {"OverlongThree", "\xE0\x80\xAF", "\ufffd\ufffd\ufffd"},
    {"OverlongFour", "\xF0\x80\x80\xAF", "\ufffd\ufffd\ufffd\ufffd"},
    {"Surrogate", "\xED\xA0\x80", "\ufffd\ufffd\ufffd"},
    {"LastBeforeSurrogates", "\xED\x9F\xBF", "\uD7FF"},
    {"AboveUnicode", "\xF4\x90\x80\x80", "\ufffd\ufffd\ufffd\ufffd"},
    {"Highest", "\xF4\x8F\xBF\xBF", "\U0010ffff"},
    {"FiveByteForm", "\xF8\x88\x80\x80\x80", "\ufffd\ufffd\ufffd\ufffd\ufffd"},
    {"Mixed", "\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64",
     "a\ufffd\ufffd\ufffdb\ufffdc\ufffd\ufffdd"}, // Unicode 15, table 3-8
};

class Utf8Test : public testing::TestWithParam<Case> {};

TEST_P(Utf8Test, RepairsAsPythonDoes) {
  EXPECT_EQ(repairUtf8(GetParam().bytes), GetParam().repaired);
  EXPECT_EQ(isUtf8(GetParam().bytes), GetParam().bytes == GetParam().repaired);
}

TEST_P(Utf8Test, StreamGivesTheSameInWholeCharacters) {
  Utf8Stream stream;
  std::string joined;
  for (char byte : GetParam().bytes) {
    std::string part;
    stream.push({&byte, 1}, part, /*perByte=*/false);
    EXPECT_TRUE(isUtf8(part));
    joined += part;
  }
  stream.flush(joined, /*perByte=*/false);
  EXPECT_EQ(joined, GetParam().repaired);
  EXPECT_TRUE(stream.empty());
}

INSTANTIATE_TEST_SUITE_P(Cases, Utf8Test, testing::ValuesIn(cases),
                         [](const auto &info) { return std::string(info.param.name); });

TEST(Utf8, PerByteGivesOneReplacementForEachByte) {
  Utf8Stream stream;
  std::string out;
  stream.push("\xF0\x9F\xA6!\xE4", out, /*perByte=*/true);
  stream.flush(out, /*perByte=*/true);
  EXPECT_EQ(out, "\ufffd\ufffd\ufffd!\ufffd");
}

TEST(Utf8, CodePointsGoThereAndBack) {
  for (uint32_t point : {0x0u, 0x7Fu, 0x80u, 0x7FFu, 0x800u, 0xFFFFu, 0x10000u, 0x10FFFFu}) {
    std::string text;
    appendChar(text, point);
    EXPECT_EQ(decodeChar(text), point);
    EXPECT_EQ(charLength(text[0]), text.size());
  }
  std::string surrogate;
  appendChar(surrogate, 0xD800);
  EXPECT_EQ(surrogate, "\ufffd");
}

} // namespace
} // namespace mica::rt::tokenizer
