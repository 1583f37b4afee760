#include "backends/runtime/support/CommandLine.h"
#include "backends/runtime/support/CommandSpec.h"
#include "backends/runtime/support/Report.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>

namespace mica::rt {

namespace {
/// `text` as a number; nothing if it is not one or is too large.
template <typename T> std::optional<T> parsed(const std::string &text) {
  T value;
  auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  bool all = failure == std::errc() && end == text.data() + text.size();
  return all ? std::optional(value) : std::nullopt;
}

std::string shortest(double value) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof text, value).ptr);
}

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

/// A word in the form that is compared: lower case, without leading dashes and underscores.
std::string folded(std::string_view word) {
  word.remove_prefix(std::min(word.find_first_not_of('-'), word.size()));
  std::string out;
  for (char c : word)
    out += c == '_' ? '-' : c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

/// The number of insertions, deletions, replacements and swaps of neighbors that turn `a` into `b`.
size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> cost(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i)
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        cost[i][j] = i + j;
        continue;
      }
      size_t replaced = cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      cost[i][j] = std::min({replaced, cost[i - 1][j] + 1, cost[i][j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  return cost[a.size()][b.size()];
}

constexpr size_t kHelpWidth = 80, kHelpIndent = 26;

/// Appends the words of `text` to lines of at most kHelpWidth columns. The first line continues
/// `out`, the others begin with `indent` spaces.
void appendWords(std::string &out, std::string_view text, size_t indent) {
  size_t column = out.size() - (out.rfind('\n') == out.npos ? 0 : out.rfind('\n') + 1);
  bool isFirst = true;
  for (size_t at = text.find_first_not_of(' '); at < text.size();) {
    size_t end = std::min(text.find(' ', at), text.size());
    std::string_view word = text.substr(at, end - at);
    if (!isFirst && column + 1 + word.size() > kHelpWidth) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (!isFirst) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    isFirst = false;
    at = std::min(text.find_first_not_of(' ', end), text.size());
  }
  out += '\n';
}

/// Wraps each line of text and keeps its indentation.
std::string wrapped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    size_t indent = std::min(line.find_first_not_of(' '), line.size());
    out += std::string(indent, ' ');
    appendWords(out, line, indent);
  }
  return out;
}

class HelpFormatter final : public CLI::Formatter {
public:
  std::string make_option(const CLI::Option *option, bool isPositional) const override {
    std::string name =
        CLI::detail::find_and_replace(make_option_name(option, isPositional), ",", ", ");
    if (!isPositional)
      name += make_option_opts(option);
    return entry(name, describeOption(*option).help);
  }
  std::string make_option_opts(const CLI::Option *option) const override {
    std::string value = describeOption(*option).value;
    return value.empty() ? value : " " + value;
  }
  std::string make_subcommand(const CLI::App *sub) const override {
    return entry(sub->get_name(), sub->get_description());
  }
  std::string make_description(const CLI::App *app) const override {
    return wrapped(app->get_description());
  }
  /// CLI11 separates groups by two empty lines.
  std::string make_help(const CLI::App *app, std::string name,
                        CLI::AppFormatMode mode) const override {
    return CLI::detail::find_and_replace(CLI::Formatter::make_help(app, std::move(name), mode),
                                         "\n\n\n", "\n\n");
  }
  std::string make_footer(const CLI::App *app) const override { return wrapped(app->get_footer()); }

private:
  static std::string entry(const std::string &name, const std::string &text) {
    std::string out = "  " + name;
    if (out.size() + 2 > kHelpIndent)
      out += "\n" + std::string(kHelpIndent, ' ');
    else
      out.resize(kHelpIndent, ' ');
    appendWords(out, text, kHelpIndent);
    return out;
  }
};

/// For all commands: options of programs that run on GPUs.
const std::vector<ForeignOption> &commonForeignOptions() {
  static const std::vector<ForeignOption> options = {
      {{"-ngl", "--gpu-layers", "--n-gpu-layers", "-dev", "--device"},
       "there is no GPU backend; leave it out"}};
  return options;
}

std::vector<std::string> longNames(const CLI::App &app) {
  std::vector<std::string> names;
  for (const CLI::Option *option : app.get_options())
    for (const std::string &name : option->get_lnames())
      names.push_back("--" + name);
  return names;
}

/// CLI11's error about the number of values; one about a missing value is reworded.
std::string describe(const CLI::ArgumentMismatch &error) {
  std::string_view text = trimmed(error.what());
  return text.ends_with(" missing") ? std::string(text.substr(0, text.find(':'))) + " needs a value"
                                    : std::string(text);
}

/// Visits the options among words that their command does not have.
class UnknownOptions {
public:
  UnknownOptions(const CLI::App &app, const std::vector<ForeignOption> &foreign)
      : command(&app), foreign(foreign) {}

  /// Rewrites options for CLI11, which does not accept long names after a single dash.
  void rewrite(std::vector<std::string> &words) {
    visit(words, [&](size_t i, const std::string &name) {
      if (name == "-sys" && command->get_option_no_throw("--system"))
        words[i].replace(0, name.size(), "--system");
      return true;
    });
  }

  /// Describes the first of them; empty if there is none.
  std::string firstMistake(const std::vector<std::string> &words) {
    std::string what;
    visit(words, [&](size_t /*i*/, const std::string &name) {
      what = mistake(name);
      return what.empty();
    });
    return what;
  }

private:
  /// Calls `visitor(i, name)` for each until it returns false: `name` is words[i] without a value.
  template <typename Visitor> void visit(const std::vector<std::string> &words, Visitor visitor) {
    for (size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
      const std::string &word = words[i];
      if (word.size() < 2 || word[0] != '-') {
        enter(word);
        continue;
      }
      size_t equals = word.find('=');
      std::string name = word.substr(0, equals);
      if (!command->get_option_no_throw(name) && !visitor(i, name))
        return;
      // The word after an option is its value, even if it looks like an option.
      const CLI::Option *option = command->get_option_no_throw(word.substr(0, equals));
      if (option && equals == word.npos && option->get_items_expected_min() > 0)
        ++i;
    }
  }

  /// Options after the name of a subcommand are the subcommand's.
  void enter(const std::string &word) {
    auto isNamed = [&](const CLI::App *sub) { return sub->get_name() == word; };
    if (auto found = command->get_subcommands(isNamed); !found.empty())
      command = found.front();
  }

  std::string mistake(const std::string &name) const {
    for (const std::vector<ForeignOption> *list : {&foreign, &commonForeignOptions()})
      for (const ForeignOption &option : *list)
        if (std::find(option.names.begin(), option.names.end(), name) != option.names.end())
          return name + ": " + option.why;
    bool isLong = name.starts_with("--");
    if (!isLong && command->get_option_no_throw("-" + name))
      return unexpected({name}) + didYouMean("-" + name);
    // A short option with its value, or several flags.
    if (!isLong && command->get_option_no_throw(name.substr(0, 2)))
      return {};
    return unexpected({name}) + didYouMean(closestWord(name, longNames(*command)));
  }

  const CLI::App *command;
  const std::vector<ForeignOption> &foreign;
};
} // namespace

CLI::Validator wholeNumber(uint64_t least, uint64_t most) {
  bool bounded = most < uint64_t(std::numeric_limits<int64_t>::max());
  std::string range =
      "from " + std::to_string(least) + (bounded ? " to " + std::to_string(most) : "");
  // --help omits an upper bound that is never reached.
  std::string shown = most < uint64_t(std::numeric_limits<int32_t>::max()) ? range
                      : least > 0 ? "from " + std::to_string(least)
                                  : "";
  return CLI::Validator(
      [=](std::string &text) -> std::string {
        std::optional<uint64_t> value = parsed<uint64_t>(text);
        if (!value || *value < least || *value > most)
          return "'" + printable(text) + "' is not a whole number " + range;
        text = std::to_string(*value); // without leading zeros, which CLI11 interprets as octal
        return {};
      },
      shown);
}

CLI::Validator numberBetween(double least, double most) {
  std::string range = "from " + shortest(least) + " to " + shortest(most);
  return CLI::Validator(
      [=](const std::string &text) {
        std::optional<double> value = parsed<double>(text);
        bool good = value && std::isfinite(*value) && *value >= least && *value <= most;
        return good ? std::string() : "'" + printable(text) + "' is not a number " + range;
      },
      range);
}

CLI::Validator oneOf(std::vector<std::string> known) {
  std::string listed = "{" + CLI::detail::join(known, ",") + "}"; // read by describeOption
  return CLI::Validator(
      [known = std::move(known)](const std::string &text) -> std::string {
        if (std::find(known.begin(), known.end(), text) != known.end())
          return {};
        std::string closest = closestWord(text, known);
        return "'" + printable(text) + "' is not one of " + CLI::detail::join(known, ", ") +
               didYouMean(closest);
      },
      listed);
}

Result<std::optional<std::string>> parseWords(CLI::App &app, std::vector<std::string> words,
                                              const std::vector<ForeignOption> &foreign) {
  UnknownOptions(app, foreign).rewrite(words);
  std::vector<std::string> reversed(words.rbegin(), words.rend());
  std::string what;
  try {
    app.parse(reversed);
    return std::optional<std::string>();
  } catch (const CLI::Success &helpText) {
    std::ostringstream text;
    app.exit(helpText, text, text);
    return std::optional(text.str());
  } catch (const CLI::ExtrasError &) {
    what = unexpected(app.remaining(/*recurse=*/true));
  } catch (const CLI::ArgumentMismatch &error) {
    what = describe(error);
  } catch (const CLI::ParseError &error) {
    what = trimmed(error.what());
  }
  std::string mistake = UnknownOptions(app, foreign).firstMistake(words);
  return Error{mistake.empty() ? what : mistake};
}

std::shared_ptr<CLI::FormatterBase> helpFormatter() { return std::make_shared<HelpFormatter>(); }

void addGroup(CLI::App &app, const char *heading, const std::function<void()> &add) {
  size_t before = app.get_options().size();
  add();
  std::vector<CLI::Option *> options = app.get_options();
  for (size_t i = before; i < options.size(); ++i)
    options[i]->group(heading);
}

std::string parsedCommand(const CLI::App &app) {
  std::string command = app.get_name();
  for (const CLI::App *sub = &app; !sub->get_subcommands().empty();) {
    sub = sub->get_subcommands().back();
    command += " " + sub->get_name();
  }
  return command;
}

std::string closestWord(std::string_view word, const std::vector<std::string> &known) {
  std::string wanted = folded(word), closest;
  size_t least = (wanted.size() + 1) / 3 + 1;
  for (const std::string &candidate : known)
    if (size_t distance = editDistance(wanted, folded(candidate)); distance < least) {
      least = distance;
      closest = candidate;
    }
  if (!closest.empty() || wanted.size() < 3)
    return closest;
  auto begins = [&](const std::string &candidate) { return folded(candidate).starts_with(wanted); };
  auto found = std::find_if(known.begin(), known.end(), begins);
  return found == known.end() ? "" : *found;
}

std::string didYouMean(std::string_view word) {
  return word.empty() ? "" : "; did you mean '" + std::string(word) + "'?";
}

std::string shellQuoted(std::string_view text) {
  return "'" + CLI::detail::find_and_replace(std::string(text), "'", "'\\''") + "'";
}

std::string usageMessage(std::string message, std::string_view command) {
  message += message.ends_with('?') ? " See " : "; see ";
  return message + std::string(command) + " --help";
}

} // namespace mica::rt
