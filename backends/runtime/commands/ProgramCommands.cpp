#include "backends/runtime/commands/ProgramCommands.h"
#include "backends/runtime/commands/GenerationOptions.h"
#include "backends/runtime/commands/ServeOptions.h"
#include "backends/runtime/commands/TokenList.h"
#include "backends/runtime/support/CompletionScript.h"
#include "backends/runtime/support/HelpFormatter.h"
#include "backends/runtime/support/OptionValues.h"

namespace mica::rt {

namespace {
constexpr int64_t maxCount = setting_range::maxCount;
constexpr uint64_t maxThreads = 1024;
/// The maximum number of sequences of a measurement: more would take hours and too much memory.
constexpr int64_t maxBatch = 1024;
constexpr int64_t maxLogprobs = 1000;

/// Parses a list of --tokens; an invalid list is a usage error.
Tokens tokensOf(const std::string &list) {
  Result<Tokens> parsed = parseTokenList(list);
  if (!parsed)
    throw CLI::ValidationError("--tokens", parsed.error().message);
  return *std::move(parsed);
}

void addPrefillChunk(CLI::App &app, std::optional<int64_t> &rows) {
  app.add_option(
         "--prefill-chunk", rows,
         "Prompt tokens processed at once (default: 512, fewer if their activations exceed 40 MiB)")
      ->transform(wholeNumber(1, maxCount));
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
      .add_option("--chat-template,--chat-template-file", run.templateFile,
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

/// -f, which other options need.
CLI::Option *addPrompt(CLI::App &app, RunArguments &run) {
  auto *prompt = app.add_option("-p,--prompt", run.prompt, "Prompt")->type_name("TEXT");
  auto *file =
      app.add_option("-f,--file", run.file, "Read the prompt from this file; -: standard input")
          ->type_name("FILE");
  auto *tokens = repeatable(app.add_option_function<std::vector<std::string>>(
      "--tokens",
      [&run](const std::vector<std::string> &lists) {
        for (const std::string &list : lists)
          run.tokens.push_back(tokensOf(list));
      },
      "Prompt as token ids, such as 1,2,3; may repeat, one sequence each in one batch"));
  tokens->type_name("IDS");
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
    addDrafts(app, run.settings);
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
  addCheckpointBytes(*sub, chat.run.checkpointBytes);
  addDrafts(*sub, chat.run.settings);
  sub->add_flag("--json", chat.json, "Print one JSON object per answer");
  sub->add_flag("-v,--verbose", chat.run.verbose,
                "Print tokens and seconds of each answer to stderr");
  return sub;
}

CLI::App *addBench(CLI::App &app, BenchArguments &bench) {
  CLI::App *sub = app.add_subcommand(
      "bench", "Measure speed: prompt processing (pp) and token generation (tg)");
  auto counts = [&](const char *name, std::vector<int64_t> &values, int64_t min, int64_t max,
                    const char *help) {
    repeatable(sub->add_option(name, values, help))
        ->type_name("N")
        ->transform(wholeNumber(static_cast<uint64_t>(min), static_cast<uint64_t>(max)));
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
  sub->add_option("--mtp", bench.mtp,
                  "Also generate random tokens with up to N tokens drafted by the multi-token "
                  "prediction (MTP) head per pass: what drafting and verifying cost, because "
                  "hardly any draft is accepted")
      ->type_name("N")
      ->transform(within(setting_range::mtp));
  sub->add_option_function<std::string>(
         "--tokens", [&bench](const std::string &list) { bench.text = tokensOf(list); },
         "With --lookup: use this text instead, whose first --depth ids are the prompt and whose "
         "next --gen ids are forced as the output")
      ->type_name("IDS");
  sub->add_flag("--profile", bench.profile,
                "Print time, bytes and operations of each kernel, and of exchanges between ranks, "
                "from an additional run per test without drafts. The bandwidth limit is that of "
                "main memory, so kernels whose data "
                "is in the processor's caches can exceed 100 %");
  sub->add_option("--profile-json", bench.profileJson,
                  "Write the profile, with the program's identity and the locations of its kernels "
                  "in the model, for `mica explore --profile`")
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
                "Verify all checksums, including those of the weights, which are not checked at "
                "startup");
  sub->add_flag("--licenses", info.licenses, "Print the license notices of the software inside");
  return sub;
}

CLI::App *addScore(CLI::App &app, ScoreArguments &score) {
  CLI::App *sub = app.add_subcommand(
      "score", "For tools such as `mica eval`: read lines `LENGTH[/TOTAL] FIRST ID ID ...` from "
               "stdin, process the ids after the first LENGTH positions as part of a text of "
               "TOTAL, and write the logits from ids[FIRST] on as float32 rows to stdout");
  addPrefillChunk(*sub, score.prefillChunk);
  addCheckpointBytes(*sub, score.checkpointBytes);
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
} // namespace

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

} // namespace mica::rt
