// The complete errors of the readers of tokenizer files.
#include "TokenizerFixture.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mica::test {
namespace {

using testing::HasSubstr;

std::string errorOf(const TemporaryFolder &folder) {
  auto table = readTokenizer(folder.path());
  return table ? "accepted" : llvm::toString(table.takeError());
}

/// The parts of a tokenizer.json.
struct Parts {
  std::string normalizer = "null", pre = R"({"type": "ByteLevel"})", post = "null",
              decoder = R"({"type": "ByteLevel"})", added = "[]",
              model = R"({"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]})";
};

std::string problem(const Parts &parts, const std::string &config = "") {
  TemporaryFolder folder;
  folder.write("tokenizer.json",
               R"({"normalizer": )" + parts.normalizer + R"(, "pre_tokenizer": )" + parts.pre +
                   R"(, "post_processor": )" + parts.post + R"(, "decoder": )" + parts.decoder +
                   R"(, "added_tokens": )" + parts.added + R"(, "model": )" + parts.model + "}");
  if (!config.empty())
    folder.write("tokenizer_config.json", config);
  return errorOf(folder);
}

std::string sequence(const std::string &key, const std::string &steps) {
  return R"({"type": "Sequence", ")" + key + "\": [" + steps + "]}";
}

TEST(TokenizerMessages, TheBaseFileIsValid) { EXPECT_EQ(problem({}), "accepted"); }

TEST(TokenizerMessages, OfJson) {
  Parts parts;
  parts.pre = R"({"type": 5})";
  EXPECT_THAT(problem(parts), HasSubstr("a string is expected (pre_tokenizer.type)"));
  parts = {};
  parts.pre = R"({"type": "Sequence", "pretokenizers": 1})";
  EXPECT_THAT(problem(parts), HasSubstr("a list is expected (pre_tokenizer.pretokenizers)"));
  parts = {};
  parts.model = R"({"type": "BPE", "vocab": 1, "merges": []})";
  EXPECT_THAT(problem(parts), HasSubstr("an object is expected (model.vocab)"));
  parts.model = R"({"type": "BPE", "vocab": {"a": "0"}, "merges": []})";
  EXPECT_THAT(problem(parts), HasSubstr("a whole number is expected (model.vocab.a)"));
  parts = {};
  parts.added = R"([{"id": -1, "content": "x"}])";
  EXPECT_THAT(problem(parts),
              HasSubstr("a whole number from 0 to 4194303 is expected (added_tokens[0].id)"));
  parts = {};
  parts.pre = R"({"type": "ByteLevel", "odd": 1})";
  EXPECT_THAT(problem(parts), HasSubstr("unknown key \"odd\", its meaning would be lost "
                                        "(pre_tokenizer.odd); remove it if it has none"));
}

TEST(TokenizerMessages, OfPreTokenizers) {
  Parts parts;
  auto expect = [&](const std::string &pre, const std::string &message) {
    parts.pre = pre;
    EXPECT_THAT(problem(parts), HasSubstr(message));
  };
  expect(R"({"type": "Split", "pattern": {"String": ")" + std::string(20000, 'a') +
             R"("}, "behavior": "Isolated"})",
         "pattern too long (pre_tokenizer.pattern)");
  expect(R"({"type": "Split", "pattern": {"Regex": ")" + std::string(20000, 'a') +
             R"("}, "behavior": "Isolated"})",
         "a regular expression that cannot be used: it is longer than 16384 bytes "
         "(pre_tokenizer.pattern.Regex); correct the expression");
  expect(R"x({"type": "Split", "pattern": {"Regex": "(?s:a)"}, "behavior": "Isolated"})x",
         "the options \"s\" of a group are not supported");
  expect(R"({"type": "Metaspace", "prepend_scheme": "last"})",
         "the scheme \"last\" is not known (pre_tokenizer.prepend_scheme)");
  expect(R"({"type": "Metaspace", "replacement": ""})",
         "a replacement that is not one character (pre_tokenizer.replacement)");
  expect(R"({"type": "Metaspace", "replacement": "  "})",
         "a replacement that is not one character (pre_tokenizer.replacement)");
  expect(R"({"type": "Whitespace", "behavior": "Isolated"})", "behavior");
  expect(R"({"type": "WhitespaceSplit", "behavior": "Isolated"})", "behavior");
}

TEST(TokenizerMessages, OfNormalizers) {
  Parts parts;
  parts.normalizer = R"({"type": "Replace", "pattern": {"String": ""}, "content": "a"})";
  EXPECT_THAT(problem(parts), HasSubstr("an empty pattern (normalizer.pattern.String)"));
  std::string steps = R"({"type": "Strip"})";
  for (int i = 0; i < 64; ++i)
    steps += R"(, {"type": "Strip"})";
  parts.normalizer = sequence("normalizers", steps);
  EXPECT_THAT(problem(parts), HasSubstr("a sequence of more than 64 normalizers is not supported"));
}

TEST(TokenizerMessages, OfDecoders) {
  Parts parts;
  auto expect = [&](const std::string &decoder, const std::string &message) {
    parts.decoder = decoder;
    EXPECT_THAT(problem(parts), HasSubstr(message));
  };
  const std::string fuse = R"({"type": "Fuse"}, )", space = R"({"type": "Metaspace"})",
                    replace = R"({"type": "Replace", "pattern": {"String": "a"}, "content": "b"})";
  expect("null", "a tokenizer without a decoder is not supported (decoder)");
  expect(sequence("decoders", fuse + replace),
         "a Replace decoder after ByteFallback or Fuse is not supported");
  expect(R"({"type": "Replace", "pattern": {"Regex": "a"}, "content": "b"})",
         "a Replace decoder with a regular expression is not supported");
  expect(R"({"type": "Replace", "pattern": {"String": ""}, "content": "b"})",
         "an empty pattern (decoder.pattern)");
  expect(R"({"type": "Strip", "content": " ", "start": 1, "stop": 0})",
         "a Strip decoder before Fuse is not supported");
  expect(sequence("decoders", fuse + R"({"type": "Strip", "content": " ", "start": 0, "stop": 1})"),
         "a Strip decoder that cuts the end is not supported");
  expect(sequence("decoders", fuse + space),
         "a Metaspace decoder after ByteFallback or Fuse is not supported");
  expect(R"({"type": "Metaspace", "replacement": "", "prepend_scheme": "never"})",
         "an empty replacement (decoder.replacement)");
  expect(sequence("decoders", space + ", " + space),
         "a second or empty rule for the start of the text is not supported");
  expect(sequence("decoders", R"({"type": "ByteLevel"}, )" + replace),
         "a second decoder in addition to ByteLevel is not supported");
  for (const char *message :
       {"a ByteLevel pre-tokenizer needs a ByteLevel decoder (decoder); add it",
        "a ByteLevel decoder needs a ByteLevel pre-tokenizer (decoder); add it"}) {
    bool bytes = parts.pre == Parts().pre;
    parts.decoder = bytes ? R"({"type": "Fuse"})" : Parts().decoder;
    EXPECT_THAT(problem(parts), HasSubstr(message));
    parts.pre = R"({"type": "Whitespace"})";
  }
}

TEST(TokenizerMessages, OfTemplates) {
  Parts parts;
  std::string many = "1";
  for (int i = 0; i < 64; ++i)
    many += ", 1";
  auto expect = [&](const std::string &single, const std::string &message) {
    parts.post = R"({"type": "TemplateProcessing", "single": [)" + single +
                 R"(], "special_tokens": {"many": {"ids": [)" + many + "]}}}";
    EXPECT_THAT(problem(parts), HasSubstr(message));
  };
  const std::string text = R"({"Sequence": {"id": "A"}})";
  expect(R"({"SpecialToken": {"id": "x"}}, )" + text,
         "the template names a token that is not listed (post_processor.special_tokens.x); add it "
         "to special_tokens");
  expect(R"({"SpecialToken": {"id": "many"}}, )" + text, "too many ids");
  expect(text + ", " + text, "a template for one text has exactly one sequence, A");
  expect("", "the template leaves the text out (post_processor.single)");
}

TEST(TokenizerMessages, OfVocabularies) {
  Parts parts;
  auto expect = [&](const std::string &model, const std::string &message) {
    parts.model = R"({"type": "BPE", )" + model + "}";
    EXPECT_THAT(problem(parts), HasSubstr(message));
  };
  expect(R"("vocab": {"a": 70000}, "merges": [])",
         "the id 70000 of \"a\" is out of range (model.vocab)");
  expect(R"("vocab": {")" + std::string(70000, 'a') + R"(": 0}, "merges": [])",
         "piece too long (model.vocab)");
  expect(R"("vocab": {"a": 0, "b": 0}, "merges": [])",
         "the id 0 is used twice, also for \"b\" (model.vocab); assign each piece its own id");
  expect(R"("vocab": {"a": 0}, "merges": ["a z"])",
         "the merge of \"a\" and \"z\" needs pieces that the vocabulary lacks (model.merges[0])");
  expect(R"("vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b", "a b"])",
         "the merge of \"a\" and \"b\" occurs twice (model.merges[1]); keep one");
  expect(R"("vocab": {"a": 0}, "merges": ["a b c"])",
         "a merge is two pieces with a space between, not \"a b c\"");
  expect(R"("vocab": {"a": 0}, "merges": [], "end_of_word_suffix": "</w>")",
         "WordPiece-style prefixes and suffixes are not supported (model.end_of_word_suffix); use "
         "a model without them");
  expect(R"("vocab": {"a": 0}, "merges": [], "dropout": 0.1)",
         "dropout makes ids random (model.dropout); set it to null");
  expect(R"("vocab": {"a": 0}, "merges": [], "unk_token": "x")",
         "the vocabulary lacks this piece (model.unk_token); use a token of the vocabulary");
  parts = {};
  parts.model = R"({"type": "Unigram", "vocab": [["a", 0], ["a", 0]]})";
  parts.pre = parts.decoder = R"({"type": "Metaspace"})";
  EXPECT_THAT(problem(parts), HasSubstr("the piece \"a\" occurs twice (model.vocab); keep one"));
}

TEST(TokenizerMessages, OfAddedTokens) {
  Parts parts;
  auto expect = [&](const std::string &added, const std::string &message) {
    parts.added = added;
    EXPECT_THAT(problem(parts), HasSubstr(message));
  };
  expect(R"([{"id": 5, "content": ""}])", "an added token without text (added_tokens[0])");
  expect(R"([{"id": 5, "content": "x"}, {"id": 6, "content": "x"}])",
         "the added token \"x\" has two ids (added_tokens[1]); keep one");
  expect(R"([{"id": 5, "content": "a"}])",
         "the added token \"a\" has the id 5, but its piece has 0 "
         "(added_tokens[0]); use the same id for both");
}

TEST(TokenizerMessages, OfConfigurations) {
  auto expect = [](const std::string &config, const std::string &message) {
    EXPECT_THAT(problem({}, config), HasSubstr(message));
  };
  expect(R"({"added_tokens_decoder": {"x": {}}})",
         "an id is expected as the key (added_tokens_decoder.x)");
  expect(R"({"bos_token": "x"})",
         "the vocabulary lacks this token (bos_token); use a token of the vocabulary");
  expect(R"({"add_bos_token": true})",
         "there is no bos_token to add (add_bos_token); add one or set this to false");
  expect(R"({"add_eos_token": true})",
         "there is no eos_token to add (add_eos_token); add one or set this to false");
  TemporaryFolder folder;
  folder.write("vocab.json", R"({"a": 0})");
  folder.write("merges.txt", "#version: 0.2\n");
  folder.write("tokenizer_config.json", R"({"tokenizer_class": "OddTokenizer"})");
  EXPECT_THAT(errorOf(folder), HasSubstr("the class \"OddTokenizer\" is not supported with "
                                         "vocab.json and merges.txt (tokenizer_class); add a "
                                         "tokenizer.json"));
}

/// A field of a message of protocol buffers.
std::string field(int number, const std::string &bytes) {
  std::string out(1, static_cast<char>(number << 3 | 2));
  for (size_t size = bytes.size();
       out += static_cast<char>(size | (size > 127 ? 128 : 0)), size > 127;)
    size >>= 7;
  return out + bytes;
}

TEST(TokenizerMessages, OfSentencePieceModels) {
  auto expect = [](const std::string &bytes, const std::string &message) {
    TemporaryFolder folder;
    folder.write("tokenizer.model", bytes);
    EXPECT_THAT(errorOf(folder), HasSubstr(message));
  };
  std::string good = readText(tokenizerData() / "sp_bpe.model");
  expect("\xFF", "not a sentencepiece model, or a broken one");
  // Later fields replace earlier ones.
  expect(good + field(2, std::string("\x18\x03", 2)),
         "a sentencepiece model of a type that is neither BPE nor Unigram is not supported; use a "
         "model with another tokenizer");
  expect(good + field(5, field(2, "x")),
         "a sentencepiece model with a denormalizer is not supported; use a model with another "
         "tokenizer");
  expect(good + field(3, field(2, "x")), "the sentencepiece model's character map is broken");
  expect(field(1, field(1, "a")), "sentencepiece rejects this model: ");
}

} // namespace
} // namespace mica::test
