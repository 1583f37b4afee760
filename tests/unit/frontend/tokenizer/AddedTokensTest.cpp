// Added tokens that strip white space in which others begin. The ids are those of the tokenizers
// package 0.23.
#include "tests/unit/frontend/tokenizer/TokenizerFixture.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mica;
using namespace mica::test;
using testing::ElementsAre;

namespace {

TEST(AddedTokens, BeginInWhatAnotherStripsOnItsRight) {
  TemporaryFolder folder;
  folder.write("tokenizer.json", R"({"decoder": {"type": "Metaspace"}, "added_tokens": [
      {"id": 4, "content": "<e>", "single_word": false, "lstrip": false, "rstrip": true,
       "normalized": false, "special": true},
      {"id": 5, "content": " b", "single_word": false, "lstrip": false, "rstrip": false,
       "normalized": false, "special": true},
      {"id": 6, "content": "\n\n", "single_word": false, "lstrip": true, "rstrip": false,
       "normalized": false, "special": true},
      {"id": 7, "content": " ", "single_word": false, "lstrip": false, "rstrip": false,
       "normalized": false, "special": true}],
    "model": {"type": "Unigram", "unk_id": 0,
              "vocab": [["<unk>", 0], ["x", -1], ["b", -1], ["\u2581", -1]]}})");
  auto opened = openFolder(folder.path());
  ASSERT_TRUE(static_cast<bool>(opened)) << llvm::toString(opened.takeError());
  auto ids = [&](const char *text) { return *opened->tokenizer.encode(text, false); };
  EXPECT_THAT(ids("x<e> b"), ElementsAre(1, 4, 5));
  EXPECT_THAT(ids("x<e>\n b"), ElementsAre(1, 4, 5));
  EXPECT_THAT(ids("x<e>  b"), ElementsAre(1, 4, 7, 5));
  EXPECT_THAT(ids("x<e>   x"), ElementsAre(1, 4, 7, 7, 7, 1));
  // A token that strips on its left does not reach behind what is stripped already.
  EXPECT_THAT(ids("x<e>\n\nb"), ElementsAre(1, 4, 2));
  EXPECT_THAT(ids("x<e>  \n\n b"), ElementsAre(1, 4, 7, 7, 6, 5));
}

} // namespace
