// Text in, text out: the launcher with a tokenizer made by the frontend.
#include "backends/cpu/runtime/tokenizer/Tokenizer.h"
#include "frontend/tokenizer/ReadTokenizer.h"
#include "tests/unit/backends/cpu/runtime/Shell.h"

#include <gmock/gmock.h>

using namespace mica;
using namespace mica::test;
using testing::HasSubstr;

namespace {
/// `text` as one word of a shell.
std::string shellWord(const std::string &text) {
  std::string word = "'";
  for (char c : text)
    word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

class TextTest : public testing::TestWithParam<const char *> {
protected:
  void SetUp() override {
    std::string file = GetParam();
    bool json = file.ends_with(".json");
    std::filesystem::copy(std::string(MICA_TEST_DATA) + "/tokenizers/" + file,
                          folder.file(json ? "tokenizer.json" : "tokenizer.model"));
    auto read = readTokenizer(folder.file(""));
    ASSERT_TRUE(bool(read)) << llvm::toString(read.takeError());
    ASSERT_TRUE(read->has_value());
    table = (*read)->serialise();
    auto loaded = rt::Tokenizer::load(table);
    ASSERT_TRUE(loaded) << loaded.error().message;
    tokenizer.emplace(*std::move(loaded));
    // One more than the tokenizer has, as the fake model refuses the last.
    vocab = tokenizer->size() + 1;
    writeFakeProgram(program, MICA_LAUNCHER, fakeManifest("", vocab), table);
  }

  /// What the program must write after `prompt`.
  std::string expected(const rt::Tokens &prompt, int64_t count) {
    rt::Tokenizer::Decoder decoder(*tokenizer, !tokenizer->decode(prompt).empty());
    std::string text;
    for (int32_t token : fakeContinuation(prompt, count, vocab))
      text += decoder.push(token);
    text += decoder.finish();
    return text.ends_with('\n') ? text : text + "\n";
  }

  Outcome run(const std::string &arguments) {
    return runShell(folder, program + " --temperature 0 --ignore-eos -n 5 " + arguments);
  }

  TemporaryFolder folder;
  std::string program = folder.file("program");
  std::vector<std::byte> table;
  std::optional<rt::Tokenizer> tokenizer;
  int64_t vocab = 0;
};

TEST_P(TextTest, ContinuesText) {
  for (std::string prompt : {"Hi you", "a", "-n", "{}", "[a,b]", "w\xc3\xb6rld \xe2\x82\xac"}) {
    Outcome outcome = run("-p " + shellWord(prompt));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.out, expected(*tokenizer->encode(prompt, true), 5)) << prompt;
    EXPECT_EQ(outcome.err, "");
  }
}

TEST_P(TextTest, ControlCharactersAndBrokenUtf8DoNoHarm) {
  for (std::string prompt : {"\x1b]0;t\x07", "a\r\n\tb", "\xff\xfe", "\xe2\x82"}) {
    Outcome outcome = run("-p " + shellWord(prompt));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.out, expected(*tokenizer->encode(prompt, true), 5));
  }
}

TEST_P(TextTest, ReadsThePromptFromAFile) {
  std::ofstream(folder.file("prompt")) << "Hi\nyou";
  EXPECT_EQ(run("-f " + folder.file("prompt")).out,
            expected(*tokenizer->encode("Hi\nyou", true), 5));
  EXPECT_EQ(run("-f /dev/stdin < " + folder.file("prompt")).out,
            expected(*tokenizer->encode("Hi\nyou", true), 5));
  Outcome absent = run("-f " + folder.file("absent"));
  EXPECT_EQ(absent.status, 1);
  EXPECT_THAT(absent.err, HasSubstr("absent': No such file or directory"));
  EXPECT_THAT(run("-f " + folder.file("")).err, HasSubstr("Is a directory"));
}

TEST_P(TextTest, TokensGiveTextUnlessIdsAreWanted) {
  EXPECT_EQ(run("--tokens 5,6").out, expected({5, 6}, 5));
  std::string ids;
  for (int32_t token : fakeContinuation({5, 6}, 5, vocab))
    ids += (ids.empty() ? "" : " ") + std::to_string(token);
  EXPECT_EQ(run("--tokens 5,6 --print-tokens").out, ids + "\n");
}

TEST_P(TextTest, SequencesOfABatchFollowEachOther) {
  EXPECT_EQ(run("--tokens 5,6 --tokens 9").out, expected({5, 6}, 5) + expected({9}, 5));
}

TEST_P(TextTest, PromptLongerThanTheContextIsAnError) {
  Outcome outcome = run("-p " + shellWord(std::string(400, 'a') +
                                          " b c d e f g h i j k l m n o p q r s t u v w x y z"));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, HasSubstr(" more than the context of 20 positions, shorten it"));
}

INSTANTIATE_TEST_SUITE_P(Tokenizers, TextTest,
                         testing::Values("gpt2_kin.json", "llama2_kin.json", "sp_bpe.model"),
                         [](const auto &info) {
                           std::string name = info.param;
                           return name.substr(0, name.find('.'));
                         });
} // namespace
