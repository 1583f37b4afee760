#include "backends/runtime/support/CommandLine.h"
#include "backends/runtime/support/CompletionScript.h"
#include "backends/runtime/support/OptionValues.h"

#include <gmock/gmock.h>

using namespace mica::rt;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

namespace {
class CommandSpecTest : public testing::Test {
protected:
  CommandSpecTest() {
    app.set_help_flag();
    app.add_option("--kind", kind, "which: one")->check(CLI::IsMember({"a", "b"}));
    app.add_option("-n,--number", number, "how many; more is better")
        ->transform(wholeNumber(1, 9))
        ->default_str("3");
    app.add_option("-o", output, "where")->type_name("FILE.json");
    app.add_option("--dir", folder, "in which")->type_name("DIR");
    app.add_option("MODEL", model, "of what");
    app.add_flag("-v,--verbose", verbose, "it's all said");
    app.add_subcommand("sub", "a part; of it")->add_option("-n", number, "again");
    app.add_subcommand("hidden", "for nobody")->group("");
    spec = describeCommand(app);
  }

  CLI::App app{"", "my tool"};
  std::string kind, output, folder, model;
  int64_t number = 0;
  bool verbose = false;
  CommandSpec spec;
};

TEST_F(CommandSpecTest, DescribesOptions) {
  using Values = OptionSpec::Values;
  ASSERT_EQ(spec.options.size(), 6U);
  EXPECT_EQ(spec.options[0].values, Values::Choice);
  EXPECT_THAT(spec.options[0].choices, ElementsAre("a", "b"));
  EXPECT_EQ(spec.options[0].help, "which: one; one of a, b");
  EXPECT_THAT(spec.options[1].names, ElementsAre("-n", "--number"));
  EXPECT_EQ(spec.options[1].value, "N");
  EXPECT_EQ(spec.options[1].values, Values::Any);
  EXPECT_EQ(spec.options[1].help, "how many; more is better; from 1 to 9 (default: 3)");
  EXPECT_EQ(spec.options[2].values, Values::File);
  EXPECT_EQ(spec.options[3].values, Values::Folder);
  EXPECT_TRUE(spec.options[4].isPositional());
  EXPECT_EQ(spec.options[4].value, "MODEL");
  EXPECT_EQ(spec.options[4].values, Values::File);
  EXPECT_EQ(spec.options[5].values, Values::None);
  EXPECT_THAT(spec.options[5].value, IsEmpty());
}

TEST_F(CommandSpecTest, LeavesHiddenCommandsOut) {
  ASSERT_EQ(spec.commands.size(), 1U);
  EXPECT_EQ(spec.commands[0].name, "sub");
}

TEST_F(CommandSpecTest, SummariesAreFirstClauses) {
  EXPECT_EQ(summaryOf("how many; more"), "how many");
  EXPECT_EQ(summaryOf("which: one"), "which");
  EXPECT_EQ(summaryOf("all"), "all");
}

TEST_F(CommandSpecTest, ScriptsQuoteTheNameOfTheCommand) {
  EXPECT_THAT(completionScript(spec, Shell::Bash),
              HasSubstr("complete -F _mica_completion_of_my_tool -- 'my tool'\n"));
  EXPECT_THAT(completionScript(spec, Shell::Zsh), HasSubstr("'--verbose:it'\\''s all said'"));
  EXPECT_THAT(completionScript(spec, Shell::Fish),
              HasSubstr(" -s v -l verbose -d 'it\\'s all said'\n"));
  for (Shell shell : {Shell::Bash, Shell::Zsh, Shell::Fish})
    EXPECT_THAT(completionScript(spec, shell), Not(HasSubstr("hidden")));
}

TEST(Shells, HaveNames) {
  for (Shell shell : {Shell::Bash, Shell::Zsh, Shell::Fish})
    EXPECT_EQ(shellNamed(nameOf(shell)), shell);
  EXPECT_FALSE(shellNamed("tcsh"));
}

TEST(ShellQuoted, IsOneWord) { EXPECT_EQ(shellQuoted("it's"), "'it'\\''s'"); }
} // namespace
