// Added tokens: white space that they strip, with the ids of the tokenizers package 0.23, and text
// in which special tokens are not recognized.
#include "tests/unit/frontend/text/tokenizer/TokenizerFixture.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mica;
using namespace mica::test;
using testing::ElementsAre;

namespace {

TEST(AddedTokens, StartWithinTextStrippedByTheTokenBefore) {
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
  // A token that strips on its left does not include white space that is already stripped.
  EXPECT_THAT(ids("x<e>\n\nb"), ElementsAre(1, 4, 2));
  EXPECT_THAT(ids("x<e>  \n\n b"), ElementsAre(1, 4, 7, 7, 6, 5));
}

/// `text` without its square brackets, whose content is untrusted.
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

/// Letters merge to "ab"; of the added tokens, 10 is special, 11 is not, and 12 is a special one
/// that extends 10.
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
  // With a normalizer that moves the following text, for tokens that are searched after it.
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
    // A single byte is sufficient.
    EXPECT_THAT(ids("<[e]>"), ElementsAre(1, 2, 3));
    EXPECT_THAT(ids("<e[>]"), ElementsAre(1, 2, 3));
    // If a longer token extends into untrusted text, a shorter one may end before it.
    EXPECT_THAT(ids("<e>x"), ElementsAre(12));
    EXPECT_THAT(ids("<e>[x]"), ElementsAre(10, 8));
    // Tokens that are not special are recognized in any text.
    EXPECT_THAT(ids("[a<p>b]"), ElementsAre(4, 11, 5));
    // Words do not end at the boundaries of trust.
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
  // Invalid UTF-8 is no longer recognized by its bytes.
  EXPECT_THAT(ids("\xff[a]<e>").back(), 3);
  EXPECT_THAT(ids("\xff<e>").back(), 10);
}

TEST(AddedTokens, ModelDoesNotProduceSpecialTokens) {
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

/// A vocabulary in which no role token is special: letters, and the added tokens `contents`
/// starting at id 20.
std::string unmarked(const std::vector<std::string> &contents) {
  std::string added, vocab = R"("u": 0)";
  int id = 20, letter = 1;
  for (const std::string &content : contents)
    added += (added.empty() ? "" : ", ") + std::string(R"({"id": )") + std::to_string(id++) +
             R"(, "content": ")" + content +
             R"(", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
                 "special": false})";
  for (const char *piece : {"<", ">", "|", "a", "b", "U", "\\n"})
    vocab += std::string(", \"") + piece + "\": " + std::to_string(letter++);
  return R"({"decoder": {"type": "Metaspace"}, "added_tokens": [)" + added +
         R"(], "model": {"type": "BPE", "unk_token": "u", "vocab": {)" + vocab +
         R"(}, "merges": []}})";
}

TEST(AddedTokens, ThatATemplateWritesAreReserved) {
  TemporaryFolder folder;
  folder.write("tokenizer.json",
               unmarked({"<|U|>", "<|a|>", "<b>", "\\n\\n", "1", "<a>", "<｜U｜>"}));
  // A literal spells <|U|>; <|a|> needs a role between two literals; nothing writes <b> and <a>.
  auto opened = openFolder(folder.path(), {"x<|U|>\n\n", "1", "<|", "|>", "b", "\n<｜U｜>"});
  ASSERT_TRUE(static_cast<bool>(opened)) << llvm::toString(opened.takeError());
  auto ids = [&](llvm::StringRef text) { return encodeMarked(opened->tokenizer, text); };
  EXPECT_THAT(ids("a<|U|>b"), ElementsAre(4, 20, 5));
  EXPECT_THAT(ids("[a<|U|>b]"), ElementsAre(4, 1, 3, 6, 3, 2, 5));
  EXPECT_THAT(ids("<|U[|>]"), ElementsAre(1, 3, 6, 3, 2));
  EXPECT_THAT(ids("<|a|>[<|a|>]"), ElementsAre(21, 1, 3, 4, 3, 2));
  EXPECT_THAT(ids("[<b>]<b>[<a>]"), ElementsAre(22, 22, 25));
  EXPECT_THAT(ids("<｜U｜>[<｜U｜>]"), ElementsAre(26, 1, 0, 6, 0, 2));
  // White space and single characters are text, whatever a template writes.
  EXPECT_THAT(ids("[\n\n1]"), ElementsAre(23, 24));
  // Reserved tokens are still printed.
  EXPECT_FALSE(opened->tokenizer.isSpecial(20));
  EXPECT_EQ(opened->tokenizer.decode(std::vector<int32_t>{4, 20}), "a<|U|>");
  // Without a template, all are ordinary.
  auto plain = openFolder(folder.path());
  ASSERT_TRUE(static_cast<bool>(plain)) << llvm::toString(plain.takeError());
  EXPECT_THAT(encodeMarked(plain->tokenizer, "[<|U|>]"), ElementsAre(20));
}

TEST(AddedTokens, UserDefinedPiecesThatATemplateWritesAreReserved) {
  for (const char *file : {"sp_bpe.model", "sp_unigram.model", "sp_bpe_suffix.model"}) {
    TemporaryFolder folder;
    folder.link("tokenizer.model", tokenizerData() / file);
    auto plain = openFolder(folder.path());
    auto opened = openFolder(folder.path(), {"say <tool>\n"});
    ASSERT_TRUE(plain && opened) << file;
    constexpr int32_t tool = 3;
    auto ids = [&](llvm::StringRef text) { return encodeMarked(opened->tokenizer, text); };
    ASSERT_THAT(encodeMarked(plain->tokenizer, "[<tool>]"), testing::Contains(tool)) << file;
    EXPECT_THAT(ids("[a <tool> b]"), testing::Not(testing::Contains(tool))) << file;
    if (file == std::string("sp_bpe.model")) // others do not know the character <
      EXPECT_EQ(plain->tokenizer.decode(ids("[a <tool> b]")), "a <tool> b");
    auto mixed = ids("  a <tool>[ b  <tool> ]c<tool> <to[ol>]");
    EXPECT_EQ(std::count(mixed.begin(), mixed.end(), tool), 2) << file;
    // Trusted text has the same ids, and so does a piece that no template writes.
    for (const char *text : {"a <tool> b", "<tool>", "  <tool>  <tool>x  y ", "a<tool",
                             "hello world", "<tool>[REFERENCE_DOC_3]", "ａ<tool>ｂ"})
      EXPECT_EQ(*opened->tokenizer.encode(text, true), *plain->tokenizer.encode(text, true))
          << file << ": " << text;
    rt::ByteRanges all;
    all.add(0, 17);
    EXPECT_EQ(*opened->tokenizer.encode("[REFERENCE_DOC_3]", false, all),
              *plain->tokenizer.encode("[REFERENCE_DOC_3]", false, all))
        << file;
  }
}

} // namespace
