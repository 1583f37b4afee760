// Tokenizers in a GGUF file's metadata produce the same ids as in files.

#include "TokenizerFixture.h"

#include "frontend/text/tokenizer/GgufPreTokenizers.h"

#include "frontend/support/Json.h"
#include "frontend/text/tokenizer/ByteAlphabet.h"
#include "tests/unit/Paths.h"
#include "tests/unit/frontend/GgufWriter.h"

#include "llvm/Support/MD5.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mica::test {
namespace {

using namespace rt::tokenizer;
using testing::ElementsAreArray;
using testing::HasSubstr;

/// Converts a tokenizer that was read from its files like llama.cpp's converter.
class GgufVocabulary {
public:
  explicit GgufVocabulary(const TokenizerTable &table) : table(table) {}

  /// `pre` is the name of the pre-tokenizer, or "gemma4" for a model of that name.
  GgufWriter write(const std::string &pre) const {
    GgufWriter file;
    bool byLevel = table.flags & ModelFlags::byteLevel, isGemma = pre == "gemma4";
    file.string("tokenizer.ggml.model", byLevel ? "gpt2" : isGemma ? pre : "llama");
    std::vector<std::string> tokens;
    std::vector<int32_t> types;
    std::vector<float> scores;
    for (size_t id = 0; id < table.pieces.size(); ++id) {
      tokens.push_back(spellingOf(id));
      types.push_back(typeOf(id));
      scores.push_back(table.pieces[id].score);
    }
    file.strings("tokenizer.ggml.tokens", tokens);
    file.list<int32_t>("tokenizer.ggml.token_type", GgufKind::I32, types);
    if (byLevel)
      file.string("tokenizer.ggml.pre", pre);
    else
      file.u32("tokenizer.ggml.unknown_token_id", table.unknownId);
    if (byLevel || isGemma) {
      std::vector<std::string> merges;
      merges.reserve(table.merges.size());
      for (const TokenizerTable::Merge &merge : table.merges)
        merges.push_back(tokens[merge.left] + " " + tokens[merge.right]);
      file.strings("tokenizer.ggml.merges", merges);
    } else {
      file.list<float>("tokenizer.ggml.scores", GgufKind::F32, scores);
    }
    for (const TokenizerTable::PreTokenizerStep &step : table.preTokenizer)
      if (step.kind == PreTokenizerKind::PrefixSpace)
        file.boolean("tokenizer.ggml.add_space_prefix", true);
    for (const TokenizerTable::NormalizerStep &step : table.normalizer)
      if (step.kind == NormalizerKind::SentencePiece) {
        file.boolean("tokenizer.ggml.add_space_prefix",
                     step.rules & SentencePieceRules::dummyPrefix);
        file.boolean("tokenizer.ggml.remove_extra_whitespaces",
                     step.rules & SentencePieceRules::removeExtraSpaces);
      }
    // A BOS token that only a template contains.
    std::optional<int32_t> begin = table.bosId;
    if (!begin && !table.prefixIds.empty())
      begin = table.prefixIds.front();
    if (begin)
      file.u32("tokenizer.ggml.bos_token_id", *begin);
    if (table.eosId)
      file.u32("tokenizer.ggml.eos_token_id", *table.eosId);
    file.boolean("tokenizer.ggml.add_bos_token", !table.prefixIds.empty());
    return file;
  }

private:
  const TokenizerTable::AddedToken *addedToken(size_t id) const {
    for (const TokenizerTable::AddedToken &token : table.addedTokens)
      if (token.id == static_cast<int32_t>(id))
        return &token;
    return nullptr;
  }
  std::string spellingOf(size_t id) const {
    if (const auto *token = addedToken(id))
      return token->content;
    const TokenizerTable::Piece &piece = table.pieces[id];
    if (piece.flags & PieceFlags::byte) {
      char text[8];
      std::snprintf(text, sizeof text, "<0x%02X>", static_cast<uint8_t>(piece.bytes[0]));
      return text;
    }
    if (!(table.flags & ModelFlags::byteLevel) || (piece.flags & PieceFlags::unmatched))
      return piece.bytes.empty() ? "[PAD" + std::to_string(id) + "]" : piece.bytes;
    std::string text;
    for (char byte : piece.bytes)
      text += byteLevelChar(static_cast<uint8_t>(byte));
    return text;
  }
  int32_t typeOf(size_t id) const {
    uint8_t flags = table.pieces[id].flags;
    if (const auto *token = addedToken(id))
      return token->flags & AddedTokenFlags::special ? 3 : 4;
    return flags & PieceFlags::unknown                            ? 2
           : flags & PieceFlags::control                          ? 3
           : flags & PieceFlags::userDefined                      ? 4
           : flags & (PieceFlags::unused | PieceFlags::unmatched) ? 5
           : flags & PieceFlags::byte                             ? 6
                                                                  : 1;
  }

  const TokenizerTable &table;
};

llvm::json::Object golden(const std::string &name) {
  auto path =
      std::filesystem::path(MICA_SOURCE_DIR) / "tests/goldens/tokenizers" / (name + ".json");
  return llvm::cantFail(readJsonObject(path.string()));
}

std::vector<int32_t> idList(const llvm::json::Value &value) {
  std::vector<int32_t> ids;
  for (const llvm::json::Value &id : *value.getAsArray())
    ids.push_back(static_cast<int32_t>(*id.getAsInteger()));
  return ids;
}

/// Texts for which a GGUF file does not define how tokens affect adjacent spaces, and texts with
/// control tokens, which sentencepiece's own package does not recognize in text, but chats need.
bool isTellable(const std::string &text) {
  for (const char *token : {"<mask>", "<tool>", "<word>", "<s>", "<unk>"})
    if (text.find(token) != std::string::npos)
      return false;
  return true;
}

struct Case {
  const char *name, *pre;
};

void PrintTo(const Case &which, std::ostream *stream) { *stream << which.name; }

class GgufTokenizer : public testing::TestWithParam<Case> {
protected:
  void SetUp() override {
    root = golden(GetParam().name);
    TemporaryFolder source;
    for (const auto &[name, value] : *root.getObject("files")) {
      llvm::StringRef file = *value.getAsString();
      bool shared = file.consume_front("shared:");
      file.consume_front("data:");
      auto path = (shared ? sharedData() : tokenizerData()) / file.str();
      if (!std::filesystem::exists(path))
        GTEST_SKIP() << "SKIPPED: the files of " << GetParam().name << " are not at "
                     << sharedData();
      source.link(llvm::StringRef(name).str(), path);
    }
    auto table = llvm::cantFail(readTokenizer(source.path()));
    folder.write("m.gguf", GgufVocabulary(*table).write(GetParam().pre).bytes());
    auto opened = openFolder(folder.path() + "/m.gguf");
    ASSERT_TRUE(static_cast<bool>(opened)) << llvm::toString(opened.takeError());
    open.emplace(std::move(*opened));
  }

  TemporaryFolder folder;
  llvm::json::Object root;
  std::optional<OpenTokenizer> open;
};

TEST_P(GgufTokenizer, IdsAndTextsMatchTheReference) {
  llvm::json::Object all = golden("texts");
  const llvm::json::Array &texts = *all.getArray("texts"), &ids = *root.getArray("ids"),
                          &decoded = *root.getArray("decoded");
  for (size_t i = 0; i < texts.size(); ++i) {
    std::string text = texts[i].getAsString()->str();
    if (!isTellable(text))
      continue;
    EXPECT_THAT(*open->tokenizer.encode(text, /*addSpecial=*/false),
                ElementsAreArray(idList(ids[i])))
        << "text " << i << ": " << text;
    EXPECT_EQ(open->tokenizer.decode(idList(ids[i])), decoded[i].getAsString()->str())
        << "text " << i;
  }
  EXPECT_THAT(*open->tokenizer.encode(texts[0].getAsString()->str(), /*addSpecial=*/true),
              ElementsAreArray(idList(*root.get("prompt"))));
}

std::string nameOfCase(const testing::TestParamInfo<Case> &info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Small, GgufTokenizer,
                         testing::Values(Case{"gpt2_kin", "gpt-2"}, Case{"qwen2_kin", "qwen2"},
                                         Case{"qwen35_kin", "qwen35"},
                                         Case{"llama3_kin", "llama-bpe"},
                                         Case{"gemma4_kin", "gemma4"}, Case{"sp_bpe", ""}),
                         nameOfCase);
INSTANTIATE_TEST_SUITE_P(Published, GgufTokenizer,
                         testing::Values(Case{"gpt2", "gpt-2"}, Case{"qwen2", "qwen2"},
                                         Case{"smollm", "smollm"}, Case{"minimind", "gpt-2"},
                                         Case{"mistral_v1", ""}, Case{"mistral_v3", ""},
                                         Case{"stories260K", ""}),
                         nameOfCase);

/// Every pre-tokenizer name splits like the tokenizer.json of its models.
TEST(GgufPreTokenizers, IdsMatchTheReference) {
  TemporaryFolder source, folder;
  source.link("tokenizer.json", tokenizerData() / "whole.json");
  auto table = llvm::cantFail(readTokenizer(source.path()));
  llvm::json::Object all = golden("texts"), names = golden("gguf_names");
  for (const auto &[name, digest] : names) {
    folder.write("m.gguf", GgufVocabulary(*table).write(llvm::StringRef(name).str()).bytes());
    auto opened = openFolder(folder.path() + "/m.gguf");
    ASSERT_TRUE(static_cast<bool>(opened)) << llvm::toString(opened.takeError());
    llvm::MD5 hash;
    for (const llvm::json::Value &text : *all.getArray("texts")) {
      std::vector<int32_t> ids = *opened->tokenizer.encode(text.getAsString()->str(), false);
      hash.update(llvm::ArrayRef(reinterpret_cast<const uint8_t *>(ids.data()), 4 * ids.size()));
    }
    EXPECT_EQ(hash.final().digest().str(), *digest.getAsString()) << llvm::StringRef(name).str();
  }
  // Each of them is among those.
  llvm::SmallVector<llvm::StringRef> known;
  std::string listed = ggufPreTokenizerNames();
  llvm::StringRef(listed).split(known, ", ");
  for (llvm::StringRef name : known)
    EXPECT_TRUE(names.get(name)) << name.str();
}

/// A vocabulary with a few tokens, to be modified.
class GgufTokenizerRefusal : public testing::Test {
protected:
  static GgufWriter byteLevel(std::vector<std::string> tokens = {"a", "b", "ab", "<end>"}) {
    GgufWriter file;
    file.string("tokenizer.ggml.model", "gpt2").strings("tokenizer.ggml.tokens", tokens);
    return file;
  }
  static GgufWriter scored(std::vector<float> scores = {0, 0, -1}) {
    GgufWriter file;
    file.string("tokenizer.ggml.model", "llama");
    file.strings("tokenizer.ggml.tokens", {"<unk>", "\u2581", "a"});
    file.list<int32_t>("tokenizer.ggml.token_type", GgufKind::I32, {2, 1, 1});
    file.list<float>("tokenizer.ggml.scores", GgufKind::F32, scores);
    return file;
  }
  std::string problem(const GgufWriter &file) {
    folder.write("m.gguf", file.bytes());
    auto table = readTokenizer(folder.path() + "/m.gguf");
    return table ? "" : llvm::toString(table.takeError());
  }
  TemporaryFolder folder;
};

TEST_F(GgufTokenizerRefusal, RefusesOtherKindsByName) {
  EXPECT_THAT(
      problem(GgufWriter()
                  .string("tokenizer.ggml.model", "bert")
                  .strings("tokenizer.ggml.tokens", {"a"})),
      HasSubstr("the tokenizer \"bert\" is not known (tokenizer.ggml.model); choose a model "
                "with the tokenizer gemma4, gpt2 or llama"));
  GgufWriter merges = byteLevel().strings("tokenizer.ggml.merges", {"a b"});
  EXPECT_THAT(problem(merges), HasSubstr("the name of a pre-tokenizer is missing"));
  EXPECT_THAT(problem(merges.string("tokenizer.ggml.pre", "default")),
              HasSubstr("the pre-tokenizer \"default\" is not known (tokenizer.ggml.pre); choose a "
                        "model with one of a.x-4.0, bailingmoe, "));
  EXPECT_THAT(problem(byteLevel().u32("tokenizer.ggml.trick", 1)),
              HasSubstr("has the key \"tokenizer.ggml.trick\", which is unknown and could"));
}

TEST_F(GgufTokenizerRefusal, RefusesASpaceBeforeMergedText) {
  GgufWriter file;
  file.string("tokenizer.ggml.model", "gemma4");
  file.strings("tokenizer.ggml.tokens", {"<unk>", "\u2581", "a", "\u2581a"});
  file.list<int32_t>("tokenizer.ggml.token_type", GgufKind::I32, {2, 1, 1, 1});
  file.strings("tokenizer.ggml.merges", {"\u2581 a"}).u32("tokenizer.ggml.unknown_token_id", 0);
  EXPECT_EQ(problem(file), "");
  EXPECT_THAT(problem(file.boolean("tokenizer.ggml.add_space_prefix", true)),
              HasSubstr("a space before the text"));
}

TEST_F(GgufTokenizerRefusal, TakesFilesWithoutATokenizer) {
  for (const GgufWriter &file :
       {GgufWriter(), GgufWriter().string("tokenizer.ggml.model", "none")}) {
    folder.write("m.gguf", file.bytes());
    auto table = llvm::cantFail(readTokenizer(folder.path() + "/m.gguf"));
    EXPECT_FALSE(table.has_value());
    EXPECT_EQ(reasonForNoTokenizer(folder.path() + "/m.gguf"),
              "has no tokenizer (the key \"tokenizer.ggml.model\" is missing or \"none\")");
  }
}

TEST_F(GgufTokenizerRefusal, FoldersWithoutATokenizerNameTheirOwnFiles) {
  EXPECT_EQ(reasonForNoTokenizer(folder.path()),
            "has no tokenizer (tokenizer.json, tokenizer.model, vocab.json with merges.txt or a "
            "*.tiktoken file)");
}

TEST_F(GgufTokenizerRefusal, RefusesBrokenLists) {
  EXPECT_THAT(problem(GgufWriter().string("tokenizer.ggml.model", "gpt2")),
              HasSubstr("a list of strings is expected (tokenizer.ggml.tokens)"));
  auto named = [](GgufWriter file) { return file.string("tokenizer.ggml.pre", "gpt-2"); };
  EXPECT_THAT(problem(named(byteLevel())),
              HasSubstr("a list of strings is expected (tokenizer.ggml.merges)"));
  EXPECT_THAT(problem(named(byteLevel()).strings("tokenizer.ggml.merges", {"a c"})),
              HasSubstr("(tokenizer.ggml.merges[0])"));
  EXPECT_THAT(problem(named(byteLevel({"a", "a"})).strings("tokenizer.ggml.merges", {})),
              HasSubstr("the piece \"a\" occurs twice (tokenizer.ggml.tokens)"));
  EXPECT_THAT(problem(named(byteLevel())
                          .list<int32_t>("tokenizer.ggml.token_type", GgufKind::I32, {1, 1, 1, 7})),
              HasSubstr("a type from 1 to 6 for every token is expected"));
  EXPECT_THAT(problem(named(byteLevel())
                          .list<int32_t>("tokenizer.ggml.token_type", GgufKind::I32, {1, 1, 1, 6})),
              HasSubstr("byte-level BPE has no tokens for single bytes"));
  EXPECT_THAT(problem(scored({0, 0})), HasSubstr("a finite score for every token is expected"));
  EXPECT_THAT(problem(scored({0, 0, NAN})), HasSubstr("a finite score for every token"));
}

TEST_F(GgufTokenizerRefusal, RefusesBrokenTokens) {
  auto typed = [](const std::string &token, int32_t type) {
    GgufWriter file;
    file.string("tokenizer.ggml.model", "llama").strings("tokenizer.ggml.tokens", {token});
    file.list<int32_t>("tokenizer.ggml.token_type", GgufKind::I32, {type});
    return file.list<float>("tokenizer.ggml.scores", GgufKind::F32, {0});
  };
  EXPECT_THAT(problem(typed("\xff", 1)),
              HasSubstr("token 0 is not a text (tokenizer.ggml.tokens)"));
  EXPECT_THAT(problem(typed("0x0A", 6)), HasSubstr("token \"0x0A\" is not a byte"));
  EXPECT_THAT(problem(scored().u32("tokenizer.ggml.bos_token_id", 3)),
              HasSubstr("the id 3 is not one of the 3 tokens (tokenizer.ggml.bos_token_id)"));
  EXPECT_THAT(
      problem(scored().boolean("tokenizer.ggml.add_bos_token", true)),
      HasSubstr("there is no such token to add (tokenizer.ggml.add_bos_token); set it to false"));
  EXPECT_THAT(problem(scored().u32("tokenizer.ggml.add_bos_token", 1)),
              HasSubstr("true or false is expected (tokenizer.ggml.add_bos_token)"));
  EXPECT_THAT(problem(scored().boolean("tokenizer.ggml.add_sep_token", true)),
              HasSubstr("a separator after the prompt is not supported"));
}

} // namespace
} // namespace mica::test
