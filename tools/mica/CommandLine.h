//===- CommandLine.h - the options of mica ----------------------------------===//
#ifndef MICA_TOOLS_MICA_COMMANDLINE_H
#define MICA_TOOLS_MICA_COMMANDLINE_H

#include "tools/mica/Commands.h"

namespace mica::tool {

/// The arguments of all commands.
struct ToolArguments {
  CompileArguments compile;
  RunArguments run;
  InspectArguments inspect;
  ExploreArguments explore;
  DiffArguments diff;
  EvalArguments eval;
  VerifyArguments verify;
  PullArguments pull;
  ListArguments list;
  RemoveArguments remove;
  std::string completionShell;
  ReferenceArguments reference;
};

/// Adds all commands to `app`, which has the tool's name; parsing stores their arguments.
void addCommands(CLI::App &app, ToolArguments &arguments);

} // namespace mica::tool

#endif // MICA_TOOLS_MICA_COMMANDLINE_H
