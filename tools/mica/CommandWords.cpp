//===- CommandWords.cpp - the words before options are parsed -------------===//

#include "tools/mica/CommandWords.h"

#include "backends/runtime/commands/ForeignOptions.h"
#include "backends/runtime/commands/ProgramCommands.h"
#include "backends/runtime/support/CommandLine.h"
#include "backends/runtime/support/Spelling.h"
#include "tools/mica/CommandLine.h"

#include "llvm/ADT/StringExtras.h"

namespace mica::tool {

namespace {
/// A command of ollama, llama.cpp or other tools.
struct ForeignCommand {
  llvm::StringLiteral name, equivalent;
};
} // namespace

constexpr ForeignCommand foreignCommands[] = {
    {"bench", "mica run MODEL bench"},
    {"chat", "mica run MODEL chat"},
    {"create", "mica compile"},
    {"delete", "mica rm"},
    {"help", "mica --help"},
    {"info", "mica inspect"},
    {"ls", "mica list"},
    {"perplexity", "mica eval"},
    {"remove", "mica rm"},
    {"serve", "mica run MODEL serve"},
    {"server", "mica run MODEL serve"},
    {"show", "mica inspect"},
};

std::string wrongCommand(const CLI::App &app, const std::vector<std::string> &words) {
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
    for (const ForeignCommand &foreign : foreignCommands)
      if (words[0] == foreign.name)
        return "there is no command '" + words[0] + "'; use `" + foreign.equivalent.str() + "`";
  if (!words.empty())
    if (std::string closest = rt::closestWord(words[0], known); !closest.empty())
      return "there is no command '" + words[0] + "'" + rt::didYouMean(closest);
  std::string what =
      words.empty() ? "no command is given" : "there is no command '" + words[0] + "'";
  return what + "; use one of " + llvm::join(known, ", ");
}

rt::Result<std::vector<std::string>> splitRunArguments(CLI::App &run,
                                                       llvm::ArrayRef<std::string> given,
                                                       std::vector<std::string> &rest) {
  CLI::App program("", "program");
  rt::Arguments unused;
  rt::addProgramCommands(program, unused);
  auto isOption = [](const std::string &word) { return word.size() > 1 && word[0] == '-'; };
  std::vector<std::string> own;
  size_t i = 0;
  auto take = [&](std::vector<std::string> &side, bool withNext) {
    side.push_back(given[i++]);
    if (withNext && i < given.size())
      side.push_back(given[i++]);
  };
  // Up to MODEL, options may be the compiler's or the program's.
  for (bool hasModel = false; i < given.size() && !hasModel;) {
    const std::string &word = given[i];
    if (!isOption(word)) {
      take(own, false);
      break;
    }
    rt::OptionWord read = rt::readOption(run, word, foreignOptions());
    bool isOwn = read.option || !read.hint.empty();
    if (!isOwn) {
      read = rt::readOption(program, word, rt::foreignOptions());
      if (!read.hint.empty())
        return rt::Error{word + ": " + read.hint};
      // An unknown option is reported by the parser of `mica run`.
      isOwn = !read.option;
    }
    hasModel = read.option && read.option == run.get_option("--model");
    take(isOwn ? own : rest, read.takesNextWord);
  }
  // After it, -h and letters that contain an option are the program's.
  while (i < given.size() && given[i] != "--") {
    rt::OptionWord read =
        isOption(given[i]) ? rt::readOption(run, given[i], foreignOptions()) : rt::OptionWord();
    bool isOwn = read.option && read.option != run.get_help_ptr() &&
                 read.option->check_name(llvm::StringRef(given[i]).split('=').first.str());
    take(isOwn ? own : rest, isOwn && read.takesNextWord);
  }
  rest.insert(rest.end(), given.begin() + i, given.end());
  return own;
}

} // namespace mica::tool
