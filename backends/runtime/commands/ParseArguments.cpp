#include "backends/runtime/commands/ParseArguments.h"
#include "backends/runtime/commands/ForeignOptions.h"
#include "backends/runtime/commands/ProgramCommands.h"
#include "backends/runtime/support/CommandLine.h"
#include "backends/runtime/support/Output.h"
#include "backends/runtime/support/Report.h"
#include "backends/runtime/support/Spelling.h"

#include <algorithm>
#include <cstdlib>

namespace mica::rt {

namespace {
/// `app` has parsed the words.
int usageError(const CLI::App &app, const std::string &message) {
  reportError(usageMessage(message, parsedCommand(app)));
  return 2;
}

/// Prints help or version; a full disk is an error.
int print(const std::string &text) {
  Status written = writeOut(text);
  if (!written)
    reportError(written.error().message);
  return written ? 0 : 1;
}

/// The options that do not apply to --batch; empty: none.
std::string unusableWithBatch(const RunArguments &run) {
  if (!run.batch)
    return {};
  return run.logits                            ? "--logits"
         : run.json                            ? "--json"
         : run.settings.lookup.value_or(0) > 0 ? "--lookup"
         : run.settings.mtp.value_or(0) > 0    ? "--mtp"
                                               : "";
}

/// An option of text generation that was given to another command; empty: none.
std::string misplacedOption(const CLI::App &app) {
  for (const CLI::Option *option : app.get_options())
    if (option->count() > 0 && !option->check_name("--threads") &&
        !option->check_name("--huge-pages") && !option->check_name("--verify-weights"))
      return option->get_name();
  return {};
}

/// The error for a prompt of one word that is probably a typo of a subcommand; empty for others.
std::string misspelledCommand(const CLI::App &app, const RunArguments &run) {
  if (app.count(promptWord) == 0 || run.prompt->find_first_of(" \t\n") != std::string::npos)
    return {};
  std::vector<std::string> known;
  for (const CLI::App *command : app.get_subcommands([](const CLI::App *) { return true; }))
    known.push_back(command->get_name());
  std::string closest = closestWord(*run.prompt, known);
  return closest.empty() ? ""
                         : "there is no command '" + *run.prompt + "' (write a prompt after -p)" +
                               didYouMean(closest);
}
} // namespace

Parsed parseArguments(int argc, const char *const *argv) {
  Parsed parsed;
  Arguments &arguments = parsed.arguments;
  CLI::App app;
  const char *command = std::getenv(commandVariable);
  app.name(command ? command : argc > 0 ? argv[0] : "program");
  addProgramCommands(app, arguments);
  auto helpText = parseWords(app, {argv + std::min(argc, 1), argv + argc}, foreignOptions());
  if (!helpText)
    parsed.exit = usageError(app, helpText.error().message);
  else if (*helpText)
    parsed.exit = print(**helpText);
  else if (auto commands = app.get_subcommands(); !commands.empty()) {
    if (std::string option = misplacedOption(app); !option.empty())
      parsed.exit =
          usageError(app, option + " is an option for generating text, not for the command " +
                              commands.front()->get_name());
  } else if (std::string mistake = misspelledCommand(app, arguments.run); !mistake.empty())
    parsed.exit = usageError(app, mistake);
  if (parsed.exit)
    return parsed;
  if (std::string option = unusableWithBatch(arguments.run); !option.empty()) {
    parsed.exit = usageError(app, option + " cannot be combined with --batch");
    return parsed;
  }
  const RunArguments &run = arguments.run;
  if (run.chatTemplate.special && !run.chat && !run.batch)
    parsed.exit =
        usageError(app, "--special needs --chat or --batch: special tokens in a text of -p are "
                        "always parsed");
  else if (run.templateFile && !run.chat && !run.batch)
    parsed.exit = usageError(app, "--chat-template needs --chat or --batch");
  if (parsed.exit)
    return parsed;
  using Command = Arguments::Command;
  static constexpr std::pair<const char *, Command> commands[] = {
      {"chat", Command::Chat}, {"serve", Command::Serve},           {"bench", Command::Bench},
      {"info", Command::Info}, {"completion", Command::Completion}, {"score", Command::Score}};
  for (auto [name, which] : commands)
    if (app.got_subcommand(name))
      arguments.command = which;
  return parsed;
}

} // namespace mica::rt
