#include "backends/runtime/commands/BatchCommand.h"
#include "backends/runtime/commands/BatchResults.h"
#include "backends/runtime/commands/GenerationReport.h"
#include "backends/runtime/engine/Scheduler.h"
#include "backends/runtime/engine/SettingTable.h"
#include "backends/runtime/support/Hash.h"
#include "backends/runtime/support/Output.h"
#include "backends/runtime/text/TextStream.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <list>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace mica::rt {

namespace {
uint64_t hashOf(const nlohmann::ordered_json &json) {
  std::string text = toJsonText(json);
  return hashBytes(text.data(), text.size());
}

int64_t maxTokensOf(const GenerationSettings &settings) {
  return settings.maxTokens.value_or(GenerationSettings::defaultMaxTokens);
}

/// A hash of everything that affects all results besides the requests: the program and the options.
uint64_t hashOfSettings(const Model &model, const RunArguments &arguments) {
  const GenerationSettings &settings = arguments.settings;
  SamplingOptions sampling = samplingOptions(settings, model.manifest());
  std::vector<std::pair<std::string, double>> recommended;
  nlohmann::ordered_json others = nlohmann::ordered_json::object(), methods = others;
  forEachSetting([&](const auto &setting) {
    std::string name(setting.name), method(setting.method);
    auto value = sampling.*setting.option;
    if (setting.recommended)
      recommended.emplace_back(name, value);
    else if (method.empty())
      others[name] = value;
    else
      methods[method].push_back(value);
  });
  methods["dry"].push_back(sampling.dryBreakers);
  nlohmann::ordered_json json = {{"program", model.manifest().json}, {"sampling", recommended}};
  json.update(others);
  json.update({{"max_tokens", maxTokensOf(settings)},
               {"stops", settings.stops},
               {"ignore_eos", settings.ignoreEos},
               {"tokens", arguments.printTokens}});
  // A random seed differs from run to run; results contain theirs.
  if (settings.seed)
    json["seed"] = *settings.seed;
  // Methods that are off are omitted, so that results from before they existed are found.
  for (const auto &[method, values] : methods.items())
    if (values.front() != 0)
      json[method] = values;
  for (const LogitBias &bias : sampling.logitBias)
    json["logit_bias"].push_back({bias.token, bias.bias});
  return hashOf(json);
}

std::string digestOf(uint64_t settings, const BatchRequest &request) {
  const GenerationSettings &own = request.settings;
  nlohmann::ordered_json json = {settings, request.prompt, own.endTokens,
                                 own.maxTokens.value_or(-1)};
  if (own.seed)
    json.push_back(*own.seed);
  char digest[17];
  std::snprintf(digest, sizeof digest, "%016" PRIx64, hashOf(json));
  return digest;
}

/// The texts of all requests, in order.
class BatchTexts {
public:
  BatchTexts(BatchRequests &requests, uint64_t settings)
      : requests(requests), settings(settings), place(requests.place()) {}

  /// The next text; nothing after the last one.
  Result<std::optional<BatchText>> next();

  /// A position to which the sequence of texts can be rewound.
  struct Mark {
    BatchRequests::Place place; ///< of the request
    int64_t sample;
  };
  /// The position of the last text returned by `next`.
  Mark mark() const { return {place, sample - 1}; }
  Status goTo(Mark mark);

private:
  Status read();

  BatchRequests &requests;
  uint64_t settings;
  BatchRequests::Place place;                  ///< of the request
  std::shared_ptr<const BatchRequest> request; ///< null: none yet, or no more
  std::string digest;
  int64_t sample = 0; ///< the next one
};

Status BatchTexts::read() {
  place = requests.place();
  Result<std::shared_ptr<const BatchRequest>> found = requests.next();
  if (!found)
    return found.error();
  request = *std::move(found);
  digest = request ? digestOf(settings, *request) : "";
  sample = 0;
  return {};
}

Result<std::optional<BatchText>> BatchTexts::next() {
  if (!request || sample == request->count)
    if (Status done = read(); !done)
      return done.error();
  if (!request)
    return std::optional<BatchText>();
  return std::optional<BatchText>({request, sample++, digest});
}

Status BatchTexts::goTo(Mark mark) {
  requests.goTo(mark.place);
  Status done = read();
  sample = mark.sample;
  return done;
}

/// A text in progress.
class Writing final : public RequestListener {
public:
  Writing(BatchText wanted, size_t index, std::optional<TextStream> decoded)
      : wanted(std::move(wanted)), index(index), decoded(std::move(decoded)) {}

  Result<bool> token(int32_t token, std::span<const float>) override {
    if (decoded)
      text += decoded->push(token);
    return !decoded || !decoded->stopped();
  }
  void finished(const RequestResult &finished) override {
    if (decoded)
      text += decoded->finish();
    result = finished;
  }

  const BatchText wanted;
  const size_t index; ///< of the text
  std::string text;
  std::optional<RequestResult> result; ///< none: it is in progress

private:
  std::optional<TextStream> decoded;
};

/// Submits as many texts to the scheduler as it has slots, and another one whenever one is done.
class Batch {
public:
  Batch(Scheduler &scheduler, size_t slots, const ProgramTokenizer *text,
        const RunArguments &arguments, BatchTexts &texts, size_t total, BatchResults &results)
      : scheduler(scheduler), slots(slots), text(text), arguments(arguments),
        seed(arguments.settings.seed.value_or(drawSeed())), texts(texts), total(total),
        results(results), next(results.done()) {}

  Status run() {
    Status status;
    do {
      while (status && inProgress.size() < slots && next < total)
        status = start();
      if (status && !inProgress.empty())
        scheduler.step();
      if (status)
        status = writeFinished();
    } while (status && (next < total || !inProgress.empty()));
    return status;
  }

private:
  Status start();
  Status writeFinished();
  uint64_t seedOf(const BatchText &wanted) const;
  std::string describe(const Writing &done) const;
  void showProgress() const;

  Scheduler &scheduler;
  size_t slots;
  const ProgramTokenizer *text;
  const RunArguments &arguments;
  uint64_t seed;
  BatchTexts &texts;
  size_t total;
  BatchResults &results;
  size_t next;
  std::list<Writing> inProgress;
};

/// The seed with which the program generates this text on its own. Random seeds have 53 bits, which
/// every JSON parser reads exactly.
uint64_t Batch::seedOf(const BatchText &wanted) const {
  auto derived = [](uint64_t seed, int64_t number) {
    return Random(seed ^ Random(static_cast<uint64_t>(number)).next()).next() >> 11;
  };
  const BatchRequest &request = *wanted.request;
  uint64_t own = request.settings.seed.value_or(derived(seed, request.line));
  return wanted.sample == 0 ? own : derived(own, wanted.sample);
}

Status Batch::start() {
  Result<std::optional<BatchText>> found = texts.next();
  if (!found)
    return found.error();
  // The file has been truncated in the meantime.
  if (!*found) {
    total = next;
    return {};
  }
  BatchText &wanted = **found;
  Request request{.prompt = wanted.request->prompt,
                  .settings = wanted.request->settings.orElse(arguments.settings)};
  request.settings.seed = seedOf(wanted);
  std::optional<TextStream> decoded;
  if (text)
    decoded.emplace(text->decoderAfter(request.prompt), arguments.settings.stops);
  Writing &writing = inProgress.emplace_back(std::move(wanted), next++, std::move(decoded));
  // The logits of a prompt without new tokens are not used.
  if (maxTokensOf(request.settings) == 0) {
    RequestResult nothing;
    nothing.seed = *request.settings.seed;
    writing.finished(nothing);
    return {};
  }
  Result<Scheduler::RequestId> id = scheduler.submit(std::move(request), writing);
  return id ? Status() : id.error();
}

/// Writes the results of the texts that are done.
Status Batch::writeFinished() {
  for (auto at = inProgress.begin(); at != inProgress.end();) {
    if (!at->result) {
      ++at;
      continue;
    }
    if (at->result->finish == Finish::Failed)
      return at->result->error;
    if (Status written = results.add(at->index, describe(*at)); !written)
      return written;
    at = inProgress.erase(at);
    showProgress();
  }
  return {};
}

std::string Batch::describe(const Writing &done) const {
  const BatchText &wanted = done.wanted;
  nlohmann::ordered_json json = {{"line", wanted.request->line}, {"sample", wanted.sample}};
  if (!wanted.request->id.empty())
    json["id"] = nlohmann::ordered_json::parse(wanted.request->id);
  if (text && !arguments.printTokens)
    json["text"] = done.text;
  else
    json["tokens"] = done.result->tokens;
  json["finish"] = nameOf(done.result->finish);
  json["seed"] = done.result->seed;
  json["prompt_tokens"] = wanted.request->prompt.size();
  json["new_tokens"] = done.result->tokens.size();
  json["digest"] = wanted.digest;
  return toJsonText(json);
}

void Batch::showProgress() const {
  if (arguments.output && isatty(STDERR_FILENO))
    std::fprintf(stderr, "\r%zu of %zu texts%s", results.done(), total,
                 results.done() == total ? "\n" : "");
}
} // namespace

Status batchCommand(const Model &model, const Manifest &manifest, const ProgramTokenizer *text,
                    const RunArguments &arguments) {
  auto requests = BatchRequests::open(text, manifest, arguments);
  if (!requests)
    return requests.error();
  auto results = BatchResults::open(arguments.output);
  if (!results)
    return results.error();
  // All requests are read before anything is computed, so that an error in the last one is reported
  // first.
  BatchTexts texts(**requests, hashOfSettings(model, arguments));
  BatchTexts::Mark first{};
  size_t total = 0;
  for (bool held = true;; ++total) {
    Result<std::optional<BatchText>> wanted = texts.next();
    if (!wanted)
      return wanted.error();
    if (!*wanted)
      break;
    if (!held)
      continue;
    first = texts.mark();
    Result<bool> found = (*results)->holds(**wanted);
    if (!found)
      return found.error();
    held = *found;
  }
  if (Status begun = (*results)->begin(); !begun)
    return begun;
  auto left = static_cast<int64_t>(total - (*results)->done());
  if (left == 0)
    return {};
  if (Status ready = texts.goTo(first); !ready)
    return ready;
  int64_t slots = std::min(*arguments.batch, left);
  // Each prompt is computed independently, so that its text does not depend on others.
  Result<std::unique_ptr<Scheduler>> scheduler = Scheduler::create(
      model, {.slots = slots,
              .promptRows = prefillChunkSize(arguments.prefillChunk, model.manifest()),
              .promptsFirst = true});
  if (!scheduler)
    return scheduler.error();
  Status done =
      Batch(**scheduler, static_cast<size_t>(slots), text, arguments, texts, total, **results)
          .run();
  if (Scheduler::Totals totals = (*scheduler)->totals(); done && arguments.verbose)
    noteRecomputed(totals.recomputedTokens, totals.recomputeSeconds);
  return done;
}

} // namespace mica::rt
