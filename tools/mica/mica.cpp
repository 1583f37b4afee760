//===- mica.cpp - the compiler's command line -----------------------------===//

#include "backends/runtime/support/CommandLine.h"
#include "tools/mica/CommandLine.h"
#include "tools/support/Support.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mica;
using namespace mica::tool;

/// `mica run MODEL ...`: extracts MODEL and the compiler's options from the arguments; the rest is
/// passed to the program.
static std::vector<std::string> splitRunArguments(std::vector<std::string> given,
                                                  std::vector<std::string> &rest) {
  std::vector<std::string> own;
  bool hasModel = false;
  for (size_t i = 0; i < given.size(); ++i) {
    llvm::StringRef name = llvm::StringRef(given[i]).split('=').first;
    bool namesModel = name == "-m" || name == "--model";
    bool compilers =
        namesModel ||
        llvm::is_contained({"--weights", "--kv", "--rows", "--max-seq", "-c", "--target"}, name);
    bool model = !hasModel && !compilers && (i == 0 || !name.starts_with("-"));
    hasModel |= model || namesModel;
    if (compilers && name == given[i] && i + 1 < given.size())
      own.push_back(given[i++]);
    (compilers || model ? own : rest).push_back(given[i]);
  }
  return own;
}

/// Describes a problem with the command among `words`; empty if it is known or there is an option.
static std::string wrongCommand(const CLI::App &app, const std::vector<std::string> &words) {
  std::vector<std::string> known;
  for (const CLI::App *command : app.get_subcommands([](const CLI::App *) { return true; })) {
    if (!words.empty() && words[0] == command->get_name())
      return {};
    if (!command->get_group().empty())
      known.push_back(command->get_name());
  }
  if (!words.empty() && words[0].starts_with("-"))
    return {};
  if (!words.empty())
    if (std::string closest = rt::closestWord(words[0], known); !closest.empty())
      return "there is no command '" + words[0] + "'" + rt::didYouMean(closest);
  std::string what =
      words.empty() ? "no command is given" : "there is no command '" + words[0] + "'";
  return what + "; use one of " + llvm::join(known, ", ");
}

static int runMain(int argc, char **argv) {
  CLI::App app("", "mica");
  ToolArguments arguments;
  addCommands(app, arguments);
  std::vector<std::string> words(argv + 1, argv + argc);
  if (std::string wrong = wrongCommand(app, words); !wrong.empty())
    return usage(wrong);
  if (words.size() > 2 && words[0] == "run") {
    std::vector<std::string> own =
        splitRunArguments({words.begin() + 1, words.end()}, arguments.run.programArguments);
    words.assign({"run"});
    words.insert(words.end(), own.begin(), own.end());
  }
  auto helpText = rt::parseWords(app, std::move(words));
  if (!helpText)
    return usage(helpText.error().message, rt::parsedCommand(app));
  if (*helpText)
    return print(**helpText);
  llvm::StringRef command = app.get_subcommands().front()->get_name();
  if (command == "compile")
    return runCompile(arguments.compile, argv[0]);
  if (command == "run")
    return runRun(arguments.run, argv[0]);
  if (command == "inspect")
    return runInspect(arguments.inspect);
  if (command == "explore")
    return runExplore(arguments.explore);
  if (command == "diff")
    return runDiff(arguments.diff);
  if (command == "eval")
    return runEval(arguments.eval);
  if (command == "verify")
    return runVerify(arguments.verify, argv[0]);
  if (command == "pull")
    return runPull(arguments.pull);
  if (command == "list")
    return runList(arguments.list);
  if (command == "rm")
    return runRemove(arguments.remove);
  if (command == "completion")
    return runCompletion(arguments.completionShell);
  return runReference(arguments.reference);
}

int main(int argc, char **argv) {
  return tool::runTool([&] { return runMain(argc, argv); });
}
