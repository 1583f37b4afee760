#include "backends/runtime/commands/Arguments.h"
#include "backends/runtime/support/CommandLine.h"
#include "backends/runtime/support/CompletionScript.h"
#include "backends/runtime/support/Output.h"
#include "backends/runtime/support/Report.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace mica::rt {

namespace {
constexpr int64_t maxCount = setting_range::maxCount;
constexpr uint64_t maxThreads = 1024;
/// The maximum number of sequences of a measurement: more would take hours and too much memory.
constexpr int64_t maxBatch = 1024;
constexpr int64_t maxLogprobs = 1000;

std::string_view trimmed(std::string_view text) {
  size_t first = text.find_first_not_of(" \t\r\n");
  return first == text.npos ? text.substr(0, 0)
                            : text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

/// Parses a list of --tokens; an invalid list is a usage error.
Tokens tokensOf(const std::string &list) {
  Result<Tokens> parsed = parseTokenList(list);
  if (!parsed)
    throw CLI::ValidationError("--tokens", parsed.error().message);
  return *std::move(parsed);
}

/// Accepts the valid values of a setting.
CLI::Validator within(const SettingRange<double> &range) {
  return numberBetween(range.min, range.max);
}
CLI::Validator within(const SettingRange<int64_t> &range) {
  return wholeNumber(static_cast<uint64_t>(range.min), static_cast<uint64_t>(range.max));
}

void addPrefillChunk(CLI::App &app, std::optional<int64_t> &rows) {
  app.add_option(
         "--prefill-chunk", rows,
         "Prompt tokens processed at once (default: 512, fewer if their activations exceed 40 MiB)")
      ->transform(wholeNumber(1, maxCount));
}

void addPenalties(CLI::App &app, GenerationSettings &settings) {
  app.add_option("--repetition-penalty,--repeat-penalty", settings.repetitionPenalty,
                 "Penalize tokens that are already in the text; 1: off")
      ->check(within(setting_range::repetitionPenalty));
  app.add_option("--presence-penalty", settings.presencePenalty,
                 "Subtract X from the logits of tokens that were generated before; 0: off")
      ->check(within(setting_range::presencePenalty));
  app.add_option("--frequency-penalty", settings.frequencyPenalty,
                 "Subtract X from the logit of a token for each time it was generated; 0: off")
      ->check(within(setting_range::frequencyPenalty));
  app.add_option_function<std::vector<std::string>>(
         "--logit-bias",
         [&settings](const std::vector<std::string> &words) {
           for (const std::string &word : words) {
             Result<LogitBias> bias = parseLogitBias(word);
             if (!bias)
               throw CLI::ValidationError("--logit-bias", bias.error().message);
             settings.logitBias.push_back(*bias);
           }
         },
         "Add B to the logit of token ID; -inf bans it; may repeat")
      ->type_name("ID=B")
      ->type_size(1)
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void addDry(CLI::App &app, GenerationSettings &settings) {
  app.add_option("--dry-multiplier", settings.dryMultiplier,
                 "DRY strength: a token that would extend a repetition of n tokens is penalized by "
                 "X * base ^ (n - allowed length); 0: off")
      ->check(within(setting_range::dryMultiplier));
  app.add_option("--dry-base", settings.dryBase, "DRY base (default: 1.75)")
      ->check(within(setting_range::dryBase));
  app.add_option("--dry-allowed-length", settings.dryAllowedLength,
                 "DRY ignores repetitions of fewer tokens (default: 2)")
      ->transform(within(setting_range::dryAllowedLength));
  app.add_option("--dry-penalty-last-n", settings.dryPenaltyLastN,
                 "DRY scans the last N tokens for repetitions; -1: all of them (default); 0: off")
      ->transform(CLI::Validator(
          [](std::string &text) {
            return text == "-1" ? std::string() : wholeNumber(0, maxCount)(text);
          },
          ""));
  app.add_option_function<std::vector<std::string>>(
         "--dry-sequence-breaker",
         [&settings](std::vector<std::string> texts) {
           std::erase(texts, "none");
           settings.dryBreakers = std::move(texts);
         },
         "DRY does not extend repetitions across TEXT; may repeat; none: no breakers (default: "
         "newline, colon, quotation mark, asterisk)")
      ->type_name("TEXT")
      ->type_size(1)
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void addMirostat(CLI::App &app, GenerationSettings &settings) {
  app.add_option(
         "--mirostat", settings.mirostat,
         "Use Mirostat 1 or 2 instead of top-k, top-p, min-p, typical and XTC sampling; 0: off")
      ->transform(within(setting_range::mirostat));
  app.add_option("--mirostat-ent", settings.mirostatTau,
                 "Mirostat target entropy in bits (default: 5)")
      ->check(within(setting_range::mirostatTau));
  app.add_option("--mirostat-lr", settings.mirostatEta, "Mirostat learning rate (default: 0.1)")
      ->check(within(setting_range::mirostatEta));
}

void addChoice(CLI::App &app, GenerationSettings &settings) {
  app.add_option("--temperature,--temp", settings.temperature, "Sampling temperature; 0: greedy")
      ->check(within(setting_range::temperature));
  app.add_option("--top-k", settings.topK, "Sample from the N most likely tokens; 0: all")
      ->transform(within(setting_range::topK));
  app.add_option("--top-p", settings.topP,
                 "Sample from the smallest set of tokens with a total probability of X")
      ->check(within(setting_range::topP));
  app.add_option("--min-p", settings.minP,
                 "Drop tokens less likely than X times the most likely one")
      ->check(within(setting_range::minP));
  app.add_option("--typical-p", settings.typicalP,
                 "Locally typical sampling: keep the tokens closest to the expected surprisal, up "
                 "to a total probability of X")
      ->check(within(setting_range::typicalP));
  app.add_option("--xtc-probability", settings.xtcProbability,
                 "Probability of XTC: it removes all tokens above the threshold except the least "
                 "likely of them; 0: off")
      ->check(within(setting_range::xtcProbability));
  app.add_option("--xtc-threshold", settings.xtcThreshold,
                 "Probability threshold of XTC; above 0.5: off (default: 0.1)")
      ->check(within(setting_range::xtcThreshold));
  addMirostat(app, settings);
  app.add_option("--seed", settings.seed, "Random seed, for reproducible sampling")
      ->transform(wholeNumber(0, std::numeric_limits<uint64_t>::max()));
}

void addSampling(CLI::App &app, GenerationSettings &settings) {
  addGroup(app, "Sampling", [&] { addChoice(app, settings); });
  addGroup(app, "Repetition", [&] {
    addPenalties(app, settings);
    addDry(app, settings);
  });
}

void addLookup(CLI::App &app, GenerationSettings &settings) {
  app.add_option("--lookup", settings.lookup,
                 "Speculative decoding by prompt lookup: draft up to N tokens (at most 31, fewer "
                 "with several sequences) from the text so far and verify them in one pass; the "
                 "output stays the same")
      ->type_name("N")
      ->transform(within(setting_range::lookup));
}

void addStops(CLI::App &app, GenerationSettings &settings) {
  app.add_option("--stop", settings.stops, "Stop before TEXT; may repeat")
      ->type_name("TEXT")
      ->type_size(1)
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->check([](const std::string &text) { return std::string(text.empty() ? "is empty" : ""); });
}

CLI::Option *addSystem(CLI::App &app, std::optional<std::string> &system) {
  return app.add_option("--system", system, "System prompt; -sys is the same")->type_name("TEXT");
}

CLI::Option *addTools(CLI::App &app, std::optional<std::string> &tools) {
  return app
      .add_option("--tools", tools,
                  "Tools that the model may call: a JSON list, passed to the chat template; calls "
                  "are part of the answer's text")
      ->type_name("FILE");
}

CLI::Option *addChatTemplate(CLI::App &app, RunArguments &run) {
  return app
      .add_option("--chat-template", run.templateFile,
                  "Chat template (Jinja) to use instead of the model's own")
      ->type_name("FILE");
}

void addSpecial(CLI::App &app, RunArguments &run) {
  app.add_flag("--special", run.chatTemplate.special,
               "Parse special tokens such as <|im_end|> in messages (default: treat them as text, "
               "so that a message cannot end its turn)");
}

void addBatch(CLI::App &app, RunArguments &run, CLI::Option *file) {
  auto *batch =
      app.add_option("--batch", run.batch,
                     "Process the requests in --file, B at once: one JSON object per line with "
                     "\"prompt\", \"tokens\" or \"messages\" (and \"tools\"), optionally \"id\", "
                     "\"n\", \"seed\" and \"max_tokens\"; prints one JSON object per result");
  batch->type_name("B")->transform(wholeNumber(1, maxBatch));
  batch->needs(file);
  auto *output =
      app.add_option("-o,--output", run.output,
                     "Write the results of --batch to this file; an interrupted batch resumes");
  output->type_name("FILE")->needs(batch);
}

constexpr const char *machineGroup = "Machine";

/// The text to continue as a positional argument.
constexpr const char *promptWord = "PROMPT";

/// -f, which other options need.
CLI::Option *addPrompt(CLI::App &app, RunArguments &run) {
  auto *prompt = app.add_option("-p,--prompt", run.prompt, "Prompt")->type_name("TEXT");
  auto *file =
      app.add_option("-f,--file", run.file, "Read the prompt from this file; -: standard input")
          ->type_name("FILE");
  auto *tokens = app.add_option_function<std::vector<std::string>>(
      "--tokens",
      [&run](const std::vector<std::string> &lists) {
        for (const std::string &list : lists)
          run.tokens.push_back(tokensOf(list));
      },
      "Prompt as token ids, such as 1,2,3; may repeat, one sequence each in one batch");
  tokens->type_name("IDS")->type_size(1)->expected(1)->allow_extra_args(false);
  tokens->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  prompt->excludes(file)->excludes(tokens);
  app.add_option(promptWord, run.prompt,
                 "Prompt, same as -p (default: standard input if it is a pipe or a file, without "
                 "its final newline)")
      ->excludes(prompt)
      ->excludes(file)
      ->excludes(tokens);
  file->excludes(tokens);
  auto *chat = app.add_flag("--chat", run.chat,
                            "Apply the model's chat template to the prompt as one user message; "
                            "with --batch to each prompt");
  chat->excludes(tokens);
  addSystem(app, run.system)->needs(chat);
  addTools(app, run.chatTemplate.tools)->needs(chat);
  addChatTemplate(app, run);
  addSpecial(app, run);
  return file;
}

void addOutput(CLI::App &app, RunArguments &run) {
  app.add_flag("--print-tokens", run.printTokens,
               "Print token ids instead of text, one line per sequence");
  app.add_option("--logits", run.logits,
                 "Write the logits of every processed position as float32 [rows, vocabulary]")
      ->type_name("FILE.npy");
  CLI::Option *json =
      app.add_flag("--json", run.json, "Print one JSON object at the end instead of text");
  app.add_option("--logprobs", run.logprobs,
                 "Add the log probability of each token and of the N most likely tokens, before "
                 "any sampling option applies")
      ->type_name("N")
      ->needs(json)
      ->transform(wholeNumber(0, maxLogprobs));
  app.add_flag("-v,--verbose", run.verbose, "Print speed to stderr at the end");
}

void addRun(CLI::App &app, RunArguments &run) {
  CLI::Option *file = nullptr;
  addGroup(app, "Prompt", [&] { file = addPrompt(app, run); });
  addGroup(app, "Generation", [&] {
    app.add_option("-n,--n-predict", run.settings.maxTokens,
                   "Maximum number of new tokens per sequence")
        ->default_str(std::to_string(GenerationSettings::defaultMaxTokens))
        ->transform(within(setting_range::maxTokens));
    addStops(app, run.settings);
    app.add_flag("--ignore-eos", run.settings.ignoreEos, "Do not stop at end-of-sequence tokens");
    addLookup(app, run.settings);
  });
  addSampling(app, run.settings);
  addGroup(app, "Output", [&] { addOutput(app, run); });
  addGroup(app, "Batch", [&] { addBatch(app, run, file); });
  addGroup(app, machineGroup, [&] { addPrefillChunk(app, run.prefillChunk); });
}

void addMachineOptions(CLI::App &app, Arguments &arguments) {
  app.add_option("-t,--threads", arguments.threads,
                 "Number of threads (default: the processors available to this process)")
      ->transform(wholeNumber(1, maxThreads));
  app.add_flag(
      "--huge-pages", arguments.hugePages,
      "Read the weights into huge pages instead of mapping the file: slower to start and not "
      "shared between processes, but faster if the file would be mapped in small pages");
  app.add_flag("--verify-weights", arguments.verifyWeights,
               "Verify the checksum of the weights first: this reads all of them, and damage goes "
               "unnoticed otherwise");
}

/// Options of every command that runs the model.
void addMachine(CLI::App &app, Arguments &arguments) {
  addGroup(app, machineGroup, [&] { addMachineOptions(app, arguments); });
}

CLI::App *addChat(CLI::App &app, ChatArguments &chat) {
  CLI::App *sub = app.add_subcommand(
      "chat", "Chat with the model: with line editing on a terminal, else one message per line");
  addSystem(*sub, chat.run.system);
  addTools(*sub, chat.run.chatTemplate.tools);
  addChatTemplate(*sub, chat.run);
  addSpecial(*sub, chat.run);
  sub->add_option(
         "-n,--n-predict", chat.run.settings.maxTokens,
         "Maximum number of new tokens per answer (default: as many as fit in the context)")
      ->transform(wholeNumber(1, maxCount));
  sub->add_option("--history", chat.history,
                  "Keep the history of the terminal's input in this file")
      ->type_name("FILE");
  sub->add_flag("--context-shift", chat.contextShift,
                "Drop the oldest turns when the context is full (default: the conversation ends)");
  addSampling(*sub, chat.run.settings);
  addStops(*sub, chat.run.settings);
  addPrefillChunk(*sub, chat.run.prefillChunk);
  addLookup(*sub, chat.run.settings);
  sub->add_flag("--json", chat.json, "Print one JSON object per answer");
  sub->add_flag("-v,--verbose", chat.run.verbose,
                "Print tokens and seconds of each answer to stderr");
  return sub;
}

void addServeAddress(CLI::App &app, serve::HttpOptions &http) {
  CLI::Option *unixSocket =
      app.add_option("--unix-socket", http.unixSocket, "Listen on this Unix socket instead of TCP")
          ->type_name("PATH");
  app.add_option("--host", http.host, "IP address to listen on; 0.0.0.0: all IPv4 interfaces")
      ->type_name("ADDRESS")
      ->capture_default_str()
      ->excludes(unixSocket);
  app.add_option("--port", http.port, "TCP port to listen on; 0: any free port")
      ->capture_default_str()
      ->transform(wholeNumber(0, 65535))
      ->excludes(unixSocket);
}

void addServeLimits(CLI::App &app, ServeArguments &serve) {
  app.add_option(
         "--sequences", serve.sequences,
         "Requests processed at once (default: as many as fit into --cache-bytes, at most 8)")
      ->transform(wholeNumber(1, maxBatch));
  app.add_option(
         "--cache-bytes", serve.cacheBytes,
         "Memory for the KV caches of all sequences (default: half of the available memory)")
      ->transform(wholeNumber(1));
  app.add_option("--queue", serve.queue,
                 "Maximum number of waiting requests; further ones get status 429")
      ->capture_default_str()
      ->transform(wholeNumber(0, maxCount));
  app.add_option("--prefill-chunk", serve.prefillChunk,
                 "Prompt tokens processed between two tokens of other requests (default: 128)")
      ->transform(wholeNumber(1, maxCount));
  app.add_option("--max-body-bytes", serve.http.maxBodyBytes, "Maximum size of a request body")
      ->capture_default_str()
      ->transform(wholeNumber(1));
  app.add_option("--max-connections", serve.http.maxConnections,
                 "Maximum number of open connections")
      ->capture_default_str()
      ->transform(wholeNumber(1, 1 << 20));
  auto addSeconds = [&app](const char *name, int64_t &seconds, int64_t min, const char *help) {
    app.add_option(name, seconds, help)
        ->capture_default_str()
        ->transform(wholeNumber(min, maxCount));
  };
  addSeconds("--receive-timeout", serve.receiveTimeout, 1,
             "Seconds for a request's header to arrive, and for its body");
  addSeconds("--idle-timeout", serve.idleTimeout, 1,
             "Seconds until a connection without a request is closed");
  addSeconds("--request-timeout", serve.requestTimeout, 0,
             "Time limit of a request in seconds; 0: none");
  addSeconds("--drain-seconds", serve.drainSeconds, 0,
             "Seconds that running requests have to finish after SIGTERM or Ctrl-C");
}

CLI::App *addServe(CLI::App &app, ServeArguments &serve) {
  CLI::App *sub = app.add_subcommand(
      "serve",
      "Serve an OpenAI-compatible HTTP API: /v1/chat/completions, /v1/completions, /v1/models");
  addGroup(*sub, "Address", [&] { addServeAddress(*sub, serve.http); });
  addGroup(*sub, "Limits", [&] { addServeLimits(*sub, serve); });
  CLI::Option *key =
      sub->add_option(
             "--api-key", serve.apiKey,
             "Require this API key; other users of the machine can see it in the process list")
          ->type_name("KEY");
  sub->add_option("--api-key-file", serve.apiKeyFile,
                  "Require one of the API keys in FILE, one per line")
      ->type_name("FILE")
      ->excludes(key);
  sub->add_option("--chat-template", serve.templateFile,
                  "Chat template (Jinja) to use instead of the model's own")
      ->type_name("FILE");
  return sub;
}

CLI::App *addBench(CLI::App &app, BenchArguments &bench) {
  CLI::App *sub = app.add_subcommand(
      "bench", "Measure speed: prompt processing (pp) and token generation (tg)");
  auto counts = [&](const char *name, std::vector<int64_t> &values, int64_t least, int64_t most,
                    const char *help) {
    sub->add_option(name, values, help)
        ->type_name("N")
        ->type_size(1)
        ->expected(1)
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->transform(wholeNumber(static_cast<uint64_t>(least), static_cast<uint64_t>(most)));
  };
  counts("--prompt", bench.prompts, 0, maxCount,
         "Process a prompt of N tokens; may repeat (default: 512)");
  counts("--gen", bench.gens, 0, maxCount, "Generate N tokens; may repeat (default: 64)");
  counts("--batch", bench.batches, 1, maxBatch,
         "Generate N sequences at once; may repeat (default: 1)");
  sub->add_option("--depth", bench.depth, "Number of tokens in the context before each test")
      ->transform(wholeNumber(0, maxCount));
  sub->add_option("--repeat", bench.repeat, "Runs per test, of which the median is reported")
      ->capture_default_str()
      ->transform(wholeNumber(1, 10000));
  addPrefillChunk(*sub, bench.prefillChunk);
  sub->add_option("--lookup", bench.lookup,
                  "Also generate a repetitive text with up to N drafted tokens per pass")
      ->type_name("N")
      ->transform(within(setting_range::lookup));
  sub->add_option_function<std::string>(
         "--tokens", [&bench](const std::string &list) { bench.text = tokensOf(list); },
         "With --lookup: use this text instead, whose first --depth ids are the prompt and whose "
         "next --gen ids are forced as the output")
      ->type_name("IDS");
  sub->add_flag("--profile", bench.profile,
                "Print time, bytes and operations of each kernel, from one more run per test "
                "without drafts; kernels whose data is in the processor's caches exceed 100 % of "
                "the limit, which is that of memory");
  sub->add_option("--profile-json", bench.profileJson,
                  "Write the profile, with the program's identity and the places of its kernels in "
                  "the model, for `mica explore --profile`")
      ->type_name("FILE");
  sub->add_option("--trace", bench.trace,
                  "Write the profiled run as a trace for chrome://tracing or ui.perfetto.dev")
      ->type_name("FILE.json");
  sub->add_option(
         "--peak-gb", bench.peakGb,
         "Memory bandwidth limit of the profile in GB/s (default: measured before each test)")
      ->type_name("X")
      ->check(numberBetween(1e-3, 1e9));
  sub->add_option("--peak-gflop", bench.peakGflop,
                  "Compute limit of the profile in GFLOP/s (default: measured)")
      ->type_name("X")
      ->check(numberBetween(1e-3, 1e9));
  sub->add_flag("--json", bench.json, "Print one JSON object");
  return sub;
}

CLI::App *addInfo(CLI::App &app, InfoArguments &info) {
  CLI::App *sub = app.add_subcommand("info", "Show what the program contains");
  sub->add_flag("--json", info.json, "Print one JSON object");
  sub->add_flag("--check", info.check,
                "Verify all checksums; otherwise damaged weights are detected by --verify-weights "
                "only, while everything else is checked at every start");
  sub->add_flag("--licenses", info.licenses, "Print the license notices of the software inside");
  return sub;
}

CLI::App *addScore(CLI::App &app, ScoreArguments &score) {
  CLI::App *sub = app.add_subcommand(
      "score", "For tools such as `mica eval`: read lines `LENGTH[/TOTAL] FIRST ID ID ...` from "
               "stdin, process the ids after the first LENGTH positions as part of a text of "
               "TOTAL, and write the logits from ids[FIRST] on as float32 rows to stdout");
  addPrefillChunk(*sub, score.prefillChunk);
  sub->add_flag("--as-decode", score.asDecode,
                "Compute rows as in decoding instead of as in prefill");
  CLI::Option *probes = sub->add_option("--probes", score.probes,
                                        "Write what the program's probes record; only programs of "
                                        "`mica verify` and `mica compile --calibrate` have probes")
                            ->type_name("FILE");
  sub->add_option("--column-sums", score.columnSums,
                  "Write the sum of squares of each column that the program's probes record")
      ->type_name("FILE")
      ->excludes(probes);
  return sub;
}

/// `app` has parsed the words.
int usageError(const CLI::App &app, const std::string &message) {
  reportError(usageMessage(message, parsedCommand(app)));
  return 2;
}

/// Hints for options of llama.cpp that have another name here or are not supported.
const std::vector<ForeignOption> &foreignOptions() {
  static const std::vector<ForeignOption> options = {
      {{"-c", "--ctx-size"},
       "the context length is set when compiling (mica compile --max-seq N); leave it out"},
      {{"-m", "--model"}, "the program contains its model; leave it out"},
      {{"-ctk", "-ctv", "--cache-type-k", "--cache-type-v"},
       "the KV cache format is set when compiling (mica compile --kv int8); leave it out"},
      {{"-b", "--batch-size", "-ub", "--ubatch-size"}, "use --prefill-chunk N"},
      {{"-tb", "--threads-batch"}, "prompts and decoding use the same threads; use --threads N"},
      {{"-s"}, "use --seed N"},
      {{"--typical"}, "use --typical-p X"},
      {{"-r", "--reverse-prompt"}, "use --stop TEXT"},
      {{"-cnv", "--conversation"}, "use the command chat"},
      {{"-st", "--single-turn"}, "use --chat -p TEXT"},
      {{"--chat-template-file"}, "use --chat-template FILE"},
      {{"--jinja", "--no-display-prompt", "--flash-attn"}, "always on; leave it out"},
      {{"--no-mmap"}, "use --huge-pages"},
      {{"-md", "--model-draft"}, "there are no draft models; use --lookup N"},
      {{"--lora"}, "there are no LoRA adapters; merge it into the model and compile that"},
  };
  return options;
}

/// Prints help or version; a full disk is an error.
int print(const std::string &text) {
  Status written = writeOut(text);
  if (!written)
    reportError(written.error().message);
  return written ? 0 : 1;
}

/// The options that do not apply to --batch; empty: none.
std::string unusableWithBatch(const RunArguments &run) {
  if (!run.batch)
    return {};
  return run.logits                            ? "--logits"
         : run.json                            ? "--json"
         : run.settings.lookup.value_or(0) > 0 ? "--lookup"
                                               : "";
}

/// An option of text generation that was given to another command; empty: none.
std::string misplacedOption(const CLI::App &app) {
  for (const CLI::Option *option : app.get_options())
    if (option->count() > 0 && !option->check_name("--threads") &&
        !option->check_name("--huge-pages") && !option->check_name("--verify-weights"))
      return option->get_name();
  return {};
}

/// The error for a prompt of one word that is probably a typo of a subcommand; empty for others.
std::string misspelledCommand(const CLI::App &app, const RunArguments &run) {
  if (app.count(promptWord) == 0 || run.prompt->find_first_of(" \t\n") != std::string::npos)
    return {};
  std::vector<std::string> known;
  for (const CLI::App *command : app.get_subcommands([](const CLI::App *) { return true; }))
    known.push_back(command->get_name());
  std::string closest = closestWord(*run.prompt, known);
  return closest.empty() ? ""
                         : "there is no command '" + *run.prompt + "' (write a prompt after -p)" +
                               didYouMean(closest);
}
} // namespace

Result<LogitBias> parseLogitBias(const std::string &text) {
  size_t equals = text.find('=');
  const char *begin = text.data(), *end = begin + text.size();
  const char *middle = begin + std::min(equals, text.size());
  LogitBias out{};
  auto id = std::from_chars(begin, middle, out.token);
  auto bias = std::from_chars(std::min(middle + 1, end), end, out.bias);
  bool good = id.ec == std::errc() && id.ptr == middle && out.token >= 0 &&
              bias.ec == std::errc() && bias.ptr == end &&
              out.bias < std::numeric_limits<float>::infinity();
  if (!good)
    return Error{"'" + text +
                 "' is not a bias for a token; write ID=B such as 13=-2.5, or 13=-inf to ban it"};
  return out;
}

Status changeSetting(GenerationSettings &settings, std::string name, const std::string &value) {
  GenerationSettings changed = settings;
  CLI::App app;
  app.set_help_flag();
  app.add_option("-n,--n-predict", changed.maxTokens)->transform(wholeNumber(1, maxCount));
  addSampling(app, changed);
  addStops(app, changed);
  addLookup(app, changed);
  std::replace(name.begin(), name.end(), '_', '-');
  std::string option = (name.size() == 1 ? "-" : "--") + name;
  if (!app.get_option_no_throw(option)) {
    std::vector<std::string> known;
    for (const CLI::Option *each : app.get_options())
      known.insert(known.end(), each->get_lnames().begin(), each->get_lnames().end());
    return Error{"there is no setting '" + name + "'" + didYouMean(closestWord(name, known))};
  }
  auto parsed = parseWords(app, {option, value});
  if (!parsed)
    return parsed.error();
  settings = std::move(changed);
  return {};
}

Result<Tokens> parseTokenList(const std::string &list) {
  Tokens tokens;
  std::string_view rest = list;
  for (bool more = true; more;) {
    size_t comma = rest.find(',');
    more = comma != rest.npos;
    std::string_view entry = trimmed(rest.substr(0, comma));
    rest = more ? rest.substr(comma + 1) : std::string_view();
    int32_t token = 0;
    auto [end, failure] = std::from_chars(entry.data(), entry.data() + entry.size(), token);
    if (failure != std::errc() || end != entry.data() + entry.size() || token < 0)
      return Error{"'" + std::string(entry) +
                   "' is not a token id; write numbers with commas: 1,2,3"};
    tokens.push_back(token);
  }
  return tokens;
}

void addProgramCommands(CLI::App &app, Arguments &arguments) {
  app.description("A language model, compiled by Mica");
  app.formatter(helpFormatter());
  app.set_version_flag("--version", "mica " MICA_VERSION);
  addRun(app, arguments.run);
  addMachine(app, arguments);
  CLI::App *chat = addChat(app, arguments.chat);
  addMachine(*chat, arguments);
  CLI::App *serve = addServe(app, arguments.serve);
  addMachine(*serve, arguments);
  CLI::App *bench = addBench(app, arguments.bench);
  addMachine(*bench, arguments);
  CLI::App *info = addInfo(app, arguments.info);
  addCompletionCommand(app, arguments.completionShell);
  CLI::App *score = addScore(app, arguments.score);
  addMachine(*score, arguments);
  app.require_subcommand(0, 1);
  const std::string &name = app.get_name();
  app.footer("Examples:\n  " + name + " chat\n  " + name + " 'Once upon a time' -n 100\n  " + name +
             " --chat -p 'What is a compiler?' --temp 0");
  chat->footer("Example:\n  " + name + " chat -sys 'Answer in one sentence.' --temp 0.2");
  serve->footer("Example:\n  " + name + " serve --port 8080");
  bench->footer("Example:\n  " + name + " bench --prompt 512 --gen 64");
  info->footer("Example:\n  " + name + " info --check");
  score->footer("Example:\n  echo '0 2 1 5 3' | " + name + " score > logits.f32");
}

Parsed parseArguments(int argc, const char *const *argv) {
  Parsed parsed;
  Arguments &arguments = parsed.arguments;
  CLI::App app;
  const char *command = std::getenv(commandVariable);
  app.name(command ? command : argc > 0 ? argv[0] : "program");
  addProgramCommands(app, arguments);
  auto helpText = parseWords(app, {argv + std::min(argc, 1), argv + argc}, foreignOptions());
  if (!helpText)
    parsed.exit = usageError(app, helpText.error().message);
  else if (*helpText)
    parsed.exit = print(**helpText);
  else if (auto commands = app.get_subcommands(); !commands.empty()) {
    if (std::string option = misplacedOption(app); !option.empty())
      parsed.exit =
          usageError(app, option + " is an option for generating text, not for the command " +
                              commands.front()->get_name());
  } else if (std::string mistake = misspelledCommand(app, arguments.run); !mistake.empty())
    parsed.exit = usageError(app, mistake);
  if (parsed.exit)
    return parsed;
  if (std::string option = unusableWithBatch(arguments.run); !option.empty()) {
    parsed.exit = usageError(app, option + " cannot be combined with --batch");
    return parsed;
  }
  const RunArguments &run = arguments.run;
  if (run.chatTemplate.special && !run.chat && !run.batch)
    parsed.exit =
        usageError(app, "--special needs --chat or --batch: special tokens in a text of -p are "
                        "always parsed");
  else if (run.templateFile && !run.chat && !run.batch)
    parsed.exit = usageError(app, "--chat-template needs --chat or --batch");
  if (parsed.exit)
    return parsed;
  using Command = Arguments::Command;
  static constexpr std::pair<const char *, Command> commands[] = {
      {"chat", Command::Chat}, {"serve", Command::Serve},           {"bench", Command::Bench},
      {"info", Command::Info}, {"completion", Command::Completion}, {"score", Command::Score}};
  for (auto [name, which] : commands)
    if (app.got_subcommand(name))
      arguments.command = which;
  return parsed;
}

} // namespace mica::rt
