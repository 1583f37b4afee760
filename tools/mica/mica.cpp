//===- mica.cpp - the compiler's command line -----------------------------===//

#include "backends/runtime/support/CommandLine.h"
#include "tools/mica/Caches.h"
#include "tools/mica/CommandLine.h"
#include "tools/mica/CommandWords.h"
#include "tools/mica/Compile.h"
#include "tools/mica/Diff.h"
#include "tools/mica/Eval.h"
#include "tools/mica/Explore.h"
#include "tools/mica/Inspect.h"
#include "tools/mica/Pull.h"
#include "tools/mica/Reference.h"
#include "tools/mica/Run.h"
#include "tools/mica/Verify.h"
#include "tools/support/Support.h"

#include "llvm/ADT/STLExtras.h"

using namespace mica;
using namespace mica::tool;

namespace {
struct Command {
  llvm::StringLiteral name;
  int (*run)(const ToolArguments &arguments, const char *argv0);
};
} // namespace

constexpr Command commands[] = {
    {"compile", [](const auto &given, auto *argv0) { return runCompile(given.compile, argv0); }},
    {"run", [](const auto &given, auto *argv0) { return runRun(given.run, argv0); }},
    {"inspect", [](const auto &given, auto *) { return runInspect(given.inspect); }},
    {"explore", [](const auto &given, auto *) { return runExplore(given.explore); }},
    {"diff", [](const auto &given, auto *) { return runDiff(given.diff); }},
    {"eval", [](const auto &given, auto *) { return runEval(given.eval); }},
    {"verify", [](const auto &given, auto *argv0) { return runVerify(given.verify, argv0); }},
    {"pull", [](const auto &given, auto *) { return runPull(given.pull); }},
    {"list", [](const auto &given, auto *) { return runList(given.list); }},
    {"rm", [](const auto &given, auto *) { return runRemove(given.remove); }},
    {"completion", [](const auto &given, auto *) { return runCompletion(given.completionShell); }},
    {"reference", [](const auto &given, auto *) { return runReference(given.reference); }},
};

static int runMain(int argc, char **argv) {
  CLI::App app("", "mica");
  ToolArguments arguments;
  addCommands(app, arguments);
  std::vector<std::string> words(argv + 1, argv + argc);
  if (std::string wrong = wrongCommand(app, words); !wrong.empty())
    return usage(wrong);
  if (words.size() > 2 && words[0] == "run") {
    auto own = splitRunArguments(*app.get_subcommand("run"), llvm::ArrayRef(words).drop_front(),
                                 arguments.run.programArguments);
    if (!own)
      return usage(own.error().message, "mica run");
    words.assign({"run"});
    words.insert(words.end(), own->begin(), own->end());
  }
  auto helpText = rt::parseWords(app, std::move(words), foreignOptions());
  if (!helpText)
    return usage(helpText.error().message, rt::parsedCommand(app));
  if (*helpText)
    return print(**helpText);
  llvm::StringRef name = app.get_subcommands().front()->get_name();
  const Command *command =
      llvm::find_if(commands, [&](const Command &known) { return known.name == name; });
  assert(command != std::end(commands) && "every command of the command line is in the table");
  return command->run(arguments, argv[0]);
}

int main(int argc, char **argv) {
  return tool::runTool([&] { return runMain(argc, argv); });
}
