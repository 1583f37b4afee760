//===- ManPageTest.cpp - the man page of a command ------------------------===//

#include "tools/mica/ManPage.h"

#include "gmock/gmock.h"

using namespace mica::rt;
using namespace mica::tool;
using llvm::StringRef;
using testing::HasSubstr;
using testing::Not;

namespace {

CommandSpec command() {
  CLI::App app("does it: well", "tool");
  static std::string model;
  static bool quick;
  app.set_help_flag();
  app.add_option("MODEL", model, "what is read");
  app.add_flag("-q,--quick", quick, ".5 times as \\long");
  app.add_subcommand("part", "one part")->footer("How:\n  slowly\n\nExample:\n  tool part");
  app.add_subcommand("hidden", "for the build")->group("");
  app.footer("First.\nSecond.\n\nExamples:\n  tool a\n  tool b");
  return describeCommand(app);
}

TEST(ManPage, HasItsOptionsAndExamples) {
  std::string page = manPage(command(), "tool", {});
  EXPECT_THAT(page, HasSubstr(".SH NAME\ntool \\- does it\n"));
  EXPECT_THAT(page, HasSubstr(".B tool [OPTIONS] [MODEL] [COMMAND]\n"));
  EXPECT_THAT(page, HasSubstr(".SH ARGUMENTS\n.TP\n.B MODEL\nwhat is read\n"));
  // A dot at the beginning of a line and a backslash are escaped for roff.
  EXPECT_THAT(page, HasSubstr(".TP\n.B \\-q, \\-\\-quick\n\\&.5 times as \\elong\n"));
  EXPECT_THAT(page, HasSubstr(".PP\nFirst.\n.PP\nSecond.\n.SH ARGUMENTS\n"));
  EXPECT_THAT(page, HasSubstr(".SH PART COMMAND\n"));
  EXPECT_THAT(page, HasSubstr(".PP\nHow:\n.PP\n.nf\n.RS 4\nslowly\n.RE\n.fi\n"));
  EXPECT_TRUE(StringRef(page).ends_with(".SH EXAMPLES\n"
                                        ".nf\n.RS 4\ntool a\ntool b\n.RE\n.fi\n"
                                        ".PP\n.nf\n.RS 4\ntool part\n.RE\n.fi\n"))
      << page;
  EXPECT_THAT(page, Not(HasSubstr("hidden")));
}

TEST(ManPage, RefersToPagesOfItsCommands) {
  std::string page = manPage(command(), "tool", {"tool-part"});
  EXPECT_THAT(page, HasSubstr(".SH COMMANDS\n.TP\n.B part\none part\n"));
  EXPECT_THAT(page, HasSubstr(".SH SEE ALSO\n.BR tool\\-part (1)\n"));
  EXPECT_THAT(page, Not(HasSubstr("PART COMMAND")));
  EXPECT_THAT(page, Not(HasSubstr("tool part\n.RE")));
}

} // namespace
