#include "backends/runtime/commands/Cli.h"
#include "backends/runtime/abi/KernelStack.h"
#include "backends/runtime/commands/Bench.h"
#include "backends/runtime/commands/ChatCommand.h"
#include "backends/runtime/commands/Info.h"
#include "backends/runtime/commands/ParseArguments.h"
#include "backends/runtime/commands/ProgramCommands.h"
#include "backends/runtime/commands/RunCommand.h"
#include "backends/runtime/commands/Score.h"
#include "backends/runtime/support/CommandLine.h"
#include "backends/runtime/support/CompletionScript.h"
#include "backends/runtime/support/Output.h"
#include "backends/runtime/support/ReadErrors.h"
#include "backends/runtime/support/Report.h"
#include "backends/runtime/support/Threads.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <unistd.h>

namespace mica::rt {

namespace {
void setUpSignals() {
  // A closed pipe ends the program silently, even if a parent process ignores the signal.
  std::signal(SIGPIPE, SIG_DFL);
  // Weights are memory-mapped.
  handleReadErrors();
}

/// Without arguments on a terminal, a program starts a chat if its model has a chat template;
/// otherwise it prints its help.
Result<const char *> argumentForNone(const char *program) {
  Result<program::ProgramFile> file = program::ProgramFile::open(program);
  if (!file)
    return file.error();
  Result<Manifest> manifest = readManifest(*file);
  if (!manifest)
    return manifest.error();
  return manifest->chat ? "chat" : "--help";
}

Result<Parsed> parse(const char *program, int argc, const char *const *argv) {
  if (argc != 1 || !isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
    return parseArguments(argc, argv);
  Result<const char *> argument = argumentForNone(program);
  if (!argument)
    return argument.error();
  const char *words[] = {argv[0], *argument};
  return parseArguments(2, words);
}

/// Prints a completion script under the file name of the program.
Status printCompletion(const char *command, const std::string &shell) {
  if (std::getenv(commandVariable))
    return Error{"`mica completion " + shell + "` completes `mica run` as well; use that"};
  CLI::App app("", std::filesystem::path(command).filename());
  Arguments arguments;
  addProgramCommands(app, arguments);
  return writeOut(completionScript(describeCommand(app), *shellNamed(shell)));
}

Status dispatch(const Device &device, const char *program, const Arguments &arguments) {
  Result<program::ProgramFile> file = program::ProgramFile::open(program);
  if (!file)
    return file.error();
  if (arguments.command == Arguments::Command::Info)
    return infoCommand(
        *file,
        [&](const std::string &target, const std::vector<std::string> &features) {
          return device.check(target, features);
        },
        arguments.info);
  // Also applies to the threads of the model.
  if (Status stacks = ensureStackSize(threadStackBytes); !stacks)
    return stacks;
  unsigned threads = arguments.threads ? *arguments.threads : defaultThreads();
  auto load = [&]() -> Result<std::unique_ptr<Model>> {
    Result<std::unique_ptr<Model>> model = Model::load(
        *std::move(file), device, threads, arguments.hugePages ? Pages::Huge : Pages::Small);
    if (model && arguments.verifyWeights)
      if (Status sound = (*model)->verifyWeights(); !sound)
        return sound.error();
    return model;
  };
  if (arguments.command == Arguments::Command::Serve)
    return serveCommand(load, arguments.serve);
  Result<std::unique_ptr<Model>> model = load();
  if (!model)
    return model.error();
  if (arguments.command == Arguments::Command::Bench)
    return benchCommand(**model, device, arguments.bench);
  if (arguments.command == Arguments::Command::Chat)
    return chatCommand(**model, arguments.chat);
  if (arguments.command == Arguments::Command::Score)
    return scoreCommand(**model, arguments.score);
  return runCommand(**model, arguments.run);
}
} // namespace

int runProgram(const Device &device, const char *program, int argc, const char *const *argv) {
  setProgramName(argc > 0 ? argv[0] : program);
  setUpSignals();
  Result<Parsed> parsed = parse(program, argc, argv);
  if (parsed && parsed->exit)
    return *parsed->exit;
  auto run = [&](const Arguments &arguments) {
    return arguments.command == Arguments::Command::Completion
               ? printCompletion(argc > 0 ? argv[0] : program, arguments.completionShell)
               : dispatch(device, program, arguments);
  };
  Status done = parsed ? run(parsed->arguments) : Status(parsed.error());
  if (!done) {
    if (!done.error().message.empty()) // otherwise it has been reported
      reportError(done.error().message);
    return 1;
  }
  return 0;
}

} // namespace mica::rt
