#include "frontend/text/tokenizer/RegexTranslation.h"

#include "backends/runtime/text/base/Regex.h"

#include "gtest/gtest.h"

namespace mica::test {
namespace {

/// The length of the match at the start of `text`; -1 if there is none.
int matchLength(llvm::StringRef pattern, std::string_view text) {
  auto translated = translateRegex(pattern);
  EXPECT_TRUE(static_cast<bool>(translated)) << llvm::toString(translated.takeError());
  auto regex = rt::tokenizer::Regex::compile(*translated);
  EXPECT_TRUE(static_cast<bool>(regex)) << regex.error().message;
  rt::tokenizer::Regex::Match match{};
  rt::tokenizer::Regex::Searcher searcher(*regex);
  return searcher.find(text, 0, match) && match.begin == 0 ? static_cast<int>(match.end) : -1;
}

std::string refusal(llvm::StringRef pattern) {
  auto translated = translateRegex(pattern);
  return translated ? "accepted" : llvm::toString(translated.takeError());
}

TEST(RegexTranslation, WhiteSpaceFollowsUnicode) {
  EXPECT_EQ(matchLength(R"(\s+)", " \t\n\u0085\u00a0\u2003\u3000x"), 13);
  EXPECT_EQ(matchLength(R"(\s)", "\u180e"),
            -1); // not white space since Unicode 6.3; PCRE2's own \s has it
  EXPECT_EQ(matchLength(R"([^\s]+)", "\u180ea b"), 4);
  EXPECT_EQ(matchLength(R"(\S+)", "\u180ea b"), 4);
}

TEST(RegexTranslation, NumbersFollowUnicode) {
  std::string numbers = *translateRegex("\\p{N}"), inside = *translateRegex("[^\\p{N}a]");
  EXPECT_TRUE(llvm::StringRef(numbers).starts_with("[\\p{N}")) << numbers;
  EXPECT_TRUE(llvm::StringRef(numbers).ends_with("]")) << numbers;
  EXPECT_EQ(inside, "[^" + numbers.substr(1, numbers.size() - 2) + "a]");
}

TEST(RegexTranslation, WordCharactersIncludeMarks) {
  EXPECT_EQ(matchLength(R"(\w+)", "e\u0301_1x y"), 6);
  EXPECT_EQ(matchLength(R"(\W)", "\u0301"), -1);
}

TEST(RegexTranslation, LinesEndAtEveryNewline) {
  EXPECT_EQ(matchLength(R"(a$)", "a\nb"), 1);
  EXPECT_EQ(matchLength(R"(\v)", "\n"), -1);
  EXPECT_EQ(matchLength(R"(\v)", "\x0B"), 1);
}

TEST(RegexTranslation, KeepsEquivalentPatterns) {
  auto same =
      translateRegex(R"((?i:'s|'t)|[^\r\n\p{L}]?\p{L}+|\p{Nd}{1,3}|[\]\[]|[]a]|a++(?!b)\x{41})");
  ASSERT_TRUE(static_cast<bool>(same)) << llvm::toString(same.takeError());
  EXPECT_EQ(*same, R"((?i:'s|'t)|[^\r\n\p{L}]?\p{L}+|\p{Nd}{1,3}|[\]\[]|[]a]|a++(?!b)\x{41})");
}

TEST(RegexTranslation, RefusesUntranslatablePatterns) {
  EXPECT_EQ(refusal(R"(\h)"), R"(the escape \h is not supported)");
  EXPECT_EQ(refusal(R"([a&&b])"), "nested character classes are not supported");
  EXPECT_EQ(refusal(R"([a[b]])"), "nested character classes are not supported");
  EXPECT_EQ(refusal(R"([\S])"), R"(\S in a character class is not supported)");
  EXPECT_EQ(refusal(R"((?m:a.b))"), "the options \"m\" of a group are not supported");
  EXPECT_EQ(refusal("[a"), "an unfinished character class");
  EXPECT_EQ(refusal("a\\"), "a backslash at the end");
}

TEST(RegexTranslation, EscapedTextMatchesItself) {
  for (llvm::StringRef text : {"a.b", "(x)", "[^]", "\\d", "$1 + #2", "é\n", "{3}|"})
    EXPECT_EQ(matchLength(escapeRegex(text), text), static_cast<int>(text.size())) << text.str();
}

} // namespace
} // namespace mica::test
