// A command line as data, from which --help, completion scripts, man pages and docs/cli.md are
// generated.
#ifndef MICA_BACKENDS_RUNTIME_SUPPORT_COMMANDSPEC_H
#define MICA_BACKENDS_RUNTIME_SUPPORT_COMMANDSPEC_H

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace mica::rt {

/// An option or a positional argument.
struct OptionSpec {
  enum class Values { None, Any, File, Folder, Choice };

  std::vector<std::string> names;   ///< "-n", "--n-predict"; empty: positional
  std::string value;                ///< "N", "FILE"; empty: a flag
  Values values = Values::None;     ///< how the value is completed
  std::vector<std::string> choices; ///< for Values::Choice
  std::string help;                 ///< including default and limits
  std::string group;                ///< its heading in --help

  bool isPositional() const { return names.empty(); }
};

struct CommandSpec {
  std::string name, description, footer;
  std::vector<OptionSpec> options;   ///< including positional ones
  std::vector<CommandSpec> commands; ///< without hidden ones
};

OptionSpec describeOption(const CLI::Option &option);
CommandSpec describeCommand(const CLI::App &app);

/// The first clause of a help text.
std::string summaryOf(std::string_view help);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_SUPPORT_COMMANDSPEC_H
