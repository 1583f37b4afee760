#include "backends/cpu/runtime/BatchCommand.h"
#include "backends/cpu/program/Hash.h"
#include "backends/cpu/runtime/BatchResults.h"
#include "backends/cpu/runtime/Output.h"
#include "backends/cpu/runtime/RunCommand.h"
#include "backends/cpu/runtime/StopText.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace mica::rt {

namespace {
uint64_t hashOf(const nlohmann::ordered_json &json) {
  std::string text = toJsonText(json);
  return program::hashBytes(text.data(), text.size());
}

/// Of all that decides every text beside its request: the program and the options.
uint64_t hashOfSettings(const Model &model, const RunArguments &arguments) {
  SamplingOptions sampling = samplingOptions(arguments, model.manifest());
  nlohmann::ordered_json json = {{"program", model.manifest().json},
                                 {"sampling", describeSampling(sampling)},
                                 {"presence_penalty", sampling.presencePenalty},
                                 {"frequency_penalty", sampling.frequencyPenalty},
                                 {"max_tokens", arguments.maxTokens},
                                 {"stops", arguments.stops},
                                 {"ignore_eos", arguments.ignoreEos},
                                 {"tokens", arguments.printTokens}};
  // A seed that is drawn is another one each time; results say theirs.
  if (arguments.seed)
    json["seed"] = *arguments.seed;
  for (const LogitBias &bias : sampling.logitBias)
    json["logit_bias"].push_back({bias.token, bias.bias});
  return hashOf(json);
}

std::string digestOf(uint64_t settings, const BatchRequest &request) {
  nlohmann::ordered_json json = {settings, request.prompt, request.endTokens,
                                 request.maxTokens.value_or(-1)};
  if (request.seed)
    json.push_back(*request.seed);
  char digest[17];
  std::snprintf(digest, sizeof digest, "%016" PRIx64, hashOf(json));
  return digest;
}

/// The texts that requests ask for, one after the other.
class BatchTexts {
public:
  BatchTexts(BatchRequests &requests, uint64_t settings)
      : requests(requests), settings(settings), place(requests.place()) {}

  /// The next text; none behind the last one.
  Result<std::optional<BatchText>> next();

  /// From where on texts can be asked for once more.
  struct Mark {
    BatchRequests::Place place; ///< of the request
    int64_t sample;
  };
  /// Of the text that `next` gave last.
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

/// A sequence of the session, and the text that is made in it.
struct Slot {
  BatchText wanted;
  size_t index; ///< of the text
  uint64_t seed;
  int64_t maxTokens;
  Sampler sampler;
  StopText stop;
  std::optional<Tokenizer::Decoder> decoder = {};
  Tokens tokens = {};
  std::string text = {};
  Finish finish = Finish::Length;
};

/// Fills each sequence with the next text when the one before is done.
class Batch {
public:
  Batch(const Model &model, Session &session, const Text *text, const RunArguments &arguments,
        BatchTexts &texts, size_t total, BatchResults &results)
      : model(model), session(session), text(text), arguments(arguments),
        options(samplingOptions(arguments, model.manifest())), texts(texts), total(total),
        results(results), next(results.done()), slots(static_cast<size_t>(session.sequences())) {}

  Status run() {
    Status status;
    do {
      for (size_t s = 0; s < slots.size() && status; ++s)
        while (!slots[s] && next < total && status)
          status = start(s);
      if (status)
        status = step();
    } while (status && (next < total || anyInProgress()));
    return status;
  }

private:
  bool anyInProgress() const {
    return std::any_of(slots.begin(), slots.end(), [](const auto &slot) { return !!slot; });
  }
  Status start(size_t s);
  Status start(size_t s, BatchText wanted);
  Status step();
  Status runRows(std::vector<size_t> &rows);
  Status take(size_t s, std::span<const float> logits);
  Status finish(size_t s);
  uint64_t seedOf(const BatchText &wanted) const;
  std::string describe(const Slot &slot) const;
  void showProgress() const;

  const Model &model;
  Session &session;
  const Text *text;
  const RunArguments &arguments;
  SamplingOptions options;
  BatchTexts &texts;
  size_t total;
  BatchResults &results;
  size_t next;
  std::vector<std::optional<Slot>> slots; ///< None: the sequence is free.
};

/// The seed with which the program alone makes this text. Those that are not the user's have 53
/// bits, which every reader of JSON takes as they are.
uint64_t Batch::seedOf(const BatchText &wanted) const {
  auto derived = [](uint64_t seed, int64_t number) {
    return Random(seed ^ Random(static_cast<uint64_t>(number)).next()).next() >> 11;
  };
  const BatchRequest &request = *wanted.request;
  uint64_t seed = request.seed.value_or(derived(options.seed, request.line));
  return wanted.sample == 0 ? seed : derived(seed, wanted.sample);
}

Status Batch::start(size_t s) {
  Result<std::optional<BatchText>> wanted = texts.next();
  if (!wanted)
    return wanted.error();
  // The file has become shorter meanwhile.
  if (!*wanted)
    total = next;
  return *wanted ? start(s, **std::move(wanted)) : Status();
}

/// Reads the text's prompt as if it were alone, so that its text does not depend on others.
Status Batch::start(size_t s, BatchText wanted) {
  std::shared_ptr<const BatchRequest> kept = wanted.request;
  const BatchRequest &request = *kept;
  SamplingOptions own = options;
  own.seed = seedOf(wanted);
  slots[s].emplace(Slot{std::move(wanted), next++, own.seed,
                        request.maxTokens.value_or(arguments.maxTokens),
                        Sampler(own, model.manifest().vocab), StopText(arguments.stops)});
  if (text)
    slots[s]->decoder = text->decoderAfter(request.prompt);
  for (int32_t token : request.prompt)
    slots[s]->sampler.observe(token);
  if (slots[s]->maxTokens == 0)
    return finish(s);
  auto sequence = static_cast<int64_t>(s);
  session.truncate(sequence, 0);
  session.expect(sequence, static_cast<int64_t>(request.prompt.size()));
  for (size_t i = 0; i < request.prompt.size(); ++i) {
    bool last = i + 1 == request.prompt.size();
    if (Status pushed = session.push(sequence, request.prompt[i], RowRole::Prompt, last); !pushed)
      return pushed;
    if (!last && session.queued() < session.chunk())
      continue;
    Result<std::span<const float>> logits = session.run();
    if (!logits)
      return logits.error();
    if (last)
      return take(s, *logits);
  }
  return {};
}

/// One token for every text in progress.
Status Batch::step() {
  std::vector<size_t> rows;
  for (size_t s = 0; s < slots.size(); ++s) {
    if (!slots[s])
      continue;
    if (session.atMemoryLimit())
      if (Status ran = runRows(rows); !ran)
        return ran;
    int32_t newest = slots[s]->tokens.back();
    if (Status pushed =
            session.push(static_cast<int64_t>(s), newest, RowRole::Decode, /*wantLogits=*/true);
        !pushed)
      return pushed;
    rows.push_back(s);
  }
  return rows.empty() ? Status() : runRows(rows);
}

/// Runs what is queued: a row of each of these slots, which are forgotten.
Status Batch::runRows(std::vector<size_t> &rows) {
  Result<std::span<const float>> logits = session.run();
  if (!logits)
    return logits.error();
  auto vocab = static_cast<size_t>(model.manifest().vocab);
  for (size_t row = 0; row < rows.size(); ++row)
    if (Status taken = take(rows[row], logits->subspan(row * vocab, vocab)); !taken)
      return taken;
  rows.clear();
  return {};
}

Status Batch::take(size_t s, std::span<const float> logits) {
  Slot &slot = *slots[s];
  Result<int32_t> token = slot.sampler.sample(logits);
  if (!token)
    return token.error();
  slot.sampler.append(*token);
  slot.tokens.push_back(*token);
  if (slot.decoder)
    slot.text += slot.stop.push(slot.decoder->push(*token));
  auto isIn = [&](const std::vector<int32_t> &ids) {
    return std::find(ids.begin(), ids.end(), *token) != ids.end();
  };
  bool ended =
      !arguments.ignoreEos && (isIn(model.manifest().eos) || isIn(slot.wanted.request->endTokens));
  bool full = session.room(static_cast<int64_t>(s)) == 0;
  bool enough = static_cast<int64_t>(slot.tokens.size()) >= slot.maxTokens;
  if (!ended && !slot.stop.stopped() && !full && !enough)
    return {};
  slot.finish = ended                 ? Finish::EndToken
                : slot.stop.stopped() ? Finish::StopText
                : enough              ? Finish::Length
                                      : Finish::ContextFull;
  return finish(s);
}

Status Batch::finish(size_t s) {
  Slot &slot = *slots[s];
  if (slot.decoder)
    slot.text += slot.stop.push(slot.decoder->finish()) + slot.stop.finish();
  Status written = results.add(slot.index, describe(slot));
  slots[s].reset();
  showProgress();
  return written;
}

std::string Batch::describe(const Slot &slot) const {
  const BatchText &wanted = slot.wanted;
  nlohmann::ordered_json json = {{"line", wanted.request->line}, {"sample", wanted.sample}};
  if (!wanted.request->id.empty())
    json["id"] = nlohmann::ordered_json::parse(wanted.request->id);
  if (text && !arguments.printTokens)
    json["text"] = slot.text;
  else
    json["tokens"] = slot.tokens;
  json["finish"] = nameOf(slot.finish);
  json["seed"] = slot.seed;
  json["prompt_tokens"] = wanted.request->prompt.size();
  json["new_tokens"] = slot.tokens.size();
  json["digest"] = wanted.digest;
  return toJsonText(json);
}

void Batch::showProgress() const {
  if (arguments.output && isatty(STDERR_FILENO))
    std::fprintf(stderr, "\r%zu of %zu texts%s", results.done(), total,
                 results.done() == total ? "\n" : "");
}
} // namespace

Status batchCommand(const Model &model, const Text *text, const RunArguments &arguments) {
  auto requests = BatchRequests::open(text, model.manifest(), arguments);
  if (!requests)
    return requests.error();
  auto results = BatchResults::open(arguments.output);
  if (!results)
    return results.error();
  // All are read once before anything is computed: what is wrong with the last one is said first.
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
  Result<std::unique_ptr<Session>> session =
      Session::create(model, std::min(*arguments.batch, left),
                      rowsOfChunk(arguments.prefillChunk, model.manifest()));
  if (!session)
    return session.error();
  Status done = Batch(model, **session, text, arguments, texts, total, **results).run();
  if (done && arguments.verbose)
    noteReadAgain((*session)->readAgain(), (*session)->secondsReadAgain());
  return done;
}

} // namespace mica::rt
