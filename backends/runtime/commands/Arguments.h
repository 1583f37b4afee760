// The command line of a compiled program, parsed and checked.
#ifndef MICA_BACKENDS_RUNTIME_COMMANDS_ARGUMENTS_H
#define MICA_BACKENDS_RUNTIME_COMMANDS_ARGUMENTS_H

#include "backends/runtime/engine/GenerationSettings.h"
#include "backends/runtime/serve/ServeCommand.h"
#include "backends/runtime/text/ChatTemplate.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
} // namespace CLI

namespace mica::rt {

struct RunArguments {
  std::optional<std::string> prompt, file; ///< -p, -f
  std::vector<Tokens> tokens;              ///< --tokens, one per sequence
  GenerationSettings settings;
  std::optional<int64_t> prefillChunk; ///< see prefillChunkSize
  std::optional<int64_t> batch;        ///< --batch: `file` holds requests, so many at once
  std::optional<std::string> output;   ///< -o, with --batch
  bool printTokens = false;
  std::optional<std::string> logits;
  std::optional<int64_t> logprobs; ///< --logprobs, with --json
  bool json = false;
  bool verbose = false;
  bool chat = false;                       ///< --chat: the prompt goes through the chat template
  std::optional<std::string> system;       ///< --system, with --chat
  std::optional<std::string> templateFile; ///< --chat-template
  ChatTemplate::Options chatTemplate;      ///< --tools, --special
};

struct ChatArguments {
  RunArguments run;                   ///< Sampling, --system, and the chat template.
  std::optional<std::string> history; ///< --history: a file
  bool contextShift = false;          ///< --context-shift: see Conversation::Options
  bool json = false;
};

struct BenchArguments {
  std::vector<int64_t> prompts, gens, batches;
  int64_t depth = 0;
  int64_t repeat = 5;
  std::optional<int64_t> prefillChunk; ///< see prefillChunkSize
  int64_t lookup = 0;
  Tokens text; ///< What tests with lookup generate, after its first `depth` ids; empty: a period.
  bool profile = false;
  std::optional<std::string> trace, profileJson; ///< files
  std::optional<double> peakGb, peakGflop;       ///< Limits for the profile; measured if absent.
  bool json = false;
};

struct ScoreArguments {
  std::optional<int64_t> prefillChunk;   ///< see prefillChunkSize
  std::optional<std::string> probes;     ///< a file for what probes see
  std::optional<std::string> columnSums; ///< a file for the sums of squares of what they see
  bool asDecode = false;                 ///< Compute rows as in decoding instead of as in prefill.
};

struct InfoArguments {
  bool json = false, check = false, licenses = false;
};

struct Arguments {
  enum class Command { Run, Chat, Serve, Bench, Info, Score, Completion } command = Command::Run;
  RunArguments run;
  ChatArguments chat;
  ServeArguments serve;
  BenchArguments bench;
  InfoArguments info;
  ScoreArguments score;
  std::string completionShell; ///< the argument of `completion`
  std::optional<unsigned> threads;
  bool hugePages = false;
  bool verifyWeights = false;
};

/// The result of parsing: a command, or an exit status
/// if help, a version or an error line has been written.
struct Parsed {
  std::optional<int> exit;
  Arguments arguments;
};

/// Adds the options and commands of a program to
/// `app`, which has the program's name; parsing stores them in `arguments`.
void addProgramCommands(CLI::App &app, Arguments &arguments);

Parsed parseArguments(int argc, const char *const *argv);

/// Sets a generation setting from text, as its option does; `name` is that
/// of the option without leading dashes. Errors: no such setting, or an invalid value.
Status changeSetting(GenerationSettings &settings, std::string name, const std::string &value);

/// "ID=B" of --logit-bias. Errors say what is expected.
Result<LogitBias> parseLogitBias(const std::string &text);

/// "1,2,3" as tokens; spaces around numbers are allowed. Errors name the entry.
Result<Tokens> parseTokenList(const std::string &list);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_COMMANDS_ARGUMENTS_H
