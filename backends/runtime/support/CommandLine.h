// Shared by all command lines of Mica: numbers, help, invalid usage.
#ifndef MICA_BACKENDS_RUNTIME_SUPPORT_COMMANDLINE_H
#define MICA_BACKENDS_RUNTIME_SUPPORT_COMMANDLINE_H

#include "backends/runtime/support/Result.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mica::rt {

/// Accepts decimal digits with a value in [least, most], for `transform`. CLI11's own conversion
/// accepts octal and hexadecimal numbers, and wraps negative ones.
CLI::Validator wholeNumber(uint64_t least, uint64_t most = std::numeric_limits<int64_t>::max());

/// Accepts finite decimal numbers in [least, most].
CLI::Validator numberBetween(double least, double most);

/// Accepts the words `known`; the error for another word suggests the closest one.
CLI::Validator oneOf(std::vector<std::string> known);

/// The environment variable that contains the command typed by the user, if a program was started
/// by another command; --help and usage errors show it.
inline constexpr const char *commandVariable = "MICA_COMMAND";

/// An option of other programs that users may try, with a hint.
struct ForeignOption {
  std::vector<std::string> names; ///< "-c", "--ctx-size"
  std::string why;                ///< "set the context length with `mica compile --max-seq N`"
};

/// Parses `words` (without the program's name). Returns the text of --help or --version if
/// requested. Errors describe invalid usage in one line; an unknown option is reported with the
/// closest known one, or with its hint in `foreign`. -sys is --system.
Result<std::optional<std::string>> parseWords(CLI::App &app, std::vector<std::string> words,
                                              const std::vector<ForeignOption> &foreign = {});

/// Formats --help in at most 80 columns, with types, defaults and ranges
/// in one form. Subcommands inherit it from the command that they are added to.
std::shared_ptr<CLI::FormatterBase> helpFormatter();

/// Adds the options that `add` adds to `app` under `heading` in --help.
void addGroup(CLI::App &app, const char *heading, const std::function<void()> &add);

/// The command parsed last: "mica compile", or the name of `app` without a subcommand.
std::string parsedCommand(const CLI::App &app);

/// The word of `known` that `word` is most likely a typo of;
/// empty if none is close. Ignores case, and the difference between - and _.
std::string closestWord(std::string_view word, const std::vector<std::string> &known);

/// "; did you mean 'WORD'?", or nothing for an empty word.
std::string didYouMean(std::string_view word);

/// `text` quoted as one word for bash, zsh and sh.
std::string shellQuoted(std::string_view text);

/// `message` with a reference to the help: "MESSAGE; see COMMAND --help".
std::string usageMessage(std::string message, std::string_view command);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_SUPPORT_COMMANDLINE_H
