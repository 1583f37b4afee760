// Scores of a Unigram model in a tokenizer.json are f64, and so are their sums: single precision
// could not distinguish these paths. The ids are those of the package tokenizers 0.23.3.
#include "TokenizerFixture.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mica::test {
namespace {

using testing::ElementsAre;

std::vector<int32_t> encode(const std::string &vocabulary, const std::string &text) {
  TemporaryFolder folder;
  folder.write(
      "tokenizer.json",
      R"({"normalizer": null, "pre_tokenizer": null, "decoder": {"type": "Metaspace"}, "model":
                   {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], )" +
          vocabulary + "]}}");
  auto open = openFolder(folder.path());
  if (!open) {
    ADD_FAILURE() << llvm::toString(open.takeError());
    return {};
  }
  return *open->tokenizer.encode(text, /*addSpecial=*/false);
}

TEST(Unigram, ScoresAreNotRounded) {
  // In f32 all paths weigh -2, and the first one found, the long piece, would win.
  EXPECT_THAT(encode(R"(["a", -1.00000001], ["b", -1], ["ab", -2.00000002])", "ab"),
              ElementsAre(1, 2));
  EXPECT_THAT(encode(R"(["a", -1.00000001], ["b", -1], ["ab", -2])", "ab"), ElementsAre(3));
}

TEST(Unigram, SumsOfLongTextsAreNotRounded) {
  // At -200000 the next f32 is a 64th away, at which the difference of a thousandth disappears.
  std::vector<int32_t> ids =
      encode(R"(["a", -1], ["b", -1], ["ab", -2.001], ["c", -1])", std::string(200000, 'c') + "ab");
  ASSERT_EQ(ids.size(), 200002u);
  EXPECT_EQ(ids[200000], 1);
  EXPECT_EQ(ids[200001], 2);
}

} // namespace
} // namespace mica::test
