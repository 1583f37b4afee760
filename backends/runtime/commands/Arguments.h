// The arguments of all commands of a program.
#ifndef MICA_BACKENDS_RUNTIME_COMMANDS_ARGUMENTS_H
#define MICA_BACKENDS_RUNTIME_COMMANDS_ARGUMENTS_H

#include "backends/runtime/engine/GenerationSettings.h"
#include "backends/runtime/serve/ServeCommand.h"
#include "backends/runtime/text/ChatTemplate.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mica::rt {

struct RunArguments {
  std::optional<std::string> prompt, file; ///< -p, -f
  std::vector<Tokens> tokens;              ///< --tokens, one per sequence
  GenerationSettings settings;
  std::optional<int64_t> prefillChunk;     ///< see prefillChunkSize
  std::optional<uint64_t> checkpointBytes; ///< of chat; see checkpointBudget
  std::optional<int64_t> batch;            ///< --batch: `file` holds requests, so many at once
  std::optional<std::string> output;       ///< -o, with --batch
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
  int64_t lookup = 0, mtp = 0;
  Tokens text; ///< What tests with lookup generate, after its first `depth` ids; empty: a period.
  bool profile = false;
  std::optional<std::string> trace, profileJson; ///< files
  std::optional<double> peakGb, peakGflop;       ///< Limits for the profile; measured if absent.
  bool json = false;
};

struct ScoreArguments {
  std::optional<int64_t> prefillChunk;     ///< see prefillChunkSize
  std::optional<uint64_t> checkpointBytes; ///< see checkpointBudget
  std::optional<std::string> probes;       ///< a file for the probes' values
  std::optional<std::string> columnSums; ///< a file for the column sums of squares of these values
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

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_COMMANDS_ARGUMENTS_H
