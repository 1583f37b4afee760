// Which of two paths through a text is better, where they differ by less than a float can tell. The
// ids are those of the tokenizers package 0.23.
#include "tests/unit/frontend/tokenizer/TokenizerFixture.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mica;
using namespace mica::test;

namespace {

/// Of a model with the pieces <unk>, a, b and ab.
std::vector<int32_t> encoded(const std::string &b, const std::string &ab, const std::string &text) {
  TemporaryFolder folder;
  folder.write(
      "tokenizer.json",
      R"({"decoder": {"type": "Metaspace"}, "model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], ["a", -1],)"
      R"( ["b", )" +
          b + R"(], ["ab", )" + ab + "]]}}");
  auto opened = openFolder(folder.path());
  if (!opened) {
    ADD_FAILURE() << llvm::toString(opened.takeError());
    return {};
  }
  return *opened->tokenizer.encode(text, /*addSpecial=*/false);
}

TEST(Unigram, ScoresAreThoseOfTheFileAsDoubles) {
  EXPECT_THAT(encoded("-1.000000001", "-2.0000000005", "ab"), testing::ElementsAre(3));
  EXPECT_THAT(encoded("-1.000000001", "-2.000000002", "ab"), testing::ElementsAre(1, 2));
}

TEST(Unigram, SumsOfALongTextAreDoublesToo) {
  constexpr size_t pairs = 120000; // beyond a sum of 100000, where sentencepiece begins anew
  std::string text;
  for (size_t i = 0; i < pairs; ++i)
    text += "ab";
  EXPECT_EQ(encoded("-1.000000001", "-2.0000000005", text), std::vector<int32_t>(pairs, 3));
}

} // namespace
