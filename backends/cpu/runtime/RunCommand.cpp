#include "backends/cpu/runtime/RunCommand.h"
#include "backends/cpu/runtime/BatchCommand.h"
#include "backends/cpu/runtime/ChatTemplate.h"
#include "backends/cpu/runtime/Npy.h"
#include "backends/cpu/runtime/Output.h"
#include "backends/cpu/runtime/Report.h"
#include "backends/cpu/runtime/StopText.h"
#include "backends/cpu/runtime/TextFile.h"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <sys/random.h>
#include <unistd.h>

namespace mica::rt {

namespace {

/// The token sequences that the arguments ask for.
Result<std::vector<Tokens>> prompts(const RunArguments &arguments, const Manifest &m,
                                    const Text *text, const ChatTemplate *chatTemplate) {
  if (!arguments.tokens.empty())
    return arguments.tokens;
  if (!arguments.prompt && !arguments.file) {
    if (!m.bos)
      return Error{"this model has no token to begin with, give a prompt with -p, -f or --tokens"};
    return std::vector<Tokens>{{*m.bos}};
  }
  if (!text)
    return Error{std::string(noTokenizer) + "with --tokens"};
  Result<std::string> prompt = arguments.prompt ? Result<std::string>(*arguments.prompt)
                                                : readTextFile(*arguments.file, "prompt", "-f");
  if (!prompt)
    return prompt.error();
  std::vector<Message> messages;
  if (arguments.system)
    messages.push_back({"system", *arguments.system});
  messages.push_back({"user", *prompt});
  Result<Tokens> ids = chatTemplate ? chatTemplate->encode(messages, true) : text->encode(*prompt);
  if (!ids)
    return ids.error();
  return std::vector<Tokens>{*ids};
}

/// Streams a single sequence; several are written one after the other at the end.
class Writer final : public GenerateListener {
public:
  Writer(const RunArguments &arguments, const Text *text, const std::vector<Tokens> &prompts,
         NpyWriter *logitsFile)
      : streaming(prompts.size() == 1 && !arguments.json), ids(arguments.printTokens || !text),
        terminal(streaming && isatty(STDOUT_FILENO)), logitsFile(logitsFile) {
    for (const Tokens &prompt : prompts) {
      if (text)
        decoders.push_back(text->decoderAfter(prompt));
      stops.emplace_back(arguments.stops);
    }
    texts.resize(prompts.size());
  }

  Status token(int64_t sequence, int32_t token) override {
    std::string &text = texts[sequence];
    std::string piece =
        decoders.empty() ? "" : stops[sequence].push(decoders[sequence].push(token));
    if (ids)
      piece = (text.empty() ? "" : " ") + std::to_string(token);
    text += piece;
    return streaming ? writeOut(shown(piece)) : Status();
  }

  bool goesOn(int64_t sequence) override { return !stops[sequence].stopped(); }

  Status logits(int64_t sequence, std::span<const float> row) override {
    return logitsFile->append(sequence, row);
  }

  /// Ends the texts; writes what has not been streamed.
  Status finish(bool write) {
    for (size_t s = 0; s < texts.size(); ++s) {
      std::string rest;
      if (!ids)
        rest = stops[s].push(decoders[s].finish()) + stops[s].finish();
      texts[s] += rest;
      if (!write)
        continue;
      bool endLine = ids || !texts[s].ends_with('\n');
      if (Status done = writeOut(shown(streaming ? rest : texts[s]) + (endLine ? "\n" : "")); !done)
        return done;
    }
    return {};
  }

  /// The text of a sequence; empty where only ids are written.
  std::string text(size_t sequence) const { return ids ? "" : texts[sequence]; }

private:
  /// What a model writes may not move the cursor or set a terminal's colours and title.
  std::string shown(std::string text) const { return terminal ? harmless(text) : text; }

  bool streaming, ids, terminal;
  NpyWriter *logitsFile;
  std::vector<Tokenizer::Decoder> decoders; ///< None without a tokenizer.
  std::vector<StopText> stops;
  std::vector<std::string> texts;
};

} // namespace

const char *nameOf(Finish finish) {
  switch (finish) {
  case Finish::Length:
    return "length";
  case Finish::EndToken:
    return "stop";
  case Finish::ContextFull:
    return "context";
  case Finish::StopText:
    return "stop_text";
  }
  return "";
}

namespace {

double rate(int64_t tokens, double seconds) {
  return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
}

std::string report(const Manifest &m, const std::vector<Tokens> &prompts,
                   const GenerateResult &result, const Writer &writer, uint64_t seed, bool lookup) {
  nlohmann::ordered_json sequences = nlohmann::ordered_json::array();
  for (size_t s = 0; s < prompts.size(); ++s) {
    const Generated &generated = result.sequences[s];
    sequences.push_back({{"prompt_tokens", prompts[s]},
                         {"tokens", generated.tokens},
                         {"text", writer.text(s)},
                         {"finish", nameOf(generated.finish)}});
  }
  nlohmann::ordered_json json = {
      {"model", m.name},
      {"seed", seed},
      {"sequences", sequences},
      {"prefill",
       {{"tokens", result.promptTokens},
        {"seconds", result.promptSeconds},
        {"tokens_per_s", rate(result.promptTokens, result.promptSeconds)}}},
      {"decode",
       {{"tokens", result.decodeTokens},
        {"seconds", result.decodeSeconds},
        {"tokens_per_s", rate(result.decodeTokens, result.decodeSeconds)}}}};
  if (result.readAgain > 0)
    json["read_again"] = {{"tokens", result.readAgain}, {"seconds", result.readAgainSeconds}};
  if (lookup)
    json["lookup"] = {
        {"drafted", result.drafted}, {"accepted", result.accepted}, {"calls", result.decodeCalls}};
  return toJsonText(json) + "\n";
}

void noteSpeed(const GenerateResult &result, bool lookup) {
  char line[160];
  std::snprintf(
      line, sizeof line,
      "prompt: %lld tokens, %.1f per second; generation: %lld tokens, %.1f per second",
      static_cast<long long>(result.promptTokens), rate(result.promptTokens, result.promptSeconds),
      static_cast<long long>(result.decodeTokens), rate(result.decodeTokens, result.decodeSeconds));
  reportNote(line);
  if (lookup)
    reportNote("lookup: " + std::to_string(result.accepted) + " of " +
               std::to_string(result.drafted) + " drafted tokens were right, " +
               std::to_string(result.decodeCalls) + " passes");
  noteReadAgain(result.readAgain, result.readAgainSeconds);
}

Result<std::unique_ptr<NpyWriter>> openLogits(const RunArguments &arguments, const Manifest &m,
                                              const std::vector<Tokens> &prompts) {
  std::vector<int64_t> capacities;
  for (const Tokens &prompt : prompts) {
    int64_t fed =
        static_cast<int64_t>(prompt.size()) + std::max<int64_t>(0, arguments.maxTokens - 1);
    capacities.push_back(std::min(fed, m.maxSeq));
  }
  return NpyWriter::create(*arguments.logits, m.vocab, capacities);
}

Status finishRun(const Model &model, const RunArguments &arguments,
                 const std::vector<Tokens> &sequences, const GenerateResult &result, Writer &writer,
                 uint64_t seed) {
  if (Status done = writer.finish(!arguments.json); !done)
    return done;
  if (arguments.json)
    if (Status done = writeOut(
            report(model.manifest(), sequences, result, writer, seed, arguments.lookup > 0));
        !done)
      return done;
  for (const Generated &generated : result.sequences)
    if (generated.finish == Finish::ContextFull) {
      reportNote("the context of " + std::to_string(model.manifest().maxSeq) +
                 " positions is full, generation ends");
      break;
    }
  if (arguments.verbose)
    noteSpeed(result, arguments.lookup > 0);
  return {};
}
} // namespace

void noteReadAgain(int64_t tokens, double seconds) {
  if (tokens == 0)
    return;
  char line[120];
  std::snprintf(line, sizeof line,
                "%lld tokens were read again in %.2f s: the model turns those of longer texts "
                "otherwise",
                static_cast<long long>(tokens), seconds);
  reportNote(line);
}

SamplingOptions samplingOptions(const RunArguments &arguments, const Manifest &manifest) {
  const Manifest::Generation &g = manifest.generation;
  SamplingOptions options;
  double temperature = g.doSample.value_or(true) ? g.temperature.value_or(options.temperature) : 0;
  options.temperature = arguments.temperature.value_or(temperature);
  options.topK = arguments.topK.value_or(g.topK.value_or(options.topK));
  options.topP = arguments.topP.value_or(g.topP.value_or(options.topP));
  options.minP = arguments.minP.value_or(g.minP.value_or(options.minP));
  options.typicalP = arguments.typicalP.value_or(g.typicalP.value_or(options.typicalP));
  options.presencePenalty = arguments.presencePenalty;
  options.frequencyPenalty = arguments.frequencyPenalty;
  options.logitBias = arguments.logitBias;
  options.repetitionPenalty =
      arguments.repetitionPenalty.value_or(g.repetitionPenalty.value_or(options.repetitionPenalty));
  uint64_t drawn = 0;
  // Without random bytes (an ancient kernel) every run draws the same numbers, which is no error.
  if (!arguments.seed && getrandom(&drawn, sizeof drawn, GRND_NONBLOCK) != sizeof drawn)
    drawn = 0;
  options.seed = arguments.seed.value_or(drawn);
  return options;
}

Status checkSampling(const RunArguments &arguments, const Manifest &manifest, const Text *text) {
  for (LogitBias bias : arguments.logitBias)
    if (bias.token >= manifest.vocab)
      return Error{"--logit-bias: token " + std::to_string(bias.token) +
                   " is not in the model's vocabulary (0 to " + std::to_string(manifest.vocab - 1) +
                   "), give another"};
  if (!arguments.stops.empty() && !text)
    return Error{"the program has no tokenizer to find a stop string with, leave out --stop"};
  return {};
}

std::vector<std::pair<std::string, double>> describeSampling(const SamplingOptions &options) {
  return {{"temperature", options.temperature},
          {"top_k", static_cast<double>(options.topK)},
          {"top_p", options.topP},
          {"min_p", options.minP},
          {"typical_p", options.typicalP},
          {"repetition_penalty", options.repetitionPenalty}};
}

Status runCommand(const Model &model, const RunArguments &arguments) {
  Result<std::unique_ptr<Text>> text = Text::load(model.file());
  if (!text)
    return text.error();
  if (Status usable = checkSampling(arguments, model.manifest(), text->get()); !usable)
    return usable;
  if (arguments.batch)
    return batchCommand(model, text->get(), arguments);
  std::optional<ChatTemplate> chatTemplate;
  Tokens endOfTurn;
  if (arguments.chat) {
    Result<ChatTemplate> loaded = ChatTemplate::load(model.manifest(), text->get());
    if (!loaded)
      return loaded.error();
    loaded->allowSpecial(arguments.special);
    if (arguments.tools)
      if (Status used = loaded->useTools(*arguments.tools); !used)
        return used;
    Result<Tokens> found = loaded->endOfTurn();
    if (!found)
      return found.error();
    endOfTurn = *std::move(found);
    chatTemplate.emplace(*std::move(loaded));
  }
  Result<std::vector<Tokens>> sequences =
      prompts(arguments, model.manifest(), text->get(), chatTemplate ? &*chatTemplate : nullptr);
  if (!sequences)
    return sequences.error();
  std::unique_ptr<NpyWriter> logits;
  if (arguments.logits) {
    Result<std::unique_ptr<NpyWriter>> opened = openLogits(arguments, model.manifest(), *sequences);
    if (!opened)
      return opened.error();
    logits = *std::move(opened);
  }
  GenerateOptions options{arguments.maxTokens,
                          rowsOfChunk(arguments.prefillChunk, model.manifest(), logits != nullptr),
                          arguments.ignoreEos,
                          logits != nullptr,
                          samplingOptions(arguments, model.manifest()),
                          arguments.lookup,
                          {},
                          endOfTurn,
                          0};
  Writer writer(arguments, text->get(), *sequences, logits.get());
  Result<GenerateResult> result = generate(model, *sequences, options, writer);
  if (!result)
    return result.error();
  if (logits)
    if (Status done = logits->commit(); !done)
      return done;
  return finishRun(model, arguments, *sequences, *result, writer, options.sampling.seed);
}

} // namespace mica::rt
