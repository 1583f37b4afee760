#include "backends/runtime/commands/Cli.h"
#include "backends/runtime/abi/KernelStack.h"
#include "backends/runtime/commands/Bench.h"
#include "backends/runtime/commands/ChatCommand.h"
#include "backends/runtime/commands/Info.h"
#include "backends/runtime/commands/ParseArguments.h"
#include "backends/runtime/commands/ProgramCommands.h"
#include "backends/runtime/commands/RunCommand.h"
#include "backends/runtime/commands/Score.h"
#include "backends/runtime/engine/Session.h"
#include "backends/runtime/ranks/MpiRanks.h"
#include "backends/runtime/ranks/RankResources.h"
#include "backends/runtime/support/CommandLine.h"
#include "backends/runtime/support/CompletionScript.h"
#include "backends/runtime/support/Output.h"
#include "backends/runtime/support/Process.h"
#include "backends/runtime/support/ReadErrors.h"
#include "backends/runtime/support/Report.h"
#include "backends/runtime/support/Threads.h"

#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <sys/prctl.h>
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

/// OpenMPI's mpirun binds each of two ranks to one core by default. `areChosen`: the user has
/// chosen the number of threads.
void noteBinding(const RankResources &ranks, bool areChosen) {
  if (ranks.usable < ranks.available && (ranks.areOversubscribed || !areChosen))
    reportNote("mpirun has bound the ranks of this host to " + std::to_string(ranks.usable) +
               " of " + std::to_string(ranks.available) +
               " processors; with --bind-to none, they share all of them");
}

/// Runs a command that needs the model, or what rank 0 requires if this is another rank. `loaded`
/// is set when the model has been loaded.
Status runModel(const Device &device, program::ProgramFile file, const Arguments &arguments,
                Communicator *ranks, bool &loaded) {
  Resources resources(arguments.threads ? *arguments.threads : defaultThreads());
  if (ranks) {
    Result<RankResources> ofRank = resourcesOfRank(*ranks, arguments.threads);
    if (!ofRank)
      return ofRank.error();
    resources = *ofRank;
    ranks->setOversubscribed(ofRank->areOversubscribed);
    if (ranks->rank() == 0)
      noteBinding(*ofRank, arguments.threads.has_value());
  }
  auto load = [&]() -> Result<std::unique_ptr<Model>> {
    Result<std::unique_ptr<Model>> model =
        Model::load(std::move(file), device, resources,
                    arguments.hugePages ? Pages::Huge : Pages::Small, ranks);
    if (model && arguments.verifyWeights)
      if (Status sound = (*model)->verifyWeights(); !sound)
        return sound.error();
    loaded = bool(model);
    return model;
  };
  bool follows = ranks && ranks->rank() > 0;
  if (arguments.command == Arguments::Command::Serve && !follows)
    return serveCommand(load, arguments.serve);
  Result<std::unique_ptr<Model>> model = load();
  if (!model)
    return model.error();
  if (follows)
    return Session::follow(**model);
  if (arguments.command == Arguments::Command::Bench)
    return benchCommand(**model, device, arguments.bench);
  if (arguments.command == Arguments::Command::Chat)
    return chatCommand(**model, arguments.chat);
  if (arguments.command == Arguments::Command::Score)
    return scoreCommand(**model, arguments.score);
  return runCommand(**model, arguments.run);
}

/// Runs a command on one of several ranks. If a rank fails, all end.
Status runOnRanks(const Device &device, program::ProgramFile file, const Manifest &manifest,
                  const Arguments &arguments) {
  Result<std::unique_ptr<MpiRanks>> started = MpiRanks::start();
  if (!started)
    return started.error();
  MpiRanks &ranks = **started;
  // The messages of rank 0 are those of one process.
  if (ranks.rank() > 0)
    setProgramName(ranks.describe(ranks.rank()));
  nameForOutOfMemory(ranks.describe(ranks.rank()));
  if (Status known = checkRanks(file, manifest, ranks); !known) {
    // All ranks have this error. It is reported before mpirun ends the ranks because one has
    // failed.
    if (ranks.rank() == 0)
      reportError(known.error().message);
    ranks.finish(EXIT_FAILURE);
    return Error{""};
  }
  bool loaded = false;
  Status done = runModel(device, std::move(file), arguments, &ranks, loaded);
  // A rank that has not loaded the model does not tell the others to end, nor is it told.
  if (!done && (!loaded || ranks.rank() > 0))
    ranks.fail(done.error());
  ranks.finish(done ? EXIT_SUCCESS : EXIT_FAILURE);
  return done;
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
  if (std::optional<int64_t> rank = rankFromEnvironment()) {
    Result<Manifest> manifest = readManifest(*file);
    if (!manifest)
      return manifest.error();
    if (manifest->ranks > 1)
      return runOnRanks(device, *std::move(file), *manifest, arguments);
    // Replicas, or a mistake.
    if (int64_t count = rankCountFromEnvironment(); count > 1 && *rank == 0)
      reportNote("each of " + std::to_string(count) +
                 " processes runs the whole model; compile it with --shard tensor=" +
                 std::to_string(count) + " for parts of it");
  }
  bool loaded = false;
  return runModel(device, *std::move(file), arguments, nullptr, loaded);
}

/// The rank of this process of a program for several ranks that mpirun has started. A program for
/// one process ignores mpirun: it may have been started by a script of a job.
std::optional<int64_t> rankOf(const char *program) {
  std::optional<int64_t> rank = rankFromEnvironment();
  if (!rank)
    return std::nullopt;
  Result<program::ProgramFile> file = program::ProgramFile::open(program);
  if (!file)
    return std::nullopt;
  Result<Manifest> manifest = readManifest(*file);
  return manifest && manifest->ranks > 1 ? rank : std::nullopt;
}

void redirect(int stream, const char *file) {
  int opened = open(file, O_RDWR | O_CLOEXEC);
  if (opened >= 0)
    dup2(opened, stream);
  if (opened >= 0)
    close(opened);
}

/// The process does not outlive mpirun, or what mpirun has started on this host.
void endWithParent(int signal) {
  pid_t parent = getppid();
  ::prctl(PR_SET_PDEATHSIG, signal);
  if (getppid() != parent)
    _exit(1); // it has ended before
}

/// Prepares a rank that follows rank 0, which alone reads, writes and handles signals.
void becomeFollower() {
  redirect(STDIN_FILENO, "/dev/null");
  redirect(STDOUT_FILENO, "/dev/null");
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGTERM, SIG_IGN);
  endWithParent(SIGKILL);
}

/// Parses the arguments without messages, which rank 0 writes.
Result<Parsed> parseQuietly(const char *program, int argc, const char *const *argv) {
  int messages = dup(STDERR_FILENO);
  redirect(STDERR_FILENO, "/dev/null");
  Result<Parsed> parsed = parse(program, argc, argv);
  dup2(messages, STDERR_FILENO);
  close(messages);
  return parsed;
}
} // namespace

int runProgram(const Device &device, const char *program, int argc, const char *const *argv) {
  setProgramName(argc > 0 ? argv[0] : program);
  setUpSignals();
  std::optional<int64_t> rank = rankOf(program);
  bool follows = rank.value_or(0) > 0;
  if (follows)
    becomeFollower();
  else if (rank)
    endWithParent(SIGTERM);
  Result<Parsed> parsed = follows ? parseQuietly(program, argc, argv) : parse(program, argc, argv);
  if (parsed && parsed->exit)
    return *parsed->exit;
  if (follows && !parsed)
    return 1;
  auto run = [&](const Arguments &arguments) {
    return arguments.command == Arguments::Command::Completion
               ? printCompletion(argc > 0 ? argv[0] : program, arguments.completionShell)
               : dispatch(device, program, arguments);
  };
  Status done = parsed ? run(parsed->arguments) : Status(parsed.error());
  if (!done) {
    if (!done.error().message.empty()) // otherwise it has been reported
      reportError(done.error().message);
    if (parsed && rank)
      MpiRanks::abandon();
    return 1;
  }
  return 0;
}

} // namespace mica::rt
