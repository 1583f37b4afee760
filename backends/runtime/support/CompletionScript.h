// Shell scripts that complete command lines.
#ifndef MICA_BACKENDS_RUNTIME_SUPPORT_COMPLETIONSCRIPT_H
#define MICA_BACKENDS_RUNTIME_SUPPORT_COMPLETIONSCRIPT_H

#include "backends/runtime/support/CommandSpec.h"

#include <optional>

namespace mica::rt {

enum class Shell { Bash, Zsh, Fish };

/// "bash", "zsh" or "fish".
std::optional<Shell> shellNamed(std::string_view name);
std::string_view nameOf(Shell shell);

/// A script that completes commands, options and values of the command `spec.name`.
std::string completionScript(const CommandSpec &spec, Shell shell);

/// Adds the command `completion`, which stores the name of a shell in `shell`.
CLI::App *addCompletionCommand(CLI::App &app, std::string &shell);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_SUPPORT_COMPLETIONSCRIPT_H
