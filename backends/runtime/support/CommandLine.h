// Shared by all command lines of Mica: parsing, and errors about invalid usage.
#ifndef MICA_BACKENDS_RUNTIME_SUPPORT_COMMANDLINE_H
#define MICA_BACKENDS_RUNTIME_SUPPORT_COMMANDLINE_H

#include "backends/runtime/support/Result.h"

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mica::rt {

/// The environment variable that contains the command typed by the user, if a program was started
/// by another command; --help and usage errors show it.
inline constexpr const char *commandVariable = "MICA_COMMAND";

/// An option of other programs that users may try, with a hint.
struct ForeignOption {
  std::vector<std::string> names; ///< "-c", "--ctx-size"
  std::string why;                ///< "set the context length with `mica compile --max-seq N`"
  std::vector<std::string> commands = {}; ///< "bench"; "": without a command; none: for all
};

/// A word that begins with a dash, interpreted as an option of a command.
struct OptionWord {
  const CLI::Option *option = nullptr; ///< the last one if the word contains several; none: unknown
  bool takesNextWord = false;          ///< as its value
  std::string hint;                    ///< if it is an option of other programs
};
OptionWord readOption(CLI::App &command, const std::string &word,
                      const std::vector<ForeignOption> &foreign);

/// Parses `words` (without the program's name). Returns the text of --help or --version if
/// requested. Errors describe invalid usage in one line; an unknown option is reported with the
/// closest known one, or with its hint in `foreign`. -sys is --system. Letters after a single dash
/// are flags, or an option and a valid value: -np is unexpected, not -n with the value p.
Result<std::optional<std::string>> parseWords(CLI::App &app, std::vector<std::string> words,
                                              const std::vector<ForeignOption> &foreign = {});

/// The command parsed last: "mica compile", or the name of `app` without a subcommand.
std::string parsedCommand(const CLI::App &app);

/// `text` quoted as one word for bash, zsh and sh.
std::string shellQuoted(std::string_view text);

/// `message` with a reference to the help: "MESSAGE; see COMMAND --help".
std::string usageMessage(std::string message, std::string_view command);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_SUPPORT_COMMANDLINE_H
