#include "backends/runtime/support/CommandLine.h"
#include "backends/runtime/support/OptionValues.h"
#include "backends/runtime/support/Report.h"
#include "backends/runtime/support/Spelling.h"

#include <algorithm>
#include <sstream>

namespace mica::rt {

namespace {
std::string_view trimmed(std::string_view text) {
  size_t first = text.find_first_not_of(" \t\r\n");
  return first == text.npos ? text.substr(0, 0)
                            : text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

std::string unexpected(std::vector<std::string> words) {
  std::string list;
  for (const std::string &word : words)
    list += (list.empty() ? "'" : ", '") + printable(word) + "'";
  return (words.size() == 1 ? "unexpected argument " : "unexpected arguments ") + list;
}

/// For all commands of all tools: options of programs that run on GPUs, and what is always on.
const std::vector<ForeignOption> &commonForeignOptions() {
  static const std::vector<ForeignOption> options = {
      {{"-ngl",
        "--gpu-layers",
        "--n-gpu-layers",
        "-dev",
        "--device",
        "-sm",
        "--split-mode",
        "-ts",
        "-mg",
        "--tensor-split",
        "-ot",
        "--override-tensor",
        "-nkvo",
        "-fit",
        "--main-gpu",
        "-cmoe",
        "--cpu-moe",
        "-ncmoe",
        "--fit",
        "--no-kv-offload",
        "--n-cpu-moe"},
       "there is no GPU backend; leave it out"},
      {{"-fa", "--flash-attn"}, "always on; leave it out"}};
  return options;
}

std::vector<std::string> longNames(const CLI::App &app) {
  std::vector<std::string> names;
  for (const CLI::Option *option : app.get_options())
    for (const std::string &name : option->get_lnames())
      names.push_back("--" + name);
  return names;
}

/// CLI11's error about the number of values; those about a missing value and about an option that
/// is given again are reworded.
std::string describe(const CLI::ArgumentMismatch &error) {
  std::string text(trimmed(error.what())), name = text.substr(0, text.find(':'));
  if (text.ends_with(" missing"))
    return name + " needs a value";
  if (text.find(": At Most 1 required") != text.npos)
    return name + " is given more than once";
  return text;
}

/// CLI11 writes `A excludes B`.
std::string describe(const CLI::ExcludesError &error) {
  constexpr std::string_view verb = " excludes ";
  std::string text(trimmed(error.what()));
  size_t at = text.find(verb);
  return at == text.npos
             ? text
             : text.substr(0, at) + " and " + text.substr(at + verb.size()) + " exclude each other";
}

bool isForCommand(const ForeignOption &option, const CLI::App &command) {
  std::string name = command.get_parent() ? command.get_name() : "";
  return option.commands.empty() ||
         std::find(option.commands.begin(), option.commands.end(), name) != option.commands.end();
}

/// Whether `word` is the option `name`, alone or, after a single dash, followed by a number:
/// -ngl99.
bool isOption(std::string_view word, std::string_view name) {
  return word == name || (word.starts_with(name) && !name.starts_with("--") &&
                          parseNumber<double>(std::string(word.substr(name.size()))));
}

/// The hint for an option of another program; empty if there is none.
std::string hintFor(const CLI::App &command, const std::string &name,
                    const std::vector<ForeignOption> &foreign) {
  for (const std::vector<ForeignOption> *list : {&foreign, &commonForeignOptions()})
    for (const ForeignOption &option : *list)
      if (isForCommand(option, command))
        for (const std::string &each : option.names)
          if (isOption(name, each))
            return option.why;
  return {};
}

/// Whether `option` accepts this value.
bool accepts(CLI::Option &option, std::string value) {
  // CLI11 has no count of validators.
  try {
    for (int i = 0;; ++i)
      if (!(*option.get_validator(i))(value).empty())
        return false;
  } catch (const CLI::OptionNotFound &) {
    return true;
  }
}

/// Reads the letters after a single dash: flags, then at most one option, whose value may follow.
OptionWord readLetters(CLI::App &command, const std::string &word) {
  OptionWord read;
  for (size_t i = 1; i < word.size(); ++i) {
    CLI::Option *option = command.get_option_no_throw({'-', word[i]});
    if (!option)
      return {};
    read.option = option;
    if (option->get_items_expected_max() == 0)
      continue;
    std::string value = word.substr(i + 1);
    read.takesNextWord = value.empty();
    return value.empty() || accepts(*option, value) ? read : OptionWord();
  }
  return read;
}

/// Visits the options among words.
class OptionWords {
public:
  OptionWords(CLI::App &app, const std::vector<ForeignOption> &foreign)
      : command(&app), foreign(foreign) {}

  /// Rewrites options for CLI11, which does not accept long names after a single dash.
  void rewrite(std::vector<std::string> &words) {
    visit(words, [&](size_t i, const OptionWord &read) {
      if (read.option && nameOf(words[i]) == "-sys")
        words[i].replace(0, nameOf(words[i]).size(), "--system");
      return true;
    });
  }

  /// Describes the first word that is not an option of its command; empty if there is none.
  std::string firstMistake(const std::vector<std::string> &words) {
    return first(words, [](const std::string & /*name*/) { return true; });
  }

  /// Of the words that CLI11 would read as other options: -np as -n with the value p, -hf as -h.
  std::string firstMisread(const std::vector<std::string> &words) {
    return first(words, [&](const std::string &name) {
      return !name.starts_with("--") && command->get_option_no_throw(name.substr(0, 2));
    });
  }

private:
  static std::string nameOf(const std::string &word) { return word.substr(0, word.find('=')); }

  /// Calls `visitor(i, read)` for each option until it returns false.
  template <typename Visitor> void visit(const std::vector<std::string> &words, Visitor visitor) {
    for (size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
      if (words[i].size() < 2 || words[i][0] != '-') {
        enter(words[i]);
        continue;
      }
      OptionWord read = readOption(*command, words[i], foreign);
      if (!visitor(i, read))
        return;
      // The word after an option is its value, even if it looks like an option.
      if (read.takesNextWord)
        ++i;
    }
  }

  template <typename Filter>
  std::string first(const std::vector<std::string> &words, Filter filter) {
    std::string what;
    visit(words, [&](size_t i, const OptionWord &read) {
      if (!read.option && filter(nameOf(words[i])))
        what = mistake(words[i], read);
      return what.empty();
    });
    return what;
  }

  /// Options after the name of a subcommand are the subcommand's.
  void enter(const std::string &word) {
    auto isNamed = [&](const CLI::App *sub) { return sub->get_name() == word; };
    if (auto found = command->get_subcommands(isNamed); !found.empty())
      command = found.front();
  }

  std::string mistake(const std::string &word, const OptionWord &read) const {
    std::string name = nameOf(word);
    if (!read.hint.empty())
      return name + ": " + read.hint;
    bool isLong = name.starts_with("--");
    if (!isLong && command->get_option_no_throw("-" + name))
      return unexpected({name}) + didYouMean("-" + name);
    // CLI11 says what is wrong with a value that is meant to be one.
    bool isValue = word.find_first_of("+-.0123456789", 2) == 2;
    if (!isLong && isValue && command->get_option_no_throw(name.substr(0, 2)))
      return {};
    return unexpected({name}) + didYouMean(closestWord(name, longNames(*command)));
  }

  CLI::App *command;
  const std::vector<ForeignOption> &foreign;
};
} // namespace

OptionWord readOption(CLI::App &command, const std::string &word,
                      const std::vector<ForeignOption> &foreign) {
  std::string name = word.substr(0, word.find('='));
  if (CLI::Option *option = command.get_option_no_throw(name == "-sys" ? "--system" : name))
    return {option, name == word && option->get_items_expected_min() > 0, ""};
  if (std::string hint = hintFor(command, name, foreign); !hint.empty())
    return {nullptr, false, hint};
  bool isLong = name.starts_with("--") || command.get_option_no_throw("-" + name);
  return isLong ? OptionWord() : readLetters(command, word);
}

Result<std::optional<std::string>> parseWords(CLI::App &app, std::vector<std::string> words,
                                              const std::vector<ForeignOption> &foreign) {
  OptionWords(app, foreign).rewrite(words);
  // Parsing finds the command that the error is about.
  std::string misread = OptionWords(app, foreign).firstMisread(words);
  std::vector<std::string> reversed(words.rbegin(), words.rend());
  std::string what;
  try {
    app.parse(reversed);
    if (!misread.empty())
      return Error{misread};
    return std::optional<std::string>();
  } catch (const CLI::Success &helpText) {
    if (!misread.empty())
      return Error{misread};
    std::ostringstream text;
    app.exit(helpText, text, text);
    return std::optional(text.str());
  } catch (const CLI::ExtrasError &) {
    what = unexpected(app.remaining(/*recurse=*/true));
  } catch (const CLI::ArgumentMismatch &error) {
    what = describe(error);
  } catch (const CLI::ExcludesError &error) {
    what = describe(error);
  } catch (const CLI::ParseError &error) {
    what = trimmed(error.what());
  }
  std::string mistake = OptionWords(app, foreign).firstMistake(words);
  return Error{mistake.empty() ? what : mistake};
}

std::string parsedCommand(const CLI::App &app) {
  std::string command = app.get_name();
  for (const CLI::App *sub = &app; !sub->get_subcommands().empty();) {
    sub = sub->get_subcommands().back();
    command += " " + sub->get_name();
  }
  return command;
}

std::string shellQuoted(std::string_view text) {
  return "'" + CLI::detail::find_and_replace(std::string(text), "'", "'\\''") + "'";
}

std::string usageMessage(std::string message, std::string_view command) {
  message += message.ends_with('?') ? " See " : "; see ";
  return message + std::string(command) + " --help";
}

} // namespace mica::rt
