#include "backends/runtime/support/CommandLine.h"
#include "backends/runtime/support/HelpFormatter.h"
#include "backends/runtime/support/OptionValues.h"
#include "backends/runtime/support/Spelling.h"

#include <gmock/gmock.h>

using namespace mica::rt;
using testing::HasSubstr;

namespace {
class CommandLineTest : public testing::Test {
protected:
  CommandLineTest() {
    app.add_option("--temperature", temperature);
    app.add_option("-n,--n-predict", count)->transform(wholeNumber(0));
    app.add_option("-p", prompt);
    app.add_option("-f,--file", file);
    app.add_flag("-v,--verbose", verbose);
    CLI::App *chat = app.add_subcommand("chat", "");
    chat->add_option("--history", history);
    chat->add_option("--system", system);
  }

  /// The error for these words; empty if there is none.
  std::string errorOf(std::vector<std::string> words) {
    auto parsed = parseWords(app, std::move(words),
                             {{{"-c"}, "it is fixed"},
                              {{"-np", "-hf"}, "there is one"},
                              {{"-s"}, "use --seed N", {""}},
                              {{"-r", "-n"}, "use --repeat N", {"chat"}}});
    return parsed ? "" : parsed.error().message;
  }

  CLI::App app{"", "program"};
  std::string temperature, count, prompt, file, history, system;
  bool verbose = false;
};

TEST_F(CommandLineTest, SuggestsCorrectionsOfTypos) {
  EXPECT_EQ(errorOf({"--temperatur", "1"}),
            "unexpected argument '--temperatur'; did you mean '--temperature'?");
  EXPECT_EQ(errorOf({"--N_predcit=3"}),
            "unexpected argument '--N_predcit'; did you mean '--n-predict'?");
  EXPECT_EQ(errorOf({"--temp=1"}), "unexpected argument '--temp'; did you mean '--temperature'?");
  EXPECT_EQ(errorOf({"-verbose"}), "unexpected argument '-verbose'; did you mean '--verbose'?");
  EXPECT_EQ(errorOf({"--hlep"}), "unexpected argument '--hlep'; did you mean '--help'?");
  EXPECT_EQ(errorOf({"--quantize"}), "unexpected argument '--quantize'");
}

TEST_F(CommandLineTest, SuggestsOptionsOfTheSubcommand) {
  EXPECT_EQ(errorOf({"chat", "--histroy", "f"}),
            "unexpected argument '--histroy'; did you mean '--history'?");
  EXPECT_EQ(parsedCommand(app), "program chat");
  EXPECT_EQ(errorOf({"chat", "--temperatur", "1"}), "unexpected argument '--temperatur'");
}

TEST_F(CommandLineTest, NamesTheFirstUnknownOptionAlone) {
  EXPECT_EQ(errorOf({"-p", "--bogus", "--other", "x", "--third"}), "unexpected argument '--other'");
  EXPECT_EQ(errorOf({"x", "y"}), "unexpected arguments 'x', 'y'");
}

TEST_F(CommandLineTest, HintsReplaceForeignOptions) {
  EXPECT_EQ(errorOf({"-ngl", "99"}), "-ngl: there is no GPU backend; leave it out");
  EXPECT_EQ(errorOf({"chat", "-c", "99"}), "-c: it is fixed");
}

TEST_F(CommandLineTest, HintsApplyToOptionsWithANumber) {
  EXPECT_EQ(errorOf({"-ngl99"}), "-ngl99: there is no GPU backend; leave it out");
  EXPECT_EQ(errorOf({"-c4096"}), "-c4096: it is fixed");
  EXPECT_EQ(errorOf({"-s-1"}), "-s-1: use --seed N");
  EXPECT_EQ(errorOf({"-cx"}), "unexpected argument '-cx'");
}

TEST_F(CommandLineTest, HintsBelongToCommands) {
  EXPECT_EQ(errorOf({"-r", "2"}), "unexpected argument '-r'");
  EXPECT_EQ(errorOf({"chat", "-r", "2"}), "-r: use --repeat N");
  EXPECT_EQ(errorOf({"chat", "-s", "2"}), "unexpected argument '-s'");
  EXPECT_EQ(errorOf({"-n", "2"}), "");
  EXPECT_EQ(errorOf({"chat", "-n", "2"}), "-n: use --repeat N");
}

TEST_F(CommandLineTest, CombinedLettersAreNotSplitIntoOptions) {
  // Without this, -n would have the values p and kvo, -f the value a, and -h would print help.
  EXPECT_EQ(errorOf({"-np", "2"}), "-np: there is one");
  EXPECT_EQ(errorOf({"-nkvo"}), "-nkvo: there is no GPU backend; leave it out");
  EXPECT_EQ(errorOf({"-nx"}), "unexpected argument '-nx'");
  EXPECT_EQ(errorOf({"-fa", "on"}), "-fa: always on; leave it out");
  EXPECT_EQ(errorOf({"-p", "text", "-fa"}), "-fa: always on; leave it out");
  EXPECT_EQ(errorOf({"-hf", "a/b"}), "-hf: there is one");
  EXPECT_EQ(errorOf({"-hx"}), "unexpected argument '-hx'");
  EXPECT_EQ(errorOf({"-file", "x"}), "unexpected argument '-file'; did you mean '--file'?");
  EXPECT_EQ(errorOf({"chat", "-hx"}), "unexpected argument '-hx'");
  EXPECT_EQ(parsedCommand(app), "program chat");
  // Values.
  EXPECT_THAT(errorOf({"-n5x"}), HasSubstr("'5x' is not a whole number"));
  EXPECT_EQ(errorOf({"-vn5", "-fb", "-vp", "-np"}), "");
  EXPECT_EQ(std::tie(count, file, prompt), std::tuple("5", "b", "-np"));
}

TEST_F(CommandLineTest, ReadsAnOption) {
  auto read = [&](const std::string &word) {
    OptionWord option = readOption(app, word, {{{"-fa"}, "always on"}});
    return std::tuple(option.option ? option.option->get_name() : "", option.takesNextWord,
                      option.hint);
  };
  EXPECT_EQ(read("--n-predict"), std::tuple("--n-predict", true, ""));
  EXPECT_EQ(read("--n-predict=3"), std::tuple("--n-predict", false, ""));
  EXPECT_EQ(read("-n3"), std::tuple("--n-predict", false, ""));
  EXPECT_EQ(read("-vn"), std::tuple("--n-predict", true, ""));
  EXPECT_EQ(read("-v"), std::tuple("--verbose", false, ""));
  EXPECT_EQ(read("-fa"), std::tuple("", false, "always on"));
  EXPECT_EQ(read("-np"), std::tuple("", false, ""));
}

TEST_F(CommandLineTest, AcceptsTheSystemPromptOptionOfLlamaCpp) {
  EXPECT_EQ(errorOf({"-p", "-sys", "chat", "-sys", "Be brief"}), "");
  EXPECT_EQ(prompt, "-sys");
  EXPECT_EQ(system, "Be brief");
  EXPECT_EQ(errorOf({"-sys", "x"}), "unexpected argument '-sys'");
}

TEST_F(CommandLineTest, ValuesAreNotTakenForOptions) {
  EXPECT_EQ(errorOf({"-p", "-ngl", "-n3", "-v"}), "");
  EXPECT_EQ(prompt, "-ngl");
  EXPECT_EQ(count, "3");
  EXPECT_THAT(errorOf({"-p", "-ngl", "-n", "x"}), HasSubstr("'x' is not a whole number"));
}

TEST(HelpFormatterTest, WrapsAndGroups) {
  CLI::App app("What it is.", "program");
  app.formatter(helpFormatter());
  std::string type;
  int64_t count = 3;
  addGroup(app, "Choices", [&] {
    app.add_option("-t,--type", type,
                   "How it is done, in many words: so many that they cannot be "
                   "on one line")
        ->check(CLI::IsMember({"a", "b"}));
    app.add_option("--count-of-something", count, "How many")
        ->transform(wholeNumber(1, 1024))
        ->capture_default_str();
  });
  app.footer("Example:\n  program --type a");
  EXPECT_EQ(app.help(),
            "What it is.\n"
            "Usage: program [OPTIONS]\n"
            "\nOptions:\n"
            "  -h, --help              Print this help message and exit\n"
            "\nChoices:\n"
            "  -t, --type TEXT         How it is done, in many words: so many that they\n"
            "                          cannot be on one line; one of a, b\n"
            "  --count-of-something N  How many; from 1 to 1024 (default: 3)\n"
            "\n"
            "Example:\n"
            "  program --type a\n");
}

TEST(HelpFormatterTest, NamesArgumentsAndCommands) {
  CLI::App app("", "program");
  app.formatter(helpFormatter());
  std::string file;
  app.add_option("FILE", file, "Input");
  app.add_subcommand("chat", "Talk");
  app.require_subcommand(1);
  EXPECT_EQ(app.help(), "Usage: program [OPTIONS] [FILE] COMMAND\n"
                        "\nArguments:\n"
                        "  FILE                    Input\n"
                        "\nOptions:\n"
                        "  -h, --help              Print this help message and exit\n"
                        "\nCommands:\n"
                        "  chat                    Talk\n\n");
}

TEST(ClosestWordTest, AllowsAMistakePerThreeLetters) {
  std::vector<std::string> known = {"compile", "run", "inspect"};
  EXPECT_EQ(closestWord("complie", known), "compile");
  EXPECT_EQ(closestWord("COMPILE", known), "compile");
  EXPECT_EQ(closestWord("ins", known), "inspect");
  EXPECT_EQ(closestWord("rnu", known), "run");
  EXPECT_EQ(closestWord("pull", known), "");
  EXPECT_EQ(closestWord("", known), "");
}
} // namespace
