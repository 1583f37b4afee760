//===- CommandLine.h - the options of mica --------------------------------===//
#ifndef MICA_TOOLS_MICA_COMMANDLINE_H
#define MICA_TOOLS_MICA_COMMANDLINE_H

#include "tools/mica/Arguments.h"

namespace mica::rt {
struct ForeignOption;
}

namespace mica::tool {

/// Adds all commands to `app`, which has the tool's name; parsing stores their arguments.
void addCommands(CLI::App &app, ToolArguments &arguments);

/// Hints for options of llama.cpp that have another name in `mica` or are not supported.
const std::vector<rt::ForeignOption> &foreignOptions();

} // namespace mica::tool

#endif // MICA_TOOLS_MICA_COMMANDLINE_H
