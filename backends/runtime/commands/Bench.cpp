#include "backends/runtime/commands/Bench.h"
#include "backends/runtime/engine/Generate.h"
#include "backends/runtime/profile/ProfileReport.h"
#include "backends/runtime/support/Output.h"
#include "backends/runtime/support/SizeText.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace mica::rt {

namespace {
constexpr int64_t defaultPrompt = 512, defaultGen = 64;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

Tokens randomTokens(Random &random, int64_t count, int64_t vocab) {
  Tokens tokens;
  for (int64_t i = 0; i < count; ++i)
    tokens.push_back(static_cast<int32_t>(random.next() % static_cast<uint64_t>(vocab)));
  return tokens;
}

/// The period of the default text in tokens.
constexpr int64_t period = 32;

/// The number of positions that must precede those measured by a test.
int64_t positionsBefore(const BenchTest &test) {
  return test.lookup > 0 ? std::max(test.depth, test.isGiven ? 1 : period) : test.depth;
}

/// The prompt of a test with lookup, and its continuation.
struct Script {
  Tokens prompt, rest;
};

Script givenScript(const Tokens &text, int64_t prompt) {
  auto middle = text.begin() + prompt;
  return {Tokens(text.begin(), middle), Tokens(middle, text.end())};
}

/// The prompt ends at the end of a period, and the continuation starts the next one.
Script repeatingScript(int64_t prompt, int64_t vocab) {
  Random random(2);
  Script script{{}, randomTokens(random, period, vocab)};
  for (int64_t i = 0; i < prompt; ++i)
    script.prompt.push_back(
        script.rest[static_cast<size_t>((i - prompt) % period + period) % period]);
  return script;
}

/// The measurements of one run of a test.
struct Run {
  double seconds = 0;
  int64_t calls = 0; ///< of the model
  int64_t drafted = 0, accepted = 0;
};

/// The sequences of a test, reused by all of its runs.
class BenchSequences {
public:
  static Result<std::unique_ptr<BenchSequences>> create(const Model &model, const BenchTest &test,
                                                        const BenchArguments &arguments) {
    Result<uint64_t> checkpoints =
        checkpointBudget(model.manifest(), std::nullopt, model.memoryBesidesWeights());
    if (!checkpoints)
      return checkpoints.error();
    Result<std::unique_ptr<Scheduler>> scheduler = Scheduler::create(
        model, {.slots = test.batch,
                .promptRows = prefillChunkSize(arguments.prefillChunk, model.manifest()),
                .promptsShareCalls = true,
                .promptsFirst = true,
                // Each run returns to the depth. Without one, calls have as many rows as possible.
                .checkpointBytes = test.depth > 0 ? *checkpoints : 0});
    if (!scheduler)
      return scheduler.error();
    std::unique_ptr<BenchSequences> made(
        new BenchSequences(test, model.manifest().vocab, *std::move(scheduler)));
    if (test.lookup > 0)
      made->prepareScript(arguments.text);
    else
      for (int64_t s = 0; s < test.batch; ++s)
        made->prompts.push_back(randomTokens(made->random, test.depth, model.manifest().vocab));
    return made;
  }

  Result<Run> run() {
    if (test.lookup == 0)
      if (Status filled = fillDepth(); !filled)
        return filled.error();
    Result<GenerateResult> result = generate(*scheduler, requests());
    if (!result)
      return result.error();
    const Scheduler::Totals &totals = result->totals;
    if (test.generate)
      return Run{totals.decodeSeconds, totals.decodeCalls, totals.drafted, totals.accepted};
    return Run{totals.promptSeconds, totals.promptCalls, 0, 0};
  }

private:
  BenchSequences(const BenchTest &test, int64_t vocab, std::unique_ptr<Scheduler> scheduler)
      : test(test), vocab(vocab), scheduler(std::move(scheduler)) {}

  void prepareScript(const Tokens &given) {
    script = test.isGiven ? givenScript(given, positionsBefore(test))
                          : repeatingScript(positionsBefore(test), vocab);
    prompts.assign(static_cast<size_t>(test.batch), script.prompt);
  }

  /// Fills the depth, or returns to it after another run: the states of a recurrent model are
  /// recomputed from a checkpoint, which the run must not measure.
  Status fillDepth() {
    if (test.depth == 0)
      return {};
    std::vector<Request> filling;
    filling.reserve(prompts.size());
    for (const Tokens &prompt : prompts)
      filling.push_back(request(prompt, 1, {0}));
    Result<GenerateResult> filled = generate(*scheduler, std::move(filling));
    return filled ? Status() : filled.error();
  }

  /// A request that continues with `forced`, whatever the model predicts.
  Request request(const Tokens &prompt, int64_t maxTokens, const Tokens &forced) const {
    Request request;
    request.prompt = prompt;
    request.forcedTokens = forced;
    request.settings.maxTokens = maxTokens;
    request.settings.ignoreEos = true;
    request.settings.lookup = test.lookup;
    request.settings.mtp = test.mtp;
    // Drafts depend on the text, so every run must start with its prompt.
    request.maxReused = test.lookup > 0 ? 0 : test.depth;
    request.totalLength = positionsBefore(test) + test.tokens;
    return request;
  }

  /// The requests of one run. The last token of a text is not computed.
  std::vector<Request> requests() {
    std::vector<Request> all;
    if (!test.generate) {
      for (const Tokens &prompt : prompts) {
        all.push_back(request(prompt, 1, {0}));
        Tokens more = randomTokens(random, test.tokens, vocab);
        all.back().prompt.insert(all.back().prompt.end(), more.begin(), more.end());
      }
      return all;
    }
    std::vector<Tokens> forced(prompts.size(), script.rest);
    if (test.lookup == 0)
      for (int64_t i = 0; i < test.tokens; ++i)
        for (Tokens &tokens : forced)
          tokens.push_back(randomTokens(random, 1, vocab).front());
    for (size_t s = 0; s < prompts.size(); ++s)
      all.push_back(request(prompts[s], test.tokens + 1, forced[s]));
    return all;
  }

  const BenchTest test;
  int64_t vocab;
  std::unique_ptr<Scheduler> scheduler;
  Random random{1};
  Script script;               ///< of a test with lookup
  std::vector<Tokens> prompts; ///< the tokens that fill the depth
};

/// Operations of matmuls with weights. Only the last row of a prompt has logits.
double flopsOf(const BenchTest &t, const Manifest::Cost &cost) {
  double rows = static_cast<double>(t.tokens * t.batch),
         withLogits = t.generate ? rows : static_cast<double>(t.batch);
  return rows * cost.flopsPerToken + withLogits * cost.flopsPerLogits;
}

void addTests(std::vector<BenchTest> &tests, const BenchArguments &arguments, const Manifest &m) {
  bool defaults = arguments.prompts.empty() && arguments.gens.empty();
  int64_t room = std::max<int64_t>(0, m.maxSeq - arguments.depth);
  bool isGiven = !arguments.text.empty();
  std::vector<int64_t> prompts = arguments.prompts, gens = arguments.gens,
                       batches = arguments.batches;
  if (defaults) {
    prompts = {std::min(defaultPrompt, room)};
    gens = {std::min(defaultGen, room)};
  }
  if (batches.empty())
    batches = {1};
  for (int64_t prompt : prompts)
    if (prompt > 0)
      tests.push_back({false, prompt, 1, arguments.depth});
  for (int64_t batch : batches)
    for (int64_t gen : gens)
      if (gen > 0)
        tests.push_back({true, gen, batch, arguments.depth});
  for (int64_t batch : batches)
    for (int64_t gen : gens)
      if (gen > 0 && arguments.lookup > 0)
        tests.push_back({true, gen, batch, arguments.depth, arguments.lookup, isGiven});
  for (int64_t batch : batches)
    for (int64_t gen : gens)
      if (gen > 0 && arguments.mtp > 0)
        tests.push_back({true, gen, batch, arguments.depth, 0, false, arguments.mtp});
}

/// Whether the given text is long enough for the tests, and valid for this model.
Status checkText(const std::vector<BenchTest> &tests, const BenchArguments &arguments,
                 const Manifest &m) {
  if (arguments.lookup == 0)
    return Error{"--tokens is the text of --lookup tests; add --lookup N"};
  for (int32_t token : arguments.text)
    if (token >= m.vocab)
      return Error{"token " + std::to_string(token) +
                   " of --tokens is not below the vocabulary's " + std::to_string(m.vocab) +
                   "; use ids of this model"};
  auto ids = static_cast<int64_t>(arguments.text.size());
  for (const BenchTest &test : tests)
    if (test.isGiven && positionsBefore(test) + test.tokens + 1 > ids)
      return Error{"the test " + test.name() + " needs " +
                   std::to_string(positionsBefore(test) + test.tokens + 1) +
                   " ids, but --tokens has " + std::to_string(ids) +
                   "; choose a smaller --depth or --gen"};
  return {};
}
} // namespace

std::string BenchTest::name() const {
  std::string text = (generate ? "tg" : "pp") + std::to_string(tokens);
  if (batch > 1)
    text += "@b" + std::to_string(batch);
  if (depth > 0)
    text += "@d" + std::to_string(depth);
  if (lookup > 0)
    text += "@l" + std::to_string(lookup);
  if (mtp > 0)
    text += "@m" + std::to_string(mtp);
  return text;
}

double bytesRead(const BenchTest &t, const Manifest &manifest, int64_t calls) {
  // In each step, the cache of each sequence is read once, however many calls the step takes. A
  // step with drafts, or of a prompt, has rows at several positions.
  int64_t steps = t.generate && !t.drafts() ? t.tokens : calls, before = positionsBefore(t);
  double ofSequence = static_cast<double>(steps) * static_cast<double>(checkpointBytes(manifest));
  for (int64_t step = 0; step < steps; ++step) {
    int64_t first = before + t.tokens * step / steps, end = before + t.tokens * (step + 1) / steps;
    for (const CacheSpec &cache : manifest.caches)
      ofSequence += static_cast<double>(positionsAttended(first, end, cache.window)) *
                    static_cast<double>(cache.bytesReadPerPosition);
  }
  return static_cast<double>(calls) * manifest.cost.weightBytesPerToken +
         static_cast<double>(t.batch) * ofSequence;
}

Result<std::vector<BenchTest>> benchTests(const BenchArguments &arguments,
                                          const Manifest &manifest) {
  GenerationSettings drafts;
  drafts.mtp = arguments.mtp;
  if (Status good = checkSettings(drafts, manifest); !good)
    return good.error();
  std::vector<BenchTest> tests;
  addTests(tests, arguments, manifest);
  for (const BenchTest &test : tests)
    if (positionsBefore(test) + test.tokens > manifest.maxSeq)
      return Error{"the test " + test.name() + " does not fit into the context of " +
                   std::to_string(manifest.maxSeq) + " positions; choose smaller numbers" +
                   manifest.largerContextHint()};
  if (!arguments.text.empty())
    if (Status fits = checkText(tests, arguments, manifest); !fits)
      return fits.error();
  if (tests.empty())
    return Error{"nothing to measure; set --prompt or --gen above 0 and --depth below " +
                 std::to_string(manifest.maxSeq)};
  return tests;
}

Result<BenchResult> runBench(const Model &model, const BenchTest &test,
                             const BenchArguments &arguments, Profile *profile) {
  const Manifest &m = model.manifest();
  Result<std::unique_ptr<BenchSequences>> sequences =
      BenchSequences::create(model, test, arguments);
  if (!sequences)
    return sequences.error();
  BenchResult result{test, {}, 0, 0, 0};
  for (int64_t run = -1; run < arguments.repeat; ++run) {
    Result<Run> done = (*sequences)->run();
    if (!done)
      return done.error();
    if (run >= 0)
      result.runs.push_back(static_cast<double>(test.tokens * test.batch) / done->seconds);
    result.calls = done->calls;
    result.drafted = done->drafted;
    result.accepted = done->accepted;
  }
  if (profile) {
    profile->start();
    Result<Run> done = (*sequences)->run();
    profile->stop();
    if (!done)
      return done.error();
    result.profiledSeconds = done->seconds;
  }
  result.tokensPerSecond = median(result.runs);
  double seconds = static_cast<double>(test.tokens * test.batch) / result.tokensPerSecond;
  result.gbPerSecond = bytesRead(test, m, result.calls) / seconds * 1e-9;
  result.gflopPerSecond = flopsOf(test, m.cost) / seconds * 1e-9;
  return result;
}

namespace {
/// Of a call of the model, with the drafts before it.
double secondsPerCall(const BenchResult &result) {
  return static_cast<double>(result.test.tokens * result.test.batch) /
         (result.tokensPerSecond * static_cast<double>(result.calls));
}

nlohmann::ordered_json describe(const BenchResult &result) {
  nlohmann::ordered_json json = {{"test", result.test.name()},
                                 {"tokens_per_s", result.tokensPerSecond},
                                 {"runs", result.runs},
                                 {"gb_per_s", result.gbPerSecond},
                                 {"gflop_per_s", result.gflopPerSecond}};
  if (result.test.drafts())
    json[result.test.mtp > 0 ? "mtp" : "lookup"] = {{"drafted", result.drafted},
                                                    {"accepted", result.accepted},
                                                    {"calls", result.calls},
                                                    {"seconds_per_call", secondsPerCall(result)}};
  return json;
}

ProfiledProgram programOf(const Model &model) {
  const Manifest &m = model.manifest();
  return {.model = m.name,
          .weights = weightsText(m),
          .kv = std::string(infoOf(m.kv).name),
          .codeHash = model.file().layout().find(program::SectionKind::Code)->hash,
          .kernels = m.kernels,
          .threads = model.runtime().pool().threads()};
}

/// The output of the command, test by test.
class BenchReport {
public:
  BenchReport(const Model &model, const Device &device, const BenchArguments &arguments)
      : model(model), device(device), arguments(arguments) {}

  Status begin() {
    const Manifest &m = model.manifest();
    json = {{"model", m.name},
            {"weights", weightsText(m)},
            {"ranks", m.ranks},
            {"threads", model.runtime().pool().threads()},
            {"results", nlohmann::json::array()}};
    if (arguments.trace) {
      Result<std::unique_ptr<TraceWriter>> made = TraceWriter::create(*arguments.trace);
      if (!made)
        return made.error();
      trace = *std::move(made);
    }
    if (arguments.profileJson) {
      Result<std::unique_ptr<ProfileFile>> made =
          ProfileFile::create(*arguments.profileJson, programOf(model));
      if (!made)
        return made.error();
      profiles = *std::move(made);
    }
    std::string threads = countText(model.runtime().pool().threads(), "thread");
    if (m.ranks > 1)
      threads = std::to_string(m.ranks) + " ranks of " + threads +
                "; GB/s and GFLOP/s are those of one rank";
    return print(m.name + ", weights " + weightsText(m) + ", " + threads +
                 "\ntest               tokens/s      GB/s   GFLOP/s\n");
  }

  Status run(const BenchTest &test) {
    // A test with drafts computes a prompt, whose time is not part of the result.
    if (test.drafts() || !(arguments.profile || trace || profiles))
      return add(runBench(model, test, arguments));
    Peaks peaks = limits();
    Profile profile([this](const char *name) { return model.symbol(name); }, model.runtime(),
                    trace != nullptr);
    Result<BenchResult> result = runBench(model, test, arguments, &profile);
    if (Status added = add(result); !added)
      return added;
    ProfiledRun run{test.name(), profile, result->profiledSeconds, test.tokens * test.batch, peaks};
    if (arguments.profile) {
      json["results"].back()["profile"] = profileJson(run);
      if (Status done = print(profileTable(run)); !done)
        return done;
    }
    if (profiles)
      profiles->add(run);
    return trace ? trace->add(run) : Status();
  }

  Status end() {
    json["weights_in_huge_pages"] = model.weightsInHugePages();
    if (trace)
      if (Status done = trace->commit(); !done)
        return done;
    if (profiles)
      if (Status done = profiles->commit(); !done)
        return done;
    return arguments.json ? writeOut(toJsonText(json) + "\n") : Status();
  }

private:
  /// Writes to stdout unless stdout is for JSON.
  Status print(const std::string &text) const { return arguments.json ? Status() : writeOut(text); }

  Status add(const Result<BenchResult> &result) {
    if (!result)
      return result.error();
    json["results"].push_back(describe(*result));
    char line[192];
    std::snprintf(line, sizeof line, "%-16s %10.2f %9.2f %9.2f", result->test.name().c_str(),
                  result->tokensPerSecond, result->gbPerSecond, result->gflopPerSecond);
    std::string text = line;
    if (result->test.drafts()) {
      std::snprintf(line, sizeof line, "  %.2f ms per pass, %lld of %lld drafted tokens accepted",
                    1e3 * secondsPerCall(*result), static_cast<long long>(result->accepted),
                    static_cast<long long>(result->drafted));
      text += line;
    }
    return print(text + "\n");
  }

  /// Measured for each test, because the machine's limits change from minute to minute.
  Peaks limits() const {
    Peaks peaks{0, 0, "given"};
    if (!arguments.peakGb || !arguments.peakGflop)
      peaks = device.measurePeaks(model.runtime().pool(), model.manifest());
    if (arguments.peakGb)
      peaks.bytesPerSecond = *arguments.peakGb * 1e9;
    if (arguments.peakGflop) {
      peaks.flopsPerSecond = *arguments.peakGflop * 1e9;
      peaks.instruction = "given";
    }
    return peaks;
  }

  const Model &model;
  const Device &device;
  const BenchArguments &arguments;
  nlohmann::ordered_json json;
  std::unique_ptr<TraceWriter> trace;
  std::unique_ptr<ProfileFile> profiles;
};
} // namespace

Status benchCommand(const Model &model, const Device &device, const BenchArguments &arguments) {
  Result<std::vector<BenchTest>> tests = benchTests(arguments, model.manifest());
  if (!tests)
    return tests.error();
  BenchReport report(model, device, arguments);
  Status done = report.begin();
  for (const BenchTest &test : *tests)
    if (done)
      done = report.run(test);
  return done ? report.end() : done;
}

} // namespace mica::rt
