//===- LineDiffTest.cpp - hunks applied to a text -------------------------===//

#include "tools/explore/LineDiff.h"

#include "llvm/ADT/SmallVector.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <random>

using namespace mica::explore;
using llvm::StringRef;
using testing::ElementsAre;

namespace {

std::vector<std::string> linesOf(StringRef text) {
  text.consume_back("\n");
  llvm::SmallVector<StringRef> lines;
  if (!text.empty())
    text.split(lines, '\n');
  return {lines.begin(), lines.end()};
}

/// Applies hunks to `a`; fails if they do not apply.
std::vector<std::string> applyHunks(const LineDiff &diff, const std::vector<std::string> &a) {
  std::vector<std::string> made;
  size_t at = 0, removed = 0, added = 0;
  for (const Hunk &hunk : diff.hunks) {
    EXPECT_LE(at, hunk.beginA - 1);
    for (; at < hunk.beginA - 1; ++at)
      made.push_back(a[at]);
    EXPECT_EQ(made.size(), hunk.beginB - 1);
    size_t beginA = at, beginB = made.size();
    for (const std::string &line : hunk.lines) {
      std::string text = line.substr(1);
      if (line[0] != '+')
        EXPECT_EQ(a.at(at++), text);
      if (line[0] != '-')
        made.push_back(text);
      removed += line[0] == '-';
      added += line[0] == '+';
    }
    EXPECT_EQ(hunk.countA, at - beginA);
    EXPECT_EQ(hunk.countB, made.size() - beginB);
  }
  made.insert(made.end(), a.begin() + static_cast<std::ptrdiff_t>(at), a.end());
  EXPECT_EQ(diff.onlyInA, removed);
  EXPECT_EQ(diff.onlyInB, added);
  return made;
}

TEST(LineDiff, SameTextsHaveNoHunks) {
  LineDiff diff = diffLines("a\nb\n", "a\nb\n");
  EXPECT_TRUE(diff.hunks.empty());
  EXPECT_EQ(diff.onlyInA + diff.onlyInB, 0u);
}

TEST(LineDiff, AHunkHasItsContext) {
  LineDiff diff = diffLines("1\n2\n3\n4\nold\n5\n6\n7\n8\n", "1\n2\n3\n4\nnew\n5\n6\n7\n8\n", 2);
  ASSERT_EQ(diff.hunks.size(), 1u);
  EXPECT_THAT(diff.hunks[0].lines, ElementsAre(" 3", " 4", "-old", "+new", " 5", " 6"));
  EXPECT_EQ(diff.hunks[0].beginA, 3u);
  EXPECT_EQ(diff.hunks[0].countA, 5u);
}

TEST(LineDiff, NearChangesAreOneHunkAndDistantOnesTwo) {
  auto count = [](StringRef between) {
    return diffLines(("x\n" + between + "x\n").str(), ("y\n" + between + "y\n").str(), 1)
        .hunks.size();
  };
  EXPECT_EQ(count("1\n2\n"), 1u);
  EXPECT_EQ(count("1\n2\n3\n"), 2u);
}

TEST(LineDiff, NumbersOfValuesAndLabelsAreIgnored) {
  EXPECT_TRUE(
      diffLines("%12 = f %c0_3 #map1\n.LBB0_7:\n", "%7 = f %c0 #map\n.LBB1_2:\n").hunks.empty());
  EXPECT_EQ(diffLines("%12 = f 3\n", "%12 = f 4\n").onlyInA, 1u);
  EXPECT_EQ(diffLines("%a = f\n", "%b = f\n").onlyInA, 1u);
}

TEST(LineDiff, EmptyTexts) {
  EXPECT_EQ(diffLines("", "a\nb\n").onlyInB, 2u);
  EXPECT_EQ(diffLines("a\n", "").onlyInA, 1u);
  EXPECT_TRUE(diffLines("", "").hunks.empty());
}

TEST(LineDiff, HunksTransformOneTextIntoTheOther) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::string a, b;
    // Few words: most lines occur several times.
    for (unsigned i = random() % 60; i > 0; --i) {
      std::string line = std::string(1, static_cast<char>('a' + random() % 9)) + "\n";
      if (random() % 6)
        a += line;
      if (random() % 6)
        b += line;
    }
    EXPECT_EQ(applyHunks(diffLines(a, b, random() % 4), linesOf(a)), linesOf(b)) << a << "---\n"
                                                                                 << b;
  }
}

} // namespace
