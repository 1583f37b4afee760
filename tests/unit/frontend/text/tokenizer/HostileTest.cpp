// Broken and unsupported tokenizer files: each results in one line that names the file and the
// position, never in a crash.
#include "TokenizerFixture.h"

#include "llvm/Support/Base64.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mica::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// The error for the folder; fails the test if there is none.
std::string errorOf(const TemporaryFolder &folder) {
  auto table = readTokenizer(folder.path());
  EXPECT_FALSE(static_cast<bool>(table)) << "accepted";
  return table ? std::string() : llvm::toString(table.takeError());
}

std::string replaced(std::string text, const std::string &from, const std::string &to) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

/// A valid tokenizer.json.
const std::string good = R"({"version": "1.0", "truncation": null, "padding": null,
 "added_tokens": [{"id": 5, "content": "<end>", "single_word": false, "lstrip": false, "rstrip": false,
                   "normalized": false, "special": true}],
 "normalizer": null,
 "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
 "post_processor": null,
 "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
 "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
           "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
           "vocab": {"a": 0, "b": 1, "ab": 2, "c": 3, "abc": 4}, "merges": ["a b", ["ab", "c"]]}})";

struct Change {
  const char *name, *from, *to, *message;
};

void PrintTo(const Change &change, std::ostream *out) { *out << change.name; }

class HostileJson : public testing::TestWithParam<Change> {};

TEST(TokenizerJson, TheBaseFileIsValid) {
  TemporaryFolder folder;
  folder.write("tokenizer.json", good);
  auto open = openFolder(folder.path());
  ASSERT_TRUE(static_cast<bool>(open)) << llvm::toString(open.takeError());
  EXPECT_THAT(*open->tokenizer.encode("abcab<end>", false), testing::ElementsAre(4, 2, 5));
}

TEST_P(HostileJson, IsOneClearLine) {
  TemporaryFolder folder;
  folder.write("tokenizer.json", replaced(good, GetParam().from, GetParam().to));
  std::string error = errorOf(folder);
  EXPECT_THAT(error, AllOf(HasSubstr("tokenizer.json: "), HasSubstr(GetParam().message),
                           Not(HasSubstr("\n"))));
}

const Change changes[] = {
    {"UnknownModel", R"("type": "BPE")", R"("type": "WordPiece")",
     R"(the model "WordPiece" is not supported)"},
    {"UnknownModelKey", R"("fuse_unk")", R"("fuse_unknown")", "(model.fuse_unknown)"},
    {"UnknownNormalizer", R"("normalizer": null)", R"("normalizer": {"type": "BertNormalizer"})",
     R"(the normalizer "BertNormalizer" is not supported)"},
    {"NormalizerInSequence", R"("normalizer": null)",
     R"("normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Odd"}]})",
     "(normalizer.normalizers[1].type)"},
    {"UnknownPreTokenizer", R"("pre_tokenizer": {"type": "ByteLevel",)",
     R"("pre_tokenizer": {"type": "CharDelimiterSplit",)",
     R"(the pre-tokenizer "CharDelimiterSplit" is not supported)"},
    {"PreTokenizerKey", R"("use_regex": true},
 "post)",
     R"("use_regexp": true},
 "post)",
     "(pre_tokenizer.use_regexp)"},
    {"BadRegex",
     R"({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
 "post)",
     R"({"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex": "(a"}, "behavior": "Isolated", "invert": false}, {"type": "ByteLevel"}]},
 "post)",
     "PCRE2"},
    {"ForeignRegex",
     R"({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
 "post)",
     R"({"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex": "\\h+"}, "behavior": "Isolated", "invert": false}, {"type": "ByteLevel"}]},
 "post)",
     "(pre_tokenizer.pretokenizers[0].pattern.Regex)"},
    {"WordsOfBytes",
     R"({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
 "post)",
     R"({"type": "Sequence", "pretokenizers": [{"type": "ByteLevel"}, {"type": "Whitespace"}]},
 "post)",
     "the pre-tokenizer \"Whitespace\" after ByteLevel is not supported"},
    {"LettersOfBytes",
     R"({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
 "post)",
     R"({"type": "Sequence", "pretokenizers": [{"type": "ByteLevel"}, {"type": "Split", "pattern": {"Regex": "[0-9a]"}, "behavior": "Isolated", "invert": false}]},
 "post)",
     "the pre-tokenizer \"Split\" after ByteLevel is not supported"},
    {"UnknownBehavior",
     R"({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
 "post)",
     R"({"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"String": "a"}, "behavior": "Sideways", "invert": false}, {"type": "ByteLevel"}]},
 "post)",
     R"(the split behavior "Sideways" is not known)"},
    {"UnknownPostProcessor", R"("post_processor": null)",
     R"("post_processor": {"type": "BertProcessing", "sep": ["a", 0], "cls": ["b", 1]})",
     R"(the post-processor "BertProcessing" is not supported)"},
    {"TemplateIdOutOfRange", R"("post_processor": null)",
     R"("post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}], "pair": [], "special_tokens": {"<s>": {"id": "<s>", "ids": [99], "tokens": ["<s>"]}}})",
     "(post_processor.special_tokens.<s>.ids[0])"},
    {"TemplateWithoutText", R"("post_processor": null)",
     R"("post_processor": {"type": "TemplateProcessing", "single": [], "pair": [], "special_tokens": {}})",
     "leaves the text out"},
    {"NoDecoder",
     R"("decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true})",
     R"("decoder": null)", "(decoder)"},
    {"UnknownDecoder", R"("decoder": {"type": "ByteLevel")", R"("decoder": {"type": "CTC")",
     R"(the decoder "CTC" is not supported)"},
    {"WrongDecoder", R"("decoder": {"type": "ByteLevel")",
     R"("decoder": {"type": "Metaspace", "replacement": "_", "prepend_scheme": "never", "split": false}, "version": {"type": "x")",
     "occurs twice"},
    {"NegativeId", R"("b": 1)", R"("b": -1)", "out of range"},
    {"AbsurdId", R"("abc": 4)", R"("abc": 4000000000)", "out of range"},
    {"FractionalId", R"("b": 1)", R"("b": 1.5)", "(model.vocab.b)"},
    {"IdTwice", R"("b": 1)", R"("b": 0)", "used twice"},
    {"PieceTwice", R"("b": 1)", R"("a": 1)", "occurs twice"},
    {"VocabIsAList", R"({"a": 0, "b": 1, "ab": 2, "c": 3, "abc": 4})", "[1, 2]", "(model.vocab)"},
    {"EmptyVocab", R"({"a": 0, "b": 1, "ab": 2, "c": 3, "abc": 4})", "{}",
     "a vocabulary of 0 pieces"},
    {"MergeOfUnknown", R"("a b")", R"("a z")", "(model.merges[0])"},
    {"MergeWithoutResult", R"("a b")", R"("b a")", "the vocabulary lacks"},
    {"MergeTwice", R"("a b")", R"("a b", "a b")", "(model.merges[1])"},
    {"MergeOfThree", R"(["ab", "c"])", R"(["a", "b", "c"])", "(model.merges[1])"},
    {"MergeIsANumber", R"("a b")", "7", "a merge is two pieces"},
    {"UnknownTokenMissing", R"("unk_token": null)", R"("unk_token": "<unk>")", "(model.unk_token)"},
    {"Dropout", R"("dropout": null)", R"("dropout": 0.1)", "(model.dropout)"},
    {"WordMarks", R"("end_of_word_suffix": null)", R"("end_of_word_suffix": "</w>")",
     "(model.end_of_word_suffix)"},
    {"AddedTokenClash", R"("id": 5, "content": "<end>")", R"("id": 1, "content": "<end>")",
     "used twice"},
    {"AddedTokenOtherId", R"("id": 5, "content": "<end>")", R"("id": 3, "content": "a")",
     "has the id 3, but its piece has 0"},
    {"AddedTokenAbsurdId", R"("id": 5)", R"("id": 4000000)", "out of range"},
    {"AddedTokenEmpty", R"("content": "<end>")", R"("content": "")", "without text"},
    {"AddedTokenNoFlag", R"("lstrip": false)", R"("lstrip": "no")", "(added_tokens[0].lstrip)"},
    {"NotAnObject", R"("model": {"type": "BPE")", R"("model": 5, "version": {"type": "BPE")",
     "twice"},
    {"NumberBeyondDouble", R"("b": 1)", R"("b": 1e999)", "number"},
    {"StripKey", R"("normalizer": null)",
     R"("normalizer": {"type": "Strip", "strip_middle": true})", "(normalizer.strip_middle)"},
    {"ReplaceBadRegex", R"("normalizer": null)",
     R"("normalizer": {"type": "Replace", "pattern": {"Regex": "(a"}, "content": ""})",
     "(normalizer.pattern.Regex)"},
    {"CharsMapIsNoBase64", R"("normalizer": null)",
     R"("normalizer": {"type": "Precompiled", "precompiled_charsmap": "?"})",
     "not a character map of sentencepiece in base64 (normalizer.precompiled_charsmap)"},
    {"CharsMapIsShort", R"("normalizer": null)",
     R"("normalizer": {"type": "Precompiled", "precompiled_charsmap": "/////w=="})",
     "not a character map of sentencepiece in base64 (normalizer.precompiled_charsmap)"},
    {"CharsMapAgain", R"("normalizer": null)",
     R"("normalizer": {"type": "Sequence", "normalizers": [{"type": "Precompiled", "precompiled_charsmap": "BAAAAAAAAABhAA=="}, {"type": "Precompiled", "precompiled_charsmap": "BAAAAAAAAABhAA=="}]})",
     "repeats itself"},
    {"ReplaceGrows", R"("normalizer": null)",
     R"("normalizer": {"type": "Replace", "pattern": {"Regex": "b*"}, "content": "0123456789012345678901234567890123456789012345678901234567890123"})",
     "grow without bound"},
    {"LowercaseAgain", R"("normalizer": null)",
     R"("normalizer": {"type": "Sequence", "normalizers": [{"type": "Lowercase"}, {"type": "Lowercase"}, {"type": "Lowercase"}, {"type": "Lowercase"}]})",
     "repeats itself"},
    {"UnigramOfBytes", R"("type": "BPE", "dropout": null,)", R"("type": "Unigram",)",
     "a byte-level Unigram model is not supported"},
    {"UnknownRootKey", R"("padding": null)", R"("paddings": null)", "(paddings)"},
};

INSTANTIATE_TEST_SUITE_P(Changes, HostileJson, testing::ValuesIn(changes),
                         [](const auto &info) { return std::string(info.param.name); });

/// A valid tokenizer.json with a Unigram model.
const std::string unigram =
    R"({"normalizer": {"type": "Lowercase"}, "pre_tokenizer": {"type": "Metaspace"}, "decoder": {"type": "Metaspace"},
 "model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], ["\u2581", -2.5], ["a", -3], ["\u2581ab", -4.5]]}})";

class HostileUnigram : public testing::TestWithParam<Change> {};

TEST(TokenizerJson, TheBaseUnigramModelIsValid) {
  TemporaryFolder folder;
  folder.write("tokenizer.json", unigram);
  auto open = openFolder(folder.path());
  ASSERT_TRUE(static_cast<bool>(open)) << llvm::toString(open.takeError());
  EXPECT_THAT(*open->tokenizer.encode("AB A\u4f60\u4f60", false), testing::ElementsAre(3, 1, 2, 0));
}

TEST_P(HostileUnigram, IsOneClearLine) {
  TemporaryFolder folder;
  folder.write("tokenizer.json", replaced(unigram, GetParam().from, GetParam().to));
  EXPECT_THAT(errorOf(folder), AllOf(HasSubstr("tokenizer.json: "), HasSubstr(GetParam().message),
                                     Not(HasSubstr("\n"))));
}

const Change unigramChanges[] = {
    {"ScoreMissing", R"(["a", -3])", R"(["a"])", "(model.vocab[2])"},
    {"ScoreIsText", R"(["a", -3])", R"(["a", "-3"])", "a piece and its score are expected"},
    {"PieceIsANumber", R"(["a", -3])", "[3, -3]", "(model.vocab[2])"},
    {"PieceTwice", R"(["a", -3])", R"(["<unk>", -3])", "occurs twice"},
    {"NoPieces", R"([["<unk>", 0], ["\u2581", -2.5], ["a", -3], ["\u2581ab", -4.5]])", "[]",
     "a vocabulary of 0 pieces"},
    {"UnknownOutOfRange", R"("unk_id": 0)", R"("unk_id": 4)", "(model.unk_id)"},
    {"UnknownKey", R"("unk_id": 0)", R"("unk_id": 0, "alphabet": 1)", "(model.alphabet)"},
};

INSTANTIATE_TEST_SUITE_P(Changes, HostileUnigram, testing::ValuesIn(unigramChanges),
                         [](const auto &info) { return std::string(info.param.name); });

TEST(HostileTokenizer, EveryTruncationOfAJsonIsAnError) {
  for (size_t length = 0; length + 1 < good.size(); length += 7) {
    TemporaryFolder folder;
    folder.write("tokenizer.json", good.substr(0, length));
    EXPECT_THAT(errorOf(folder), HasSubstr("tokenizer.json: "));
  }
}

TEST(HostileTokenizer, DeepNestingIsAnError) {
  TemporaryFolder folder;
  folder.write("tokenizer.json", R"({"normalizer": )" + std::string(2000000, '['));
  EXPECT_THAT(errorOf(folder), HasSubstr("nests deeper"));
}

TEST(HostileTokenizer, EndlessNormalizersAreAnError) {
  std::string steps = R"({"type": "NFC"})";
  for (int i = 0; i < 64; ++i)
    steps += R"(, {"type": "NFC"})";
  TemporaryFolder folder;
  folder.write("tokenizer.json",
               replaced(good, R"("normalizer": null)",
                        R"("normalizer": {"type": "Sequence", "normalizers": [)" + steps + "]}"));
  EXPECT_THAT(errorOf(folder), HasSubstr("more than 64 normalizers is not supported"));
}

std::string normalizedBy(const std::string &normalizer) {
  return replaced(good, R"("normalizer": null)", R"("normalizer": )" + normalizer);
}

/// Steps that replace one byte by another do not grow the text, however many there are.
TEST(HostileTokenizer, ManyReplacementsOfOneSizeAreGood) {
  std::string steps = R"({"type": "Replace", "pattern": {"Regex": "[0-9]"}, "content": "abcabc"})";
  for (int i = 0; i < 20; ++i)
    steps += R"(, {"type": "Replace", "pattern": {"String": "x"}, "content": "a"})"
             R"(, {"type": "Replace", "pattern": {"Regex": "[y-z]"}, "content": "b"})";
  TemporaryFolder folder;
  folder.write("tokenizer.json",
               normalizedBy(R"({"type": "Sequence", "normalizers": [)" + steps + "]}"));
  auto open = openFolder(folder.path());
  ASSERT_TRUE(static_cast<bool>(open)) << llvm::toString(open.takeError());
  EXPECT_THAT(*open->tokenizer.encode("xyc1", false), testing::ElementsAre(4, 4, 4));
}

/// Text that is prepended counts for the shortest possible text.
TEST(HostileTokenizer, PrependsThatAreTooLongAreErrors) {
  TemporaryFolder folder;
  std::string text(63, 'a');
  folder.write("tokenizer.json",
               normalizedBy(R"({"type": "Prepend", "prepend": ")" + text + "\"}"));
  auto open = openFolder(folder.path());
  ASSERT_TRUE(static_cast<bool>(open)) << llvm::toString(open.takeError());
  EXPECT_EQ(open->tokenizer.encode("b", false)->size(), 63u); // the last a joins the b
  folder.write("tokenizer.json",
               normalizedBy(R"({"type": "Prepend", "prepend": "a)" + text + "\"}"));
  EXPECT_THAT(errorOf(folder), HasSubstr("a tokenizer that cannot be used: the tokenizer table is "
                                         "broken: replacements that let the text grow without "
                                         "bound"));
}

/// One Arabic ligature becomes 18 characters, five of them Lam: a limit for each step does not
/// limit the total.
TEST(HostileTokenizer, TextsThatGrowTooMuchAreErrors) {
  TemporaryFolder folder;
  folder.write("tokenizer.json",
               normalizedBy(R"({"type": "Sequence", "normalizers": [{"type": "NFKC"},
                 {"type": "Replace", "pattern": {"String": "\u0644"}, "content": ")" +
                            std::string(40, 'c') + R"("}]})"));
  auto open = openFolder(folder.path());
  ASSERT_TRUE(static_cast<bool>(open)) << llvm::toString(open.takeError());
  EXPECT_TRUE(static_cast<bool>(open->tokenizer.encode("ab\uFDFA", false)));
  auto ids = open->tokenizer.encode("ab<end>\uFDFA", false);
  ASSERT_FALSE(ids);
  EXPECT_EQ(ids.error().message,
            "the tokenizer's normalizers write more than 64 times as much from "
            "byte 7 of the text on; change the text there or split it");
}

const std::string endless =
    R"({"type": "Replace", "pattern": {"Regex": "(a+a+)+[cd]"}, "content": "c"})";

/// A pattern that needs too many steps is an error, wherever the text comes from.
TEST(HostileTokenizer, EndlessPatternsAreErrors) {
  std::string text(40, 'a');
  TemporaryFolder folder;
  folder.write("tokenizer.json", normalizedBy(endless));
  auto open = openFolder(folder.path());
  ASSERT_TRUE(static_cast<bool>(open)) << llvm::toString(open.takeError());
  auto ids = open->tokenizer.encode("aacb" + text, false);
  ASSERT_FALSE(ids);
  EXPECT_EQ(
      ids.error().message,
      "a pattern of the tokenizer takes too long (PCRE2: match limit exceeded) from byte 3 of "
      "the text on; change the text there or split it");
  ids = open->tokenizer.encode("b<end>aacb" + text, false);
  ASSERT_FALSE(ids);
  EXPECT_THAT(ids.error().message, HasSubstr("from byte 9 of the text on"));
  std::string whole =
      replaced(normalizedBy(endless), R"("normalized": false)", R"("normalized": true)");
  folder.write("tokenizer.json", replaced(whole, "<end>", text));
  EXPECT_THAT(errorOf(folder),
              HasSubstr("tokenizer.json: a tokenizer that cannot be used: a pattern of the "
                        "tokenizer takes too long (PCRE2: match limit exceeded)"));
}

/// The same for a pattern that finds words.
TEST(HostileTokenizer, EndlessPatternsOfWordsAreErrors) {
  TemporaryFolder folder;
  folder.write(
      "tokenizer.json",
      replaced(
          good,
          R"({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
 "post)",
          R"({"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex": "(a+a+)+[cd]"},
 "behavior": "Isolated", "invert": false}, {"type": "ByteLevel"}]}, "post)"));
  auto open = openFolder(folder.path());
  ASSERT_TRUE(static_cast<bool>(open)) << llvm::toString(open.takeError());
  auto ids = open->tokenizer.encode("ab<end>bb" + std::string(40, 'a'), false);
  ASSERT_FALSE(ids);
  EXPECT_THAT(ids.error().message, HasSubstr("(PCRE2: match limit exceeded) from byte 7 of "));
}

/// Digits after ByteLevel would split the two bytes of U+00F2, whose second is spelled U+00B2.
TEST(HostileTokenizer, SplitByteEscapesAreErrors) {
  std::string digits = R"({"type": "Sequence", "pretokenizers": [
    {"type": "ByteLevel", "add_prefix_space": false}, {"type": "Digits", "individual_digits": false}]},
 "post)";
  std::string text = replaced(
      good,
      R"({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
 "post)",
      digits);
  TemporaryFolder folder;
  folder.write("tokenizer.json", text);
  EXPECT_TRUE(static_cast<bool>(openFolder(folder.path())));
  folder.write("tokenizer.json", replaced(text, R"("abc": 4)", "\"abc\": 4, \"\u00C3\u00B2\": 6"));
  EXPECT_THAT(errorOf(folder),
              HasSubstr("Digits after ByteLevel with pieces that join bytes spelled "
                        "as numbers is not supported"));
}

TEST(HostileTokenizer, InvalidUtf8IsAnError) {
  TemporaryFolder folder;
  folder.write("tokenizer.json", replaced(good, R"("b": 1)", "\"\xC3\": 1"));
  EXPECT_THAT(errorOf(folder), HasSubstr("not valid JSON"));
}

TEST(HostileTokenizer, ADirectoryInPlaceOfAFileIsAnError) {
  TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() + "/tokenizer.json");
  EXPECT_THAT(errorOf(folder), HasSubstr("tokenizer.json"));
}

TEST(HostileTokenizer, WithoutFilesThereIsNoTokenizer) {
  TemporaryFolder folder;
  auto table = readTokenizer(folder.path());
  ASSERT_TRUE(static_cast<bool>(table)) << llvm::toString(table.takeError());
  EXPECT_FALSE(table->has_value());
}

/// Without a rank file where one is expected, it is unknown whether there is one.
TEST(HostileTokenizer, AFolderThatCannotBeListedIsAnError) {
  TemporaryFolder folder;
  folder.write("file", "");
  auto table = readTokenizer(folder.path() + "/file");
  ASSERT_FALSE(static_cast<bool>(table));
  EXPECT_THAT(llvm::toString(table.takeError()),
              HasSubstr("/file: its files cannot be listed: Not a directory; make it a folder that "
                        "can be read"));
}

/// A valid sentencepiece model.
std::string sentencePiece() { return readText(tokenizerData() / "sp_bpe.model"); }

TEST(HostileTokenizer, TruncatedSentencePieceModelsAreErrors) {
  std::string bytes = sentencePiece();
  ASSERT_GT(bytes.size(), 1000u);
  // Truncation between two pieces results in a shorter, well-formed message, which lacks the fields
  // after the pieces.
  for (size_t length : {size_t(1), size_t(17), size_t(1000), bytes.size() - 1, bytes.size() - 20}) {
    TemporaryFolder folder;
    folder.write("tokenizer.model", bytes.substr(0, length));
    EXPECT_THAT(errorOf(folder), HasSubstr("tokenizer.model: ")) << length;
  }
}

TEST(HostileTokenizer, ForeignSentencePieceFilesAreErrors) {
  for (std::string bytes :
       {std::string("hello"), std::string(4096, '\xFF'), std::string(4096, '\0'),
        std::string("\x0A\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F", 10)}) {
    TemporaryFolder folder;
    folder.write("tokenizer.model", bytes);
    EXPECT_THAT(errorOf(folder), HasSubstr("tokenizer.model: "));
  }
}

TEST(HostileTokenizer, ASentencePieceWithAZeroByteIsAnError) {
  std::string bytes = sentencePiece();
  size_t at = bytes.find("[REFERENCE_DOC_3]");
  ASSERT_NE(at, std::string::npos);
  bytes[at + 3] = '\0';
  TemporaryFolder folder;
  folder.write("tokenizer.model", bytes);
  EXPECT_THAT(errorOf(folder), HasSubstr("tokenizer.model: "));
}

TEST(HostileTokenizer, MergesThatDoNotFitTheVocabularyNameTheLine) {
  TemporaryFolder folder;
  folder.write("vocab.json", R"({"a": 0, "b": 1, "ab": 2})");
  folder.write("merges.txt", "#version: 0.2\na b\na c\n");
  EXPECT_THAT(errorOf(folder), AllOf(HasSubstr("merges.txt: "), HasSubstr("(merges[2])")));
}

/// A rank file with all bytes, and another line.
std::string ranks(const std::string &line) {
  std::string text;
  for (int byte = 0; byte < 256; ++byte)
    text += llvm::encodeBase64(std::string(1, static_cast<char>(byte))) + " " +
            std::to_string(byte) + "\n";
  return text + line;
}

TEST(HostileTokenizer, BrokenRankFilesNameTheLine) {
  for (auto [line, message] :
       {std::pair("YWI=\n", "(ranks[256])"),
        std::pair("YW=I 256\n", "a line is a piece in base64, a space and its rank"),
        std::pair("YWI= -1\n", "(ranks[256])"), std::pair("YWI= 7\n", "is used twice"),
        std::pair("YQ== 256\n", "occurs twice"), std::pair("YWI= 257\n", "the rank 256 is missing"),
        std::pair("YWI= 4000000\n", "(ranks")}) {
    TemporaryFolder folder;
    folder.write("cl100k_base.tiktoken", ranks(line));
    EXPECT_THAT(errorOf(folder), AllOf(HasSubstr("cl100k_base.tiktoken: "), HasSubstr(message)));
  }
  TemporaryFolder folder;
  folder.write("cl100k_base.tiktoken", "YWI= 0\n");
  EXPECT_THAT(errorOf(folder), HasSubstr("the byte 0 has no rank"));
  folder.write("cl100k_base.tiktoken", ranks("YWI= 256\n"));
  EXPECT_THAT(errorOf(folder),
              HasSubstr("has 257 ranks, expected 100256 as in cl100k_base.tiktoken (ranks)"));
}

TEST(HostileTokenizer, OfSeveralRankFilesTheKnownOneIsRead) {
  TemporaryFolder folder;
  folder.write("a.tiktoken", "?");
  folder.write("b.tiktoken", "?");
  EXPECT_THAT(errorOf(folder), HasSubstr(": has the rank files \"a.tiktoken\" and \"b.tiktoken\"; "
                                         "keep only the one that the model uses"));
  folder.write("qwen.tiktoken", ranks("YWI= 256\n"));
  EXPECT_THAT(errorOf(folder), HasSubstr("expected 151643 as in qwen.tiktoken"));
  folder.write("cl100k_base.tiktoken", "?");
  EXPECT_THAT(errorOf(folder), HasSubstr("\"cl100k_base.tiktoken\" and \"qwen.tiktoken\""));
}

TEST(TokenizerRanks, SpecialTokensOfArcadeFollowItsRanks) {
  TemporaryFolder folder;
  folder.write("arcade100k.tiktoken", publishedRanks("arcade100k.tiktoken", ranks("YWI= 256\n")));
  auto open = openFolder(folder.path());
  ASSERT_TRUE(static_cast<bool>(open)) << llvm::toString(open.takeError());
  EXPECT_THAT(
      *open->tokenizer.encode("ab<|endoftext|><|endofprompt|><|im_start|><|extra0|>", false),
      testing::ElementsAre(256, 100257, 100276, 100277, 100288));
}

TEST(HostileTokenizer, RankFilesOfUnknownPatternsAreRefused) {
  TemporaryFolder folder;
  folder.write("some.tiktoken", ranks("YWI= 256\n"));
  EXPECT_THAT(errorOf(folder),
              HasSubstr("the pre-tokenization for this rank file is unknown; add a "
                        "tokenizer.json"));
  folder.write("tokenizer_config.json", R"({"tokenizer_class": "OddTokenizer"})");
  EXPECT_THAT(errorOf(folder),
              HasSubstr("the pre-tokenization for this rank file of the class \"OddTokenizer\" is "
                        "unknown; add a tokenizer.json"));
  folder.write("tokenizer_config.json", R"({"tokenizer_class": "QWenTokenizer"})");
  EXPECT_THAT(errorOf(folder), HasSubstr("has 257 ranks, expected 151643 as in qwen.tiktoken"));
}

TEST(HostileTokenizer, AClassWithoutItsJsonIsRefusedByName) {
  TemporaryFolder folder;
  folder.write("vocab.json", R"({"a": 0, "b": 1, "ab": 2})");
  folder.write("merges.txt", "a b\n");
  folder.write("tokenizer_config.json", R"({"tokenizer_class": "BloomTokenizer"})");
  EXPECT_THAT(errorOf(folder),
              AllOf(HasSubstr("tokenizer_config.json: "), HasSubstr("BloomTokenizer")));
}

TEST(HostileTokenizer, ConfigThatNamesAMissingTokenIsAnError) {
  TemporaryFolder folder;
  folder.write("tokenizer.json", good);
  folder.write("tokenizer_config.json", R"({"bos_token": "<begin>"})");
  EXPECT_THAT(errorOf(folder),
              AllOf(HasSubstr("tokenizer_config.json: "), HasSubstr("(bos_token)")));
}

TEST(HostileTokenizer, AConfigThatIsNotJsonIsAnError) {
  TemporaryFolder folder;
  folder.write("tokenizer.json", good);
  folder.write("tokenizer_config.json", "{");
  EXPECT_THAT(errorOf(folder), HasSubstr("tokenizer_config.json: "));
}

} // namespace
} // namespace mica::test
