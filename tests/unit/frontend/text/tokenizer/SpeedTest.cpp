// Time limits that are met on a busy machine and in sanitizer builds, but exceeded by far with
// quadratic behavior.
#include "TokenizerFixture.h"

#include "backends/runtime/text/tokenizer/MergeQueue.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <ctime>
#include <set>

namespace mica::test {
namespace {

/// Processor time of this thread in seconds.
double now() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double seconds(const rt::Tokenizer &tokenizer, const std::string &text) {
  double start = now();
  EXPECT_FALSE(tokenizer.encode(text, false)->empty());
  return now() - start;
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
constexpr double allowance = 20;
#else
constexpr double allowance = 4;
#endif
#else
constexpr double allowance = 4;
#endif

std::string repeated(const std::string &unit, size_t size) {
  std::string text;
  while (text.size() < size)
    text += unit;
  return text;
}

/// The tokenizer named by the parameter.
class SpeedTest : public testing::TestWithParam<const char *> {
protected:
  void SetUp() override {
    std::string file = GetParam();
    folder.link(file.ends_with(".json") ? "tokenizer.json" : "tokenizer.model",
                tokenizerData() / file);
    auto opened = openFolder(folder.path());
    ASSERT_TRUE(static_cast<bool>(opened)) << llvm::toString(opened.takeError());
    open.emplace(std::move(*opened));
  }

  TemporaryFolder folder;
  std::optional<OpenTokenizer> open;
};

TEST_P(SpeedTest, AMegabyteOfARepeatedUnitTakesSeconds) {
  for (std::string unit :
       {"a", "1", "!", "\n", " x", "\u0301", "\u4f60", "\xFF", "\U0001F1E9\U0001F1EA"}) {
    EXPECT_LT(seconds(open->tokenizer, repeated(unit, 1000000)), allowance) << unit;
  }
}

/// Merges are counted, so that the limit does not depend on the load of the machine.
TEST_P(SpeedTest, StepsGrowLinearly) {
  auto steps = [&](const std::string &unit, size_t size) {
    std::string text = repeated(unit, size);
    uint64_t before = rt::tokenizer::mergeSteps;
    EXPECT_TRUE(open->tokenizer.encode(text, false));
    return rt::tokenizer::mergeSteps - before;
  };
  for (std::string unit : {"a", "1", " ", "ab", "lo", "\u4f60"}) {
    uint64_t one = steps(unit, 100000), two = steps(unit, 200000);
    EXPECT_LE(one, 500000u) << unit;
    EXPECT_LE(two, 2.5 * static_cast<double>(one) + 100) << unit;
  }
}

/// A limit of ids ends encoding early, after a word.
TEST_P(SpeedTest, EncodingEndsAtALimit) {
  std::string text;
  for (int i = 0; i < 20000; ++i)
    text += " word" + std::to_string(i);
  const std::vector<int32_t> all = *open->tokenizer.encode(text, true);
  // These vocabularies encode a text as a whole.
  const std::set<std::string> whole = {"llama2_kin.json", "sp_unigram.model"};
  const bool isWhole = whole.contains(GetParam());
  for (size_t limit : {size_t(0), size_t(1), size_t(100), all.size() - 1, all.size()}) {
    const std::vector<int32_t> some = *open->tokenizer.encode(text, true, {}, limit);
    EXPECT_GT(some.size(), std::min(limit, all.size() - 1));
    EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin())) << limit;
    constexpr size_t maxIdsOfWord = 10;
    if (!isWhole)
      EXPECT_LE(some.size(), limit + maxIdsOfWord);
  }
  // Merges are counted, which most words need.
  auto steps = [&](size_t limit) {
    uint64_t before = rt::tokenizer::mergeSteps;
    EXPECT_TRUE(open->tokenizer.encode(text, true, {}, limit));
    return rt::tokenizer::mergeSteps - before;
  };
  if (uint64_t most = steps(SIZE_MAX); !isWhole && most > 0)
    EXPECT_LT(steps(100), most / 50);
}

INSTANTIATE_TEST_SUITE_P(Small, SpeedTest,
                         testing::Values("gpt2_kin.json", "qwen2_kin.json", "llama3_kin.json",
                                         "llama2_kin.json", "sp_bpe.model", "sp_unigram.model"),
                         [](const auto &info) {
                           std::string name = info.param;
                           return name.substr(0, name.find('.'));
                         });

/// The end of a grapheme depends on the number of preceding flags, which are counted once.
TEST(Speed, AMegabyteOfFlagsThroughACharacterMap) {
  TemporaryFolder folder;
  folder.link("tokenizer.json", tokenizerData() / "precompiled_kin.json");
  auto open = openFolder(folder.path());
  ASSERT_TRUE(static_cast<bool>(open)) << llvm::toString(open.takeError());
  EXPECT_LT(seconds(open->tokenizer, repeated("\U0001F1E9\U0001F1EA", 1000000)), allowance);
}

TEST(Speed, TimeGrowsLinearly) {
  auto file = sharedData() / "tokenizers/gpt2_tokenizer.json";
  if (!std::filesystem::exists(file))
    GTEST_SKIP() << "SKIPPED: no " << file;
  TemporaryFolder folder;
  folder.link("tokenizer.json", file);
  auto open = openFolder(folder.path());
  ASSERT_TRUE(static_cast<bool>(open)) << llvm::toString(open.takeError());
  // The best of three, to reduce the effect of other load.
  double one = 1e9, two = 1e9;
  for (int i = 0; i < 3; ++i) {
    one = std::min(one, seconds(open->tokenizer, std::string(1000000, 'a')));
    two = std::min(two, seconds(open->tokenizer, std::string(2000000, 'a')));
  }
  EXPECT_LT(one, allowance);
  EXPECT_LT(two, 3.5 * one + 0.1);
}

} // namespace
} // namespace mica::test
