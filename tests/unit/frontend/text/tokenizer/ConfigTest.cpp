// The ids around a prompt, and the effect of tokenizer_config.json.
#include "TokenizerFixture.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mica::test {
namespace {

using testing::ElementsAre;

std::vector<int32_t> prompt(const std::string &model, const std::string &config) {
  TemporaryFolder folder;
  std::string name = model.ends_with(".json") ? "tokenizer.json" : "tokenizer.model";
  folder.link(name, tokenizerData() / model);
  if (!config.empty())
    folder.write("tokenizer_config.json", config);
  auto open = openFolder(folder.path());
  EXPECT_TRUE(static_cast<bool>(open)) << llvm::toString(open.takeError());
  return open ? *open->tokenizer.encode("", true) : std::vector<int32_t>();
}

TEST(TokenizerConfig, SentencePieceModelsBeginWithBos) {
  EXPECT_THAT(prompt("sp_bpe.model", ""), ElementsAre(1));
  EXPECT_THAT(prompt("sp_bpe.model", R"({"add_bos_token": false})"), ElementsAre());
  EXPECT_THAT(prompt("sp_bpe.model", R"({"add_eos_token": true})"), ElementsAre(1, 2));
  EXPECT_THAT(prompt("sp_bpe.model", R"({"add_bos_token": true, "add_eos_token": false})"),
              ElementsAre(1));
}

TEST(TokenizerConfig, TemplateCountsUnlessTheConfigOverrides) {
  EXPECT_THAT(prompt("llama3_kin.json", ""), ElementsAre(1));
  EXPECT_THAT(prompt("llama3_kin.json", R"({"bos_token": "<|begin|>"})"), ElementsAre(1));
  EXPECT_THAT(prompt("llama3_kin.json", R"({"bos_token": "<|begin|>", "add_bos_token": true})"),
              ElementsAre(1));
  EXPECT_THAT(prompt("llama3_kin.json", R"({"bos_token": "<|begin|>", "add_bos_token": false})"),
              ElementsAre());
}

TEST(TokenizerConfig, ByteLevelFilesAddNothingUnlessAsked) {
  EXPECT_THAT(prompt("qwen2_kin.json", R"({"bos_token": "<|endoftext|>"})"), ElementsAre());
  EXPECT_THAT(prompt("qwen2_kin.json",
                     R"({"bos_token": {"content": "<|endoftext|>"}, "add_bos_token": true})"),
              ElementsAre(0));
  EXPECT_THAT(prompt("qwen2_kin.json", R"({"eos_token": "<|begin|>", "add_eos_token": true})"),
              ElementsAre(1));
  EXPECT_THAT(prompt("qwen2_kin.json",
                     R"({"bos_token": "<|endoftext|>", "tokenizer_class": "LlamaTokenizerFast"})"),
              ElementsAre(0));
}

TEST(TokenizerConfig, AddsTheTokensOfItsList) {
  TemporaryFolder folder;
  folder.link("tokenizer.json", tokenizerData() / "gpt2_kin.json");
  folder.write("tokenizer_config.json", R"({"added_tokens_decoder": {"600": {"content": "<new>",
    "lstrip": false, "normalized": false, "rstrip": false, "single_word": false, "special": true}}})");
  auto open = openFolder(folder.path());
  ASSERT_TRUE(static_cast<bool>(open)) << llvm::toString(open.takeError());
  EXPECT_THAT(*open->tokenizer.encode("<new>", false), ElementsAre(600));
  EXPECT_TRUE(open->tokenizer.isSpecial(600));
  EXPECT_EQ(open->tokenizer.find("<new>"), 600);
  EXPECT_EQ(open->tokenizer.decode(std::vector<int32_t>{600}), "");
  rt::Tokenizer::Decoder spelling(open->tokenizer, false, /*printSpecial=*/true);
  EXPECT_EQ(spelling.push(600), "<new>");
}

TEST(TokenizerConfig, NamesStartAndEnd) {
  TemporaryFolder folder;
  folder.link("tokenizer.model", tokenizerData() / "sp_bpe.model");
  auto table = readTokenizer(folder.path());
  ASSERT_TRUE(static_cast<bool>(table)) << llvm::toString(table.takeError());
  EXPECT_EQ((*table)->bosId, 1);
  EXPECT_EQ((*table)->eosId, 2);
}

} // namespace
} // namespace mica::test
