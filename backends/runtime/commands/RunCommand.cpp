#include "backends/runtime/commands/RunCommand.h"
#include "backends/runtime/commands/BatchCommand.h"
#include "backends/runtime/commands/GenerationReport.h"
#include "backends/runtime/engine/Generate.h"
#include "backends/runtime/engine/LogProbabilities.h"
#include "backends/runtime/support/Npy.h"
#include "backends/runtime/support/Output.h"
#include "backends/runtime/support/Report.h"
#include "backends/runtime/support/TextFile.h"
#include "backends/runtime/text/ProgramText.h"
#include "backends/runtime/text/TextStream.h"

#include <cstdio>
#include <deque>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

namespace mica::rt {

namespace {

/// Whether stdin is a source of text: neither a terminal nor /dev/null.
bool hasInput() {
  struct stat input;
  return fstat(STDIN_FILENO, &input) == 0 &&
         (S_ISFIFO(input.st_mode) || S_ISREG(input.st_mode) || S_ISSOCK(input.st_mode));
}

/// The prompt, or none. `reads`: whether it may come from stdin.
Result<std::optional<std::string>> promptText(const RunArguments &arguments, bool reads) {
  if (arguments.prompt)
    return arguments.prompt;
  bool piped = !arguments.file;
  if (piped && !(reads && hasInput()))
    return std::optional<std::string>();
  Result<std::string> text = readTextFile(piped ? "-" : *arguments.file, "prompt", "-f");
  if (!text)
    return text.error();
  // The final newline, as written by `echo`, is not part of the prompt.
  if (piped && text->ends_with('\n'))
    text->pop_back();
  return piped && text->empty() ? std::nullopt : std::optional(*std::move(text));
}

/// The token sequences of the arguments.
Result<std::vector<Tokens>> prompts(const RunArguments &arguments, const Manifest &m,
                                    const ProgramTokenizer *text,
                                    const ChatTemplate *chatTemplate) {
  if (!arguments.tokens.empty())
    return arguments.tokens;
  Result<std::optional<std::string>> prompt = promptText(arguments, /*reads=*/text != nullptr);
  if (!prompt)
    return prompt.error();
  if (!*prompt) {
    if (!m.bos)
      return Error{"this model has no BOS token; pass a prompt with -p, -f or --tokens"};
    return std::vector<Tokens>{{*m.bos}};
  }
  if (!text)
    return Error{std::string(noTokenizer) + "with --tokens"};
  std::vector<Message> messages;
  if (arguments.system)
    messages.push_back({"system", *arguments.system});
  messages.push_back({"user", **prompt});
  Result<Tokens> ids = chatTemplate ? chatTemplate->encode(messages, true) : text->encode(**prompt);
  if (!ids)
    return ids.error();
  return std::vector<Tokens>{*ids};
}

/// The listener of a request. A single text is streamed; several texts are written in order at the
/// end.
class Writer final : public RequestListener {
public:
  Writer(const RunArguments &arguments, const ProgramTokenizer *text, const Tokens &prompt,
         bool streaming, NpyWriter *logitsFile, int64_t sequence)
      : tokenizer(text), numLogprobs(arguments.logprobs), streaming(streaming),
        ids(arguments.printTokens || !text), terminal(streaming && isatty(STDOUT_FILENO)),
        logitsFile(logitsFile), sequence(sequence) {
    if (text)
      decoded.emplace(text->decoderAfter(prompt), arguments.settings.stops);
  }

  Status sampled(int32_t token, std::span<const float> logits) override {
    if (numLogprobs)
      noteLogprobs(token, logits);
    return {};
  }

  Result<bool> token(int32_t token, std::span<const float>) override {
    std::string piece = decoded ? decoded->push(token) : "";
    if (ids)
      piece = (written.empty() ? "" : " ") + std::to_string(token);
    written += piece;
    if (streaming)
      if (Status done = writeOut(shown(piece)); !done)
        return done.error();
    return !decoded || !decoded->stopped();
  }

  Status logits(std::span<const float> row) override { return logitsFile->append(sequence, row); }

  /// Ends the text; writes what has not been streamed.
  Status finish(bool write) {
    std::string rest = ids ? "" : decoded->finish();
    written += rest;
    if (!write)
      return {};
    bool endLine = ids || !written.ends_with('\n');
    return writeOut(shown(streaming ? rest : written) + (endLine ? "\n" : ""));
  }

  /// An entry for each token; empty without --logprobs.
  const nlohmann::ordered_json &logprobs() const { return logprobEntries; }

  /// Empty if only ids are written.
  std::string text() const { return ids ? "" : written; }

private:
  /// Removes control characters, which could move the cursor or change the terminal's colors and
  /// title.
  std::string shown(const std::string &text) const {
    return terminal ? sanitizeForTerminal(text) : text;
  }

  nlohmann::ordered_json entryOf(int32_t token, double logprob) const {
    nlohmann::ordered_json entry = {{"token", token}, {"logprob", logprob}};
    if (tokenizer)
      entry["text"] = tokenizer->textOf(token);
    return entry;
  }

  void noteLogprobs(int32_t token, std::span<const float> logits) {
    LogProbabilities found = logProbabilities(logits, token, static_cast<size_t>(*numLogprobs));
    nlohmann::ordered_json entry = entryOf(token, found.chosen);
    entry["top"] = nlohmann::ordered_json::array();
    for (auto [other, logprob] : found.top)
      entry["top"].push_back(entryOf(other, logprob));
    logprobEntries.push_back(std::move(entry));
  }

  const ProgramTokenizer *tokenizer; ///< null: ids only
  std::optional<int64_t> numLogprobs;
  nlohmann::ordered_json logprobEntries = nlohmann::ordered_json::array();
  bool streaming, ids, terminal;
  NpyWriter *logitsFile;
  int64_t sequence;
  std::optional<TextStream> decoded; ///< none without a tokenizer
  std::string written;
};

std::string report(const Manifest &m, const std::vector<Tokens> &prompts,
                   const GenerateResult &result, const std::deque<Writer> &writers, uint64_t seed,
                   const char *drafts, bool withLogprobs) {
  nlohmann::ordered_json sequences = nlohmann::ordered_json::array();
  for (size_t s = 0; s < prompts.size(); ++s) {
    const RequestResult &generated = result.texts[s];
    sequences.push_back({{"prompt_tokens", prompts[s]},
                         {"tokens", generated.tokens},
                         {"text", writers[s].text()},
                         {"finish", nameOf(generated.finish)}});
    if (withLogprobs)
      sequences.back()["logprobs"] = writers[s].logprobs();
  }
  const Scheduler::Totals &totals = result.totals;
  nlohmann::ordered_json json = {
      {"model", m.name},
      {"seed", seed},
      {"sequences", sequences},
      {"prefill",
       {{"tokens", totals.promptTokens},
        {"seconds", totals.promptSeconds},
        {"tokens_per_s", tokensPerSecond(totals.promptTokens, totals.promptSeconds)}}},
      {"decode",
       {{"tokens", totals.decodeTokens},
        {"seconds", totals.decodeSeconds},
        {"tokens_per_s", tokensPerSecond(totals.decodeTokens, totals.decodeSeconds)}}}};
  if (totals.recomputedTokens > 0)
    json["recomputed"] = {{"tokens", totals.recomputedTokens},
                          {"seconds", totals.recomputeSeconds}};
  if (drafts)
    json[drafts] = {
        {"drafted", totals.drafted}, {"accepted", totals.accepted}, {"calls", totals.decodeCalls}};
  return toJsonText(json) + "\n";
}

/// What drafts tokens, for display; null: nothing.
const char *nameOfDrafts(const GenerationSettings &settings) {
  return settings.mtp.value_or(0) > 0      ? "mtp"
         : settings.lookup.value_or(0) > 0 ? "lookup"
                                           : nullptr;
}

void noteSpeed(const Scheduler::Totals &totals, const char *drafts) {
  char line[160];
  std::snprintf(line, sizeof line,
                "prompt: %lld tokens, %.1f per second; generation: %lld tokens, %.1f per second",
                static_cast<long long>(totals.promptTokens),
                tokensPerSecond(totals.promptTokens, totals.promptSeconds),
                static_cast<long long>(totals.decodeTokens),
                tokensPerSecond(totals.decodeTokens, totals.decodeSeconds));
  reportNote(line);
  if (drafts)
    reportNote(std::string(drafts) + ": " + std::to_string(totals.accepted) + " of " +
               std::to_string(totals.drafted) + " drafted tokens were accepted, " +
               std::to_string(totals.decodeCalls) + " passes");
  noteRecomputed(totals.recomputedTokens, totals.recomputeSeconds);
}

Result<std::unique_ptr<NpyWriter>> openLogits(const RunArguments &arguments, const Manifest &m,
                                              const std::vector<Tokens> &prompts) {
  std::vector<int64_t> capacities;
  for (const Tokens &prompt : prompts) {
    int64_t maxTokens = arguments.settings.maxTokens.value_or(GenerationSettings::defaultMaxTokens);
    int64_t computed = static_cast<int64_t>(prompt.size()) + std::max<int64_t>(0, maxTokens - 1);
    capacities.push_back(std::min(computed, m.maxSeq));
  }
  return NpyWriter::create(*arguments.logits, m.vocab, capacities);
}

Status finishRun(const Model &model, const RunArguments &arguments,
                 const std::vector<Tokens> &sequences, const GenerateResult &result,
                 std::deque<Writer> &writers) {
  for (Writer &writer : writers)
    if (Status done = writer.finish(!arguments.json); !done)
      return done;
  const char *drafts = nameOfDrafts(arguments.settings);
  if (arguments.json)
    if (Status done =
            writeOut(report(model.manifest(), sequences, result, writers, result.texts.front().seed,
                            drafts, arguments.logprobs.has_value()));
        !done)
      return done;
  for (const RequestResult &generated : result.texts)
    if (generated.finish == Finish::ContextFull) {
      reportNote("the context (" + std::to_string(model.manifest().maxSeq) +
                 " positions) is full; generation stopped");
      break;
    }
  if (arguments.verbose)
    noteSpeed(result.totals, drafts);
  return {};
}

/// Generates the texts of all sequences in one batch.
Result<GenerateResult> generateAll(const Model &model, const RunArguments &arguments,
                                   const std::vector<Tokens> &sequences, const Tokens &endOfTurn,
                                   bool allLogits, std::deque<Writer> &writers) {
  // Invalid prompts are rejected before memory is reserved for caches.
  for (const Tokens &prompt : sequences)
    if (Status fits = checkPrompt(model.manifest(), prompt); !fits)
      return fits.error();
  Result<std::unique_ptr<Scheduler>> scheduler = Scheduler::create(
      model, {.slots = static_cast<int64_t>(sequences.size()),
              .promptRows = prefillChunkSize(arguments.prefillChunk, model.manifest(), allLogits),
              .promptsShareCalls = true,
              .promptsFirst = true});
  if (!scheduler)
    return scheduler.error();
  GenerationSettings settings = arguments.settings;
  settings.endTokens = endOfTurn;
  if (!settings.seed)
    settings.seed = drawSeed();
  std::vector<Request> requests;
  std::vector<RequestListener *> listeners;
  for (size_t s = 0; s < sequences.size(); ++s) {
    requests.push_back(
        {.prompt = sequences[s], .settings = settings, .stream = s, .allLogits = allLogits});
    listeners.push_back(&writers[s]);
  }
  return generate(**scheduler, std::move(requests), listeners);
}
} // namespace

Status runCommand(const Model &model, const RunArguments &given) {
  RunArguments arguments = given;
  Result<ProgramText> text =
      ProgramText::load(model.file(), model.manifest(), arguments.templateFile);
  if (!text)
    return text.error();
  Result<GenerationSettings> usable =
      usableSettings(std::move(arguments.settings), model.manifest(), text->tokenizer.get());
  if (!usable)
    return usable.error();
  arguments.settings = *std::move(usable);
  if (arguments.batch)
    return batchCommand(model, text->manifest, text->tokenizer.get(), arguments);
  std::optional<ChatTemplate> chatTemplate;
  if (arguments.chat) {
    Result<ChatTemplate> loaded = text->chatTemplate(arguments.chatTemplate);
    if (!loaded)
      return loaded.error();
    chatTemplate.emplace(*std::move(loaded));
  }
  Result<std::vector<Tokens>> sequences = prompts(
      arguments, model.manifest(), text->tokenizer.get(), chatTemplate ? &*chatTemplate : nullptr);
  if (!sequences)
    return sequences.error();
  std::unique_ptr<NpyWriter> logits;
  if (arguments.logits) {
    Result<std::unique_ptr<NpyWriter>> opened = openLogits(arguments, model.manifest(), *sequences);
    if (!opened)
      return opened.error();
    logits = *std::move(opened);
  }
  std::deque<Writer> writers;
  bool streaming = sequences->size() == 1 && !arguments.json;
  for (const Tokens &prompt : *sequences)
    writers.emplace_back(arguments, text->tokenizer.get(), prompt, streaming, logits.get(),
                         static_cast<int64_t>(writers.size()));
  Result<GenerateResult> result =
      generateAll(model, arguments, *sequences, chatTemplate ? chatTemplate->endOfTurn() : Tokens(),
                  logits != nullptr, writers);
  if (!result)
    return result.error();
  if (logits)
    if (Status done = logits->commit(); !done)
      return done;
  return finishRun(model, arguments, *sequences, *result, writers);
}

} // namespace mica::rt
