// The sources of chat templates.
#include "frontend/text/chat/ReadChat.h"
#include "tests/unit/frontend/GgufWriter.h"
#include "tests/unit/frontend/TestFolder.h"

namespace mica::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

std::optional<ChatDescription> read(const std::string &path) {
  auto chat = readChat(path);
  EXPECT_TRUE(bool(chat)) << llvm::toString(chat.takeError());
  return chat ? *chat : std::nullopt;
}

std::string refusal(const std::string &path) {
  auto chat = readChat(path);
  return chat ? "" : llvm::toString(chat.takeError());
}

TEST(ReadChat, FoldersWithoutATemplateHaveNone) {
  TestFolder folder;
  EXPECT_FALSE(read(folder.path()));
  folder.write("tokenizer_config.json", R"({"bos_token": "<s>", "chat_template": null})");
  EXPECT_FALSE(read(folder.path()));
}

TEST(ReadChat, TheConfigHasTemplateAndTokens) {
  TestFolder folder;
  std::string file = folder.write(
      "tokenizer_config.json",
      R"({"chat_template": "{{ bos_token }}", "bos_token": {"content": "<s>"}, "pad_token": null})");
  folder.write("special_tokens_map.json", R"({"bos_token": "<x>", "eos_token": "</s>"})");
  auto chat = read(folder.path());
  ASSERT_TRUE(chat);
  EXPECT_EQ(chat->chatTemplate, "{{ bos_token }}");
  EXPECT_EQ(chat->file, file);
  EXPECT_EQ(chat->unusable, "");
  EXPECT_THAT(chat->specialTokens,
              ElementsAre(Pair("bos_token", "<s>"), Pair("eos_token", "</s>")));
}

TEST(ReadChat, AFileOfItsOwnGoesFirst) {
  TestFolder folder;
  folder.write("tokenizer_config.json", R"({"chat_template": "old"})");
  folder.write("chat_template.jinja", "new");
  EXPECT_EQ(read(folder.path())->chatTemplate, "new");
}

TEST(ReadChat, OfNamedTemplatesTheDefaultCounts) {
  TestFolder folder;
  folder.write(
      "tokenizer_config.json",
      R"({"chat_template": [{"name": "tool_use", "template": "t"}, {"name": "default", "template": "d"}]})");
  auto chat = read(folder.path());
  EXPECT_EQ(chat->chatTemplate, "d");
  EXPECT_EQ(chat->forTools->text, "t");
  EXPECT_EQ(chat->forTools->file, chat->file);
  EXPECT_THAT(chat->leftOut, ElementsAre());
  folder.write(
      "tokenizer_config.json",
      R"({"chat_template": [{"name": "rag", "template": "t"}, {"name": "rag", "template": "u"}]})");
  chat = read(folder.path());
  EXPECT_EQ(chat->unusable, "there are named ones, but none that is called \"default\"");
  EXPECT_FALSE(chat->forTools);
  EXPECT_THAT(chat->leftOut, ElementsAre("rag"));
}

TEST(ReadChat, AFolderHasTheNamedOnes) {
  TestFolder folder;
  folder.write("tokenizer_config.json",
               R"({"chat_template": [{"name": "rag", "template": "old"}]})");
  ASSERT_TRUE(std::filesystem::create_directory(folder.path() + "/additional_chat_templates"));
  std::string tools = folder.write("additional_chat_templates/tool_use.jinja", "{% include 't' %}");
  folder.write("additional_chat_templates/short.jinja", "s");
  folder.write("additional_chat_templates/notes.txt", "none");
  auto chat = read(folder.path());
  EXPECT_EQ(chat->file, folder.path() + "/additional_chat_templates");
  EXPECT_EQ(chat->unusable, "there are named ones, but none that is called \"default\"");
  std::string own = folder.write("chat_template.jinja", "d");
  chat = read(folder.path());
  EXPECT_EQ(chat->file, own);
  EXPECT_EQ(chat->chatTemplate, "d");
  EXPECT_EQ(chat->unusable, "");
  EXPECT_EQ(chat->forTools->text, "{% include 't' %}");
  EXPECT_EQ(chat->forTools->file, tools);
  EXPECT_EQ(chat->forTools->unusable, "line 1: the tag 'include' is not supported here");
  EXPECT_THAT(chat->leftOut, ElementsAre("short"));
  folder.write("additional_chat_templates/tool_use.jinja", "\xff");
  EXPECT_THAT(refusal(folder.path()), HasSubstr("tool_use.jinja: is not UTF-8"));
}

TEST(ReadChat, TemplatesThatCannotBeParsedAreReportedAndKept) {
  TestFolder folder;
  folder.write("chat_template.jinja", "\n{% include 'x' %}");
  auto chat = read(folder.path());
  EXPECT_EQ(chat->chatTemplate, "\n{% include 'x' %}");
  EXPECT_EQ(chat->unusable, "line 2: the tag 'include' is not supported here");
}

TEST(ReadChat, BrokenFilesAreRefused) {
  TestFolder folder;
  folder.write("tokenizer_config.json", R"({"chat_template": 1})");
  EXPECT_THAT(refusal(folder.path()),
              HasSubstr("\"chat_template\" is neither a text nor a list of named texts"));
  folder.write("tokenizer_config.json", R"({"chat_template": [{"name": "default"}]})");
  EXPECT_THAT(refusal(folder.path()),
              HasSubstr("\"chat_template\" lists something other than objects "
                        "with \"name\" and \"template\""));
  folder.write("tokenizer_config.json", "{");
  EXPECT_THAT(refusal(folder.path()), HasSubstr("tokenizer_config.json"));
  folder.write("chat_template.jinja", "\xff");
  folder.write("tokenizer_config.json", "{}");
  EXPECT_THAT(refusal(folder.path()), HasSubstr("chat_template.jinja: is not UTF-8"));
}

TEST(ReadChat, GgufFilesCarryTheirs) {
  TestFolder folder;
  GgufWriter writer;
  writer.string("tokenizer.chat_template", "{{ eos_token }}")
      .strings("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>"})
      .u32("tokenizer.ggml.bos_token_id", 1)
      .u32("tokenizer.ggml.eos_token_id", 2)
      .u32("tokenizer.ggml.padding_token_id", 7);
  auto chat = read(folder.write("model.gguf", writer.bytes()));
  ASSERT_TRUE(chat);
  EXPECT_EQ(chat->chatTemplate, "{{ eos_token }}");
  EXPECT_THAT(chat->specialTokens,
              ElementsAre(Pair("bos_token", "<s>"), Pair("eos_token", "</s>")));
  writer.string("tokenizer.chat_template.tool_use", "{{ tools }}")
      .string("tokenizer.chat_template.rag", "r")
      .string("tokenizer.chat_templates", "other");
  chat = read(folder.write("named.gguf", writer.bytes()));
  EXPECT_EQ(chat->chatTemplate, "{{ eos_token }}");
  EXPECT_EQ(chat->forTools->text, "{{ tools }}");
  EXPECT_THAT(chat->leftOut, ElementsAre("rag"));
  EXPECT_FALSE(read(folder.write("none.gguf", GgufWriter().bytes())));
  EXPECT_THAT(
      refusal(folder.write("wrong.gguf", GgufWriter().u32("tokenizer.chat_template", 1).bytes())),
      HasSubstr("\"tokenizer.chat_template\" is not a text"));
  EXPECT_THAT(refusal(folder.write("bytes.gguf",
                                   GgufWriter().string("tokenizer.chat_template", "\xff").bytes())),
              HasSubstr("\"tokenizer.chat_template\" is not UTF-8"));
}

} // namespace
} // namespace mica::test
