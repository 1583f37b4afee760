#include "backends/runtime/text/base/Utf8.h"

#include "gtest/gtest.h"

namespace mica::rt::tokenizer {
namespace {

struct Case {
  const char *name;
  std::string_view bytes, repaired; // the result of Python's decode(errors="replace")
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

/// All strings of up to four bytes from the boundaries of UTF-8's rules, as a whole and as streams,
/// compared with Python's result:
///
///   h = 0xcbf29ce484222325
///   for n in range(1, 5):
///       for s in itertools.product(border, repeat=n):
///           for b in bytes(s).decode(errors="replace").encode() + b"\n":
///               h = (h ^ b) * 0x100000001b3 & 2**64 - 1
TEST(Utf8, EveryShortStringIsRepairedAsPythonDoes) {
  constexpr std::string_view border = "\x41\x7F\x80\x8F\x90\x9F\xA0\xBF\xC0\xC1\xC2\xDF"
                                      "\xE0\xE1\xEC\xED\xEE\xEF\xF0\xF1\xF3\xF4\xF5\xFF";
  uint64_t hash = 0xcbf29ce484222325;
  for (size_t length = 1, count = border.size(); length <= 4; ++length, count *= border.size())
    for (size_t number = 0; number < count; ++number) {
      std::string bytes(length, 0), streamed;
      for (size_t i = length, rest = number; i-- > 0; rest /= border.size())
        bytes[i] = border[rest % border.size()];
      std::string repaired = repairUtf8(bytes);
      Utf8Stream stream;
      for (char byte : bytes)
        stream.push({&byte, 1}, streamed, /*perByte=*/false);
      stream.flush(streamed, /*perByte=*/false);
      ASSERT_EQ(streamed, repaired) << testing::PrintToString(bytes);
      for (char byte : repaired + "\n")
        hash = (hash ^ static_cast<uint8_t>(byte)) * 0x100000001b3;
    }
  EXPECT_EQ(hash, 0x7d405799b4d0ad09u);
}

TEST(Utf8, PerByteGivesOneReplacementForEachByte) {
  Utf8Stream stream;
  std::string out;
  stream.push("\xF0\x9F\xA6!\xE4", out, /*perByte=*/true);
  stream.flush(out, /*perByte=*/true);
  EXPECT_EQ(out, "\ufffd\ufffd\ufffd!\ufffd");
}

TEST(Utf8, CodePointsRoundTrip) {
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
