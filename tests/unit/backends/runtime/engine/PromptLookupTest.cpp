#include "backends/runtime/engine/PromptLookup.h"
#include "backends/runtime/engine/Sampler.h"
#include "tests/unit/Paths.h"
#include "tests/unit/backends/runtime/Shell.h"

#include <cctype>
#include <gmock/gmock.h>
#include <map>
#include <string>
#include <string_view>

using namespace mica::rt;
using testing::ElementsAre;
using testing::IsEmpty;
using Tokens = PromptLookup::Tokens;

namespace {
/// Numbers of rows with drafts for large models, and for small ones.
constexpr double large = 0.1, small = 0.2;

PromptLookup after(const Tokens &text, double minAcceptance = large) {
  PromptLookup lookup(minAcceptance);
  for (int32_t token : text)
    lookup.observe(token);
  return lookup;
}

/// The cost of generating `text` after its first `given` tokens.
struct Cost {
  int64_t calls = 0, drafted = 0, accepted = 0;
};

Cost costOf(const Tokens &text, int64_t maxTokens, size_t given = 1, double minAcceptance = large) {
  PromptLookup lookup =
      after(Tokens(text.begin(), text.begin() + static_cast<ptrdiff_t>(given)), minAcceptance);
  Cost cost;
  for (size_t next = given; next < text.size(); ++cost.calls) {
    Tokens draft = lookup.draft(maxTokens);
    size_t right = 0;
    while (right < draft.size() && next + right < text.size() && draft[right] == text[next + right])
      ++right;
    lookup.learn(static_cast<int64_t>(draft.size()), static_cast<int64_t>(right));
    for (size_t i = 0; i <= right && next < text.size(); ++i)
      lookup.observe(text[next++]);
    cost.drafted += static_cast<int64_t>(draft.size());
    cost.accepted += static_cast<int64_t>(right);
  }
  return cost;
}

TEST(PromptLookup, DraftsTheContinuationOfTheLongestMatch) {
  // Of "2 3" and "9 3" before the end "2 3" the former continues with 4.
  EXPECT_EQ(after({1, 2, 3, 4, 5, 9, 3, 6, 2, 3}).draft(1), Tokens{4});
}

TEST(PromptLookup, OfEqualMatchesTheMostRecentCounts) {
  EXPECT_EQ(after({3, 4, 3, 5, 3}).draft(1), Tokens{5});
}

TEST(PromptLookup, HasNoDraftForNewText) {
  EXPECT_THAT(after({}).draft(8), IsEmpty());
  EXPECT_THAT(after({1, 2, 3}).draft(8), IsEmpty());
  EXPECT_THAT(after({1, 2, 1}).draft(0), IsEmpty());
}

TEST(PromptLookup, ContinuesAfterALongerName) {
  // A name of three tokens between 50 and the separator 7, which follows other fields as
  // well.
  PromptLookup lookup = after({50, 60, 61, 62, 7, 51, 63, 7, 52, 64, 7, 8, 50});
  EXPECT_EQ(lookup.draft(1), Tokens{60});
  lookup.learn(1, 0);
  lookup.observe(70);
  EXPECT_EQ(lookup.draft(1), Tokens{61});
  lookup.learn(1, 0);
  lookup.observe(7);
  EXPECT_EQ(lookup.draft(1), Tokens{51}) << "not 8, which followed 7 the last time";
}

TEST(PromptLookup, APeriodContinuesPastTheText) {
  PromptLookup lookup = after({1, 2, 1, 2, 1, 2});
  EXPECT_EQ(lookup.draft(1), Tokens{1});
  for (int i = 0; i < 8; ++i)
    lookup.learn(4, 4);
  EXPECT_THAT(lookup.draft(5), ElementsAre(1, 2, 1, 2, 1));
}

TEST(PromptLookup, DraftsGrowWithSuccessAndShrinkWithFailure) {
  PromptLookup lookup = after({5, 6, 7, 8, 5, 6, 7, 8, 5});
  size_t first = lookup.draft(15).size();
  EXPECT_GE(first, 1u);
  lookup.learn(static_cast<int64_t>(first), static_cast<int64_t>(first));
  for (int i = 0; i < 5; ++i)
    lookup.learn(15, 15);
  EXPECT_EQ(lookup.draft(15).size(), 15u);
  // Drafts come from matches and from the adjacent text: both must fail.
  for (int i = 0; i < 120; ++i)
    lookup.learn(static_cast<int64_t>(lookup.draft(15).size()), 0);
  EXPECT_LE(lookup.draft(15).size(), 1u);
}

TEST(PromptLookup, RetriesAfterFailures) {
  PromptLookup lookup = after({1, 2, 3, 4, 1});
  for (int i = 0; i < 60; ++i)
    lookup.learn(static_cast<int64_t>(lookup.draft(1).size()), 0);
  EXPECT_THAT(lookup.draft(1), IsEmpty());
  for (int32_t token = 100; token < 4000; ++token)
    lookup.observe(token);
  lookup.observe(1);
  EXPECT_EQ(lookup.draft(1), Tokens{100});
}

TEST(PromptLookup, RepetitionTakesAFractionOfTheCalls) {
  Tokens text;
  for (int32_t i = 0; i < 1000; ++i)
    text.push_back(i % 40);
  Cost cost = costOf(text, 15);
  EXPECT_LT(cost.calls, 120);
  EXPECT_GT(cost.accepted, 880);
}

TEST(PromptLookup, AListOfLinesTakesHalfOfTheCalls) {
  // Twelve tokens of template, two that vary.
  Tokens text;
  Random random(1);
  for (int32_t line = 0; line < 100; ++line) {
    for (int32_t i = 0; i < 6; ++i)
      text.push_back(i);
    text.push_back(100 + line);
    for (int32_t i = 6; i < 12; ++i)
      text.push_back(i);
    text.push_back(50 + static_cast<int32_t>(random.next() % 10));
  }
  Cost cost = costOf(text, 15);
  EXPECT_LT(cost.calls, 400);
  EXPECT_LT(cost.drafted, 2800);
}

/// Words with the preceding space, digits, and other characters separately: similar to a vocabulary
/// of 32 thousand.
Tokens wordsOf(std::string_view text) {
  std::map<std::string_view, int32_t> ids;
  Tokens tokens;
  auto isLetter = [&](size_t at) { return at < text.size() && std::isalpha(text[at]); };
  for (size_t begin = 0, end; begin < text.size(); begin = end) {
    end = begin + 1;
    if (isLetter(begin) || (text[begin] == ' ' && isLetter(end)))
      while (isLetter(end))
        ++end;
    auto [entry, fresh] =
        ids.try_emplace(text.substr(begin, end - begin), static_cast<int32_t>(ids.size()));
    tokens.push_back(entry->second);
  }
  return tokens;
}

/// Of tests/data/repetitive.
std::string fileOf(const std::string &name) {
  return mica::test::contents(std::string(MICA_TEST_DATA "/repetitive/") + name + ".txt");
}

/// Calls with several rows take little longer than those with one row: twice the speed needs more
/// than two tokens per call.
constexpr double tokensOfACall = 2.3;

TEST(PromptLookup, AListAndCodeTakeLessThanHalfOfTheCalls) {
  for (const char *name : {"list", "code"}) {
    std::string text = fileOf(name);
    Tokens tokens = wordsOf(text);
    Cost cost = costOf(tokens, 15);
    RecordProperty(std::string("tokens of a call, ") + name,
                   std::to_string(double(tokens.size()) / double(cost.calls)));
    EXPECT_GT(double(tokens.size()), tokensOfACall * double(cost.calls)) << name;
  }
}

/// A quoted passage, and code with a name changed.
TEST(PromptLookup, AnAnswerThatRepeatsItsPromptTakesAFractionOfTheCalls) {
  for (auto [prompt, answer] : {std::pair("passage", "answer"), std::pair("code", "edit")}) {
    std::string before = fileOf(prompt);
    size_t given = wordsOf(before).size();
    Tokens tokens = wordsOf(before + fileOf(answer));
    double made = double(tokens.size() - given);
    double each = made / double(costOf(tokens, 15, given).calls);
    RecordProperty(std::string("tokens of a call, ") + answer, std::to_string(each));
    EXPECT_GT(each, 1.5 * tokensOfACall) << answer;
  }
}

TEST(PromptLookup, TextWithoutRepetitionCostsLittle) {
  for (uint64_t words : {64, 1000}) {
    Tokens text;
    Random random(words);
    for (int i = 0; i < 5000; ++i)
      text.push_back(static_cast<int32_t>(random.next() % words));
    EXPECT_LT(costOf(text, 15, 1, large).drafted, 1000) << words << " words";
    EXPECT_LT(costOf(text, 15, 1, small).drafted, 300) << words << " words";
  }
}

TEST(PromptLookup, AcceptsASingleToken) { EXPECT_LT(costOf(Tokens(8192, 7), 15).calls, 600); }
} // namespace
