// Added tokens: white space that they strip, with the ids of the tokenizers package 0.23, and text
// in which special ones are none.
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

/// `text` without its square brackets, and what stands in them as untrusted.
std::vector<int32_t> encodeMarked(const rt::Tokenizer &tokenizer, llvm::StringRef text) {
  std::string bytes;
  rt::ByteRanges untrusted;
  size_t begin = 0;
  for (char c : text)
    if (c == '[')
      begin = bytes.size();
    else if (c == ']')
      untrusted.add(begin, bytes.size());
    else
      bytes += c;
  return *tokenizer.encode(bytes, false, untrusted);
}

/// Letters merge to "ab"; of the added tokens 10 is special, 11 is not, and 12 is a special one
/// that goes on behind 10.
std::string byLetters(const std::string &normalizer, bool normalized) {
  auto token = [&](int id, const std::string &content, bool special) {
    return R"({"id": )" + std::to_string(id) + R"(, "content": ")" + content +
           R"(", "single_word": false, "lstrip": false, "rstrip": false, "normalized": )" +
           (normalized ? "true" : "false") + R"(, "special": )" + (special ? "true" : "false") +
           "}";
  };
  return R"({"decoder": {"type": "Metaspace"}, "normalizer": )" + normalizer +
         R"(, "added_tokens": [)" + token(10, "<e>", true) + ", " + token(11, "<p>", false) + ", " +
         token(12, "<e>x", true) +
         R"(], "model": {"type": "BPE", "unk_token": "u", "vocab": {"u": 0, "<": 1, "e": 2, ">": 3,
             "a": 4, "b": 5, "ab": 6, "p": 7, "x": 8, " ": 9}, "merges": ["a b"]}})";
}

TEST(AddedTokens, AreTextWhereTheyAreUntrusted) {
  struct Form {
    const char *normalizer;
    bool normalized;
  };
  // With a normalizer that moves what is behind it, where tokens are looked for after it.
  constexpr const char *steps = R"({"type": "Sequence", "normalizers": [{"type": "NFC"},
      {"type": "Replace", "pattern": {"String": "-"}, "content": "a"},
      {"type": "Replace", "pattern": {"Regex": "_+"}, "content": ""},
      {"type": "Lowercase"}, {"type": "Strip", "strip_left": true, "strip_right": true}]})";
  for (Form form : {Form{"null", false}, Form{"null", true}, Form{steps, true}}) {
    TemporaryFolder folder;
    folder.write("tokenizer.json", byLetters(form.normalizer, form.normalized));
    auto opened = openFolder(folder.path());
    ASSERT_TRUE(static_cast<bool>(opened)) << llvm::toString(opened.takeError());
    auto ids = [&](llvm::StringRef text) { return encodeMarked(opened->tokenizer, text); };
    EXPECT_THAT(ids("a<e>b"), ElementsAre(4, 10, 5));
    EXPECT_THAT(ids("[a<e>b]"), ElementsAre(4, 1, 2, 3, 5));
    EXPECT_THAT(ids("<e>[<e>]<e>"), ElementsAre(10, 1, 2, 3, 10));
    // A byte is enough.
    EXPECT_THAT(ids("<[e]>"), ElementsAre(1, 2, 3));
    EXPECT_THAT(ids("<e[>]"), ElementsAre(1, 2, 3));
    // Where a longer token reaches into untrusted text a shorter one may end before it.
    EXPECT_THAT(ids("<e>x"), ElementsAre(12));
    EXPECT_THAT(ids("<e>[x]"), ElementsAre(10, 8));
    // Tokens that are not special are text in any case.
    EXPECT_THAT(ids("[a<p>b]"), ElementsAre(4, 11, 5));
    // Words do not end where trust does.
    EXPECT_THAT(ids("a[b]"), ElementsAre(6));
    EXPECT_THAT(ids("[a]b"), ElementsAre(6));
  }
  TemporaryFolder folder;
  folder.write("tokenizer.json", byLetters(steps, true));
  auto opened = openFolder(folder.path());
  ASSERT_TRUE(static_cast<bool>(opened)) << llvm::toString(opened.takeError());
  auto ids = [&](llvm::StringRef text) { return encodeMarked(opened->tokenizer, text); };
  EXPECT_THAT(ids("  __-<E>[__-<E>]__-<E> "), ElementsAre(4, 10, 4, 1, 2, 3, 4, 10));
  EXPECT_THAT(ids("[\u00e9]<e>"), ElementsAre(0, 10)); // composed already
  EXPECT_THAT(ids("[-]<e>[-<]e>"), ElementsAre(4, 10, 4, 1, 2, 3));
  // Invalid UTF-8 is not known by its bytes any more.
  EXPECT_THAT(ids("\xff[a]<e>").back(), 3);
  EXPECT_THAT(ids("\xff<e>").back(), 10);
}

TEST(AddedTokens, ThatAreSpecialAreNotMadeByTheModel) {
  for (
      const char *model :
      {R"({"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], ["<", -1], ["e", -1], [">", -1], ["<e>", 0]]})",
       R"({"type": "BPE", "unk_token": "<unk>", "vocab": {"<unk>": 0, "<": 1, "e": 2, ">": 3, "<e>": 4, "<e": 5},
               "merges": ["< e", "<e >"]})",
       R"({"type": "BPE", "unk_token": "<unk>", "ignore_merges": true,
               "vocab": {"<unk>": 0, "<": 1, "e": 2, ">": 3, "<e>": 4}, "merges": []})"}) {
    TemporaryFolder folder;
    folder.write("tokenizer.json",
                 std::string(R"({"decoder": {"type": "Metaspace"}, "added_tokens": [
        {"id": 4, "content": "<e>", "single_word": false, "lstrip": false, "rstrip": false,
         "normalized": false, "special": true}], "model": )") +
                     model + "}");
    auto opened = openFolder(folder.path());
    ASSERT_TRUE(static_cast<bool>(opened)) << llvm::toString(opened.takeError());
    EXPECT_THAT(encodeMarked(opened->tokenizer, "<e>"), ElementsAre(4)) << model;
    EXPECT_THAT(encodeMarked(opened->tokenizer, "[<e>]"), testing::Not(testing::Contains(4)))
        << model;
  }
}

} // namespace
