#include "backends/cpu/runtime/PromptLookup.h"
#include "backends/cpu/runtime/Sampler.h"

#include <gmock/gmock.h>

using namespace mica::rt;
using testing::ElementsAre;
using testing::IsEmpty;
using Tokens = PromptLookup::Tokens;

namespace {
PromptLookup after(const Tokens &text) {
  PromptLookup lookup;
  for (int32_t token : text)
    lookup.observe(token);
  return lookup;
}

/// What generating `text` behind its first token takes.
struct Cost {
  int64_t calls = 0, drafted = 0, accepted = 0;
};

Cost costOf(const Tokens &text, int64_t most) {
  PromptLookup lookup = after({text[0]});
  Cost cost;
  for (size_t next = 1; next < text.size(); ++cost.calls) {
    Tokens draft = lookup.draft(most);
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

TEST(PromptLookup, DraftsWhatFollowedTheLongestMatch) {
  // Of "2 3" and "9 3" before the end "2 3" the former goes on with 4.
  EXPECT_EQ(after({1, 2, 3, 4, 5, 9, 3, 6, 2, 3}).draft(1), Tokens{4});
}

TEST(PromptLookup, OfEqualMatchesTheMostRecentCounts) {
  EXPECT_EQ(after({3, 4, 3, 5, 3}).draft(1), Tokens{5});
}

TEST(PromptLookup, HasNoDraftForWhatIsNew) {
  EXPECT_THAT(PromptLookup().draft(8), IsEmpty());
  EXPECT_THAT(after({1, 2, 3}).draft(8), IsEmpty());
  EXPECT_THAT(after({1, 2, 1}).draft(0), IsEmpty());
}

TEST(PromptLookup, APeriodGoesOnBehindTheText) {
  PromptLookup lookup = after({1, 2, 1, 2, 1, 2});
  EXPECT_EQ(lookup.draft(5), Tokens{1});
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
  for (int i = 0; i < 60; ++i)
    lookup.learn(1, 0);
  EXPECT_THAT(lookup.draft(15), IsEmpty());
}

TEST(PromptLookup, TriesAgainAfterALongTime) {
  PromptLookup lookup = after({1, 2, 3, 4, 1});
  for (int i = 0; i < 30; ++i) {
    lookup.draft(1);
    lookup.learn(1, 0);
  }
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
  EXPECT_LT(cost.calls, 700);
  EXPECT_LT(cost.drafted, 1600);
}

TEST(PromptLookup, TextWithoutRepetitionCostsLittle) {
  for (uint64_t words : {8, 64, 1000}) {
    Tokens text;
    Random random(words);
    for (int i = 0; i < 5000; ++i)
      text.push_back(static_cast<int32_t>(random.next() % words));
    Cost cost = costOf(text, 15);
    EXPECT_LT(cost.drafted, 400) << words << " words";
  }
}

TEST(PromptLookup, OneTokenOnlyIsNoTrouble) { EXPECT_LT(costOf(Tokens(8192, 7), 15).calls, 600); }
} // namespace
