// The format of --help.
#ifndef MICA_BACKENDS_RUNTIME_SUPPORT_HELPFORMATTER_H
#define MICA_BACKENDS_RUNTIME_SUPPORT_HELPFORMATTER_H

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>

namespace mica::rt {

/// Formats --help in at most 80 columns, with types, defaults and ranges
/// in one form. Subcommands inherit it from the command that they are added to.
std::shared_ptr<CLI::FormatterBase> helpFormatter();

/// Adds the options that `add` adds to `app` under `heading` in --help.
void addGroup(CLI::App &app, const char *heading, const std::function<void()> &add);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_SUPPORT_HELPFORMATTER_H
