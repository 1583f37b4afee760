#include "backends/runtime/support/HelpFormatter.h"
#include "backends/runtime/support/CommandSpec.h"

#include <algorithm>

namespace mica::rt {

namespace {
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
  HelpFormatter() {
    label("Positionals", "Arguments");
    label("SUBCOMMAND", "COMMAND");
  }
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
  std::string make_subcommands(const CLI::App *app, CLI::AppFormatMode mode) const override {
    return CLI::detail::find_and_replace(CLI::Formatter::make_subcommands(app, mode),
                                         "\nSubcommands:\n", "\nCommands:\n");
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
} // namespace

std::shared_ptr<CLI::FormatterBase> helpFormatter() { return std::make_shared<HelpFormatter>(); }

void addGroup(CLI::App &app, const char *heading, const std::function<void()> &add) {
  size_t before = app.get_options().size();
  add();
  std::vector<CLI::Option *> options = app.get_options();
  for (size_t i = before; i < options.size(); ++i)
    options[i]->group(heading);
}

} // namespace mica::rt
