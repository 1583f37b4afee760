// Long texts are searched in windows: the matches are those of PCRE2 in the whole text, in linear
// time.
#include "backends/runtime/text/base/Regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <ctime>
#include <gmock/gmock.h>
#include <pcre2.h>
#include <random>
#include <vector>

using namespace mica::rt::tokenizer;
using testing::HasSubstr;

namespace {
using Matches = std::vector<std::pair<size_t, size_t>>;

/// All matches in order, without empty ones.
Matches windowed(const Regex &regex, const std::string &text) {
  Matches matches;
  Regex::Searcher searcher(regex);
  Regex::Match match{0, 0};
  for (size_t from = 0; searcher.find(text, from, match) && match.end > match.begin;
       from = match.end)
    matches.emplace_back(match.begin, match.end);
  EXPECT_TRUE(searcher.failure()) << searcher.failure().error().message;
  return matches;
}

Matches whole(const char *pattern, const std::string &text) {
  int status = 0;
  size_t offset = 0;
  pcre2_code *code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern), PCRE2_ZERO_TERMINATED,
                    PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE, &status, &offset, nullptr);
  pcre2_match_data *data = pcre2_match_data_create_from_pattern(code, nullptr);
  Matches matches;
  size_t from = 0;
  while (pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from, 0, data,
                     nullptr) >= 0) {
    const size_t *bounds = pcre2_get_ovector_pointer(data);
    if (bounds[0] >= bounds[1])
      break;
    matches.emplace_back(bounds[0], bounds[1]);
    from = bounds[1];
  }
  pcre2_match_data_free(data);
  pcre2_code_free(code);
  return matches;
}

/// Patterns of published tokenizers, and some that look far ahead or back.
constexpr const char *patterns[] = {
    R"('s|'t| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
    R"((?i:'s|'t)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
    R"(\s+\z|\s*[\r\n]+|\s+(?!\S)|\s+|\p{L}+)",
    R"(\s+$)",
    R"(^\p{L}+$)",
    R"(\p{N})",
    R"(a(?=.*b))",
    R"((?<=\n)\p{L}|\bb+\b)",
    R"(\X)",
    R"((?:ab)+(?!a)|b+\Z)",
};

TEST(Regex, MatchesInWindowsAsInTheWholeText) {
  std::mt19937 random(7);
  const char *units[] = {"a",         "b", " ", "\n", "1", "!", "\xC3\xA9", "\xE4\xBD\xA0",
                         "e\xCC\x81", "'s"};
  for (int round = 0; round < 40; ++round) {
    // Runs of one class, some longer than several windows.
    std::string text;
    while (text.size() < 3000) {
      const char *unit = units[random() % std::size(units)];
      size_t maxCount = round % 4 == 0 ? 1500 : round % 4 == 1 ? 300 : 5;
      for (size_t count = 1 + random() % maxCount; count > 0; --count)
        text += unit;
    }
    for (const char *pattern : patterns) {
      auto regex = Regex::compile(pattern);
      ASSERT_TRUE(regex) << regex.error().message;
      EXPECT_EQ(windowed(*regex, text), whole(pattern, text)) << pattern << " in round " << round;
    }
  }
}

double seconds(const char *pattern, const std::string &text, std::string &problem) {
  auto regex = Regex::compile(pattern);
  EXPECT_TRUE(regex);
  std::clock_t start = std::clock();
  Regex::Searcher searcher(*regex);
  Regex::Match match{0, 0};
  for (size_t from = 0; searcher.find(text, from, match) && match.end > match.begin;)
    from = match.end;
  problem = searcher.failure() ? "" : searcher.failure().error().message;
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

TEST(Regex, FailsIfEveryMatchScansALongText) {
  std::string problem;
  const std::string letters(100'000, 'a');
  for (const char *pattern : {R"(a(?=[\s\S]*b)|a)", R"(a(?!.*b))", R"(a++b|a)", R"((a+)+b|a)"}) {
    EXPECT_LT(seconds(pattern, letters, problem), 10) << pattern;
    EXPECT_THAT(problem, HasSubstr("a pattern of the tokenizer takes too long")) << pattern;
  }
  EXPECT_LT(seconds(R"(\s+$)", std::string(100'000, ' ') + "x", problem), 10);
  EXPECT_THAT(problem, HasSubstr("takes too long"));
}

TEST(Regex, PublishedPatternsTakeAsLongAsTheText) {
  std::string problem;
  for (size_t i : {0, 1, 2, 5})
    for (const char *unit : {" ", "\n", "a", "1", "!", " \n", "a\n ", "\t x"}) {
      std::string text;
      while (text.size() < 1'000'000)
        text += unit;
      EXPECT_LT(seconds(patterns[i], text + "x", problem), 10) << patterns[i] << " of " << unit;
      EXPECT_EQ(problem, "") << patterns[i] << " of " << unit;
    }
}
} // namespace
