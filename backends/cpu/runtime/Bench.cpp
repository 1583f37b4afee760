#include "backends/cpu/runtime/Bench.h"
#include "backends/cpu/runtime/Exports.h"
#include "backends/cpu/runtime/Output.h"
#include "backends/cpu/runtime/ProfileReport.h"
#include "backends/cpu/runtime/Seconds.h"

#include <algorithm>
#include <chrono>
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

/// Feeds `count` random tokens to every sequence, in chunks; the logits of each sequence's last are
/// computed. Gives the number of calls of the model.
Result<int64_t> feedPrompt(Session &session, Random &random, int64_t count, const Manifest &m) {
  int64_t calls = 0;
  for (int64_t s = 0; s < session.sequences(); ++s)
    for (int64_t i = 0; i < count; ++i) {
      auto token = static_cast<int32_t>(random.next() % static_cast<uint64_t>(m.vocab));
      bool last = i + 1 == count;
      if (Status pushed = session.push(s, token, RowRole::Prompt, last); !pushed)
        return pushed.error();
      if (session.queued() < session.chunk() && !session.atMemoryLimit() &&
          !(last && s + 1 == session.sequences()))
        continue;
      if (auto ran = session.run(); !ran)
        return ran.error();
      ++calls;
    }
  return calls;
}

/// Feeds `count` random tokens to every sequence, one after the other. Gives the number of calls.
Result<int64_t> feedSteps(Session &session, Random &random, int64_t count, const Manifest &m) {
  int64_t calls = 0;
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t s = 0; s < session.sequences(); ++s) {
      auto token = static_cast<int32_t>(random.next() % static_cast<uint64_t>(m.vocab));
      if (Status pushed = session.push(s, token, RowRole::Decode, true); !pushed)
        return pushed.error();
      if (!session.atMemoryLimit() && s + 1 < session.sequences())
        continue;
      if (auto ran = session.run(); !ran)
        return ran.error();
      ++calls;
    }
  }
  return calls;
}

/// What one run of a test took.
struct Run {
  double seconds = 0;
  int64_t calls = 0; ///< Of the model.
  int64_t drafted = 0, accepted = 0;
};

/// The time of random tokens, behind those that fill the depth.
Result<Run> runRandom(Session &session, Random &random, const BenchTest &test, const Manifest &m) {
  for (int64_t s = 0; s < test.batch; ++s) {
    session.truncate(s, test.depth);
    session.expect(s, test.depth + test.tokens);
  }
  auto start = std::chrono::steady_clock::now();
  Result<int64_t> calls = test.generate ? feedSteps(session, random, test.tokens, m)
                                        : feedPrompt(session, random, test.tokens, m);
  if (!calls)
    return calls.error();
  return Run{secondsSince(start), *calls, 0, 0};
}

/// Tokens after which a text that was not given begins again.
constexpr int64_t period = 32;

/// Positions that a test needs before those that it fills.
int64_t positionsBefore(const BenchTest &test) {
  return test.lookup > 0 ? std::max(test.depth, test.isGiven ? 1 : period) : test.depth;
}

/// The prompt of a test with lookup and what the text goes on with.
struct Script {
  Tokens prompt, rest;
};

Script givenScript(const Tokens &text, int64_t prompt) {
  auto middle = text.begin() + prompt;
  return {Tokens(text.begin(), middle), Tokens(middle, text.end())};
}

/// The prompt's end is the end of the period, which the script goes on with.
Script repeatingScript(int64_t prompt, int64_t vocab) {
  Script script;
  Random random(2);
  for (int64_t i = 0; i < period; ++i)
    script.rest.push_back(static_cast<int32_t>(random.next() % static_cast<uint64_t>(vocab)));
  for (int64_t i = 0; i < prompt; ++i)
    script.prompt.push_back(
        script.rest[static_cast<size_t>((i - prompt) % period + period) % period]);
  return script;
}

/// The time of a text that goes on by its script, whatever the model makes of it.
Result<Run> runScript(const Model &model, Session &session, const BenchTest &test,
                      const Script &script, int64_t chunk) {
  GenerateOptions options;
  options.maxTokens = test.tokens + 1;
  options.prefillChunk = chunk;
  options.ignoreEos = true;
  options.lookup = test.lookup;
  options.expected = static_cast<int64_t>(script.prompt.size()) + test.tokens;
  options.script = script.rest;
  GenerateListener listener;
  std::vector<Tokens> prompts(static_cast<size_t>(test.batch), script.prompt);
  Result<GenerateResult> result = generate(model, session, prompts, options, listener);
  if (!result)
    return result.error();
  return Run{result->decodeSeconds, result->decodeCalls, result->drafted, result->accepted};
}

/// Bytes that the test must read at least: all weights once per call of the model, and of the
/// caches what each call's newest rows see.
double bytesOf(const BenchTest &t, const Manifest::Cost &cost, int64_t calls) {
  double seen = static_cast<double>(positionsBefore(t)) + static_cast<double>(t.tokens) / 2;
  // Of a step, each sequence's once, in however many calls it is made.
  double newest = t.lookup > 0 ? static_cast<double>(calls * t.batch)
                  : t.generate ? static_cast<double>(t.tokens * t.batch)
                               : static_cast<double>(calls);
  return static_cast<double>(calls) * cost.weightBytesPerToken +
         newest * seen * cost.kvBytesPerPosition;
}

/// In products with weights. Of a prompt, the last row alone has logits.
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
}

/// Whether the text that was given is long enough for its tests, and one of this model.
Status checkText(const std::vector<BenchTest> &tests, const BenchArguments &arguments,
                 const Manifest &m) {
  if (arguments.lookup == 0)
    return Error{"--tokens is the text of tests with drafts, give --lookup"};
  for (int32_t token : arguments.text)
    if (token >= m.vocab)
      return Error{"token " + std::to_string(token) +
                   " of --tokens is not below the vocabulary's " + std::to_string(m.vocab) +
                   ", give ids of this model"};
  auto ids = static_cast<int64_t>(arguments.text.size());
  for (const BenchTest &test : tests)
    if (test.isGiven && positionsBefore(test) + test.tokens + 1 > ids)
      return Error{"the test " + test.name() + " needs " +
                   std::to_string(positionsBefore(test) + test.tokens + 1) +
                   " ids, but --tokens has " + std::to_string(ids) +
                   ", choose a smaller --depth or --gen"};
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
  return text;
}

Result<std::vector<BenchTest>> benchTests(const BenchArguments &arguments,
                                          const Manifest &manifest) {
  std::vector<BenchTest> tests;
  addTests(tests, arguments, manifest);
  for (const BenchTest &test : tests)
    if (positionsBefore(test) + test.tokens > manifest.maxSeq)
      return Error{"the test " + test.name() + " does not fit into the context of " +
                   std::to_string(manifest.maxSeq) + " positions, choose smaller numbers" +
                   manifest.orLargerContext()};
  if (!arguments.text.empty())
    if (Status fits = checkText(tests, arguments, manifest); !fits)
      return fits.error();
  if (tests.empty())
    return Error{"nothing to measure, give --prompt or --gen above 0 and a --depth below " +
                 std::to_string(manifest.maxSeq)};
  return tests;
}

Result<BenchResult> runBench(const Model &model, const BenchTest &test,
                             const BenchArguments &arguments, Profile *profile) {
  const Manifest &m = model.manifest();
  int64_t chunk = rowsOfChunk(arguments.prefillChunk, m);
  Result<std::unique_ptr<Session>> made = Session::create(model, test.batch, chunk);
  if (!made)
    return made.error();
  Session &session = **made;
  Random random(1);
  for (int64_t s = 0; s < test.batch; ++s)
    session.expect(s, test.depth + test.tokens);
  if (test.depth > 0 && test.lookup == 0)
    if (auto fed = feedPrompt(session, random, test.depth, m); !fed)
      return fed.error();
  Script script;
  if (test.lookup > 0)
    script = test.isGiven ? givenScript(arguments.text, positionsBefore(test))
                          : repeatingScript(positionsBefore(test), m.vocab);
  auto runOnce = [&] {
    return test.lookup > 0 ? runScript(model, session, test, script, chunk)
                           : runRandom(session, random, test, m);
  };
  BenchResult result{test, {}, 0, 0, 0};
  for (int64_t run = -1; run < arguments.repeat; ++run) {
    Result<Run> done = runOnce();
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
    Result<Run> done = runOnce();
    profile->stop();
    if (!done)
      return done.error();
    result.profiledSeconds = done->seconds;
  }
  result.tokensPerSecond = median(result.runs);
  double seconds = static_cast<double>(test.tokens * test.batch) / result.tokensPerSecond;
  result.gbPerSecond = bytesOf(test, m.cost, result.calls) / seconds * 1e-9;
  result.gflopPerSecond = flopsOf(test, m.cost) / seconds * 1e-9;
  return result;
}

namespace {
nlohmann::ordered_json describe(const BenchResult &result) {
  nlohmann::ordered_json json = {{"test", result.test.name()},
                                 {"tokens_per_s", result.tokensPerSecond},
                                 {"runs", result.runs},
                                 {"gb_per_s", result.gbPerSecond},
                                 {"gflop_per_s", result.gflopPerSecond}};
  if (result.test.lookup > 0)
    json["lookup"] = {
        {"drafted", result.drafted}, {"accepted", result.accepted}, {"calls", result.calls}};
  return json;
}

/// What a command writes, test by test.
class BenchReport {
public:
  BenchReport(const Model &model, const BenchArguments &arguments)
      : model(model), arguments(arguments) {}

  Status begin() {
    const Manifest &m = model.manifest();
    json = {{"model", m.name},
            {"weights", m.weights},
            {"threads", pool().threads()},
            {"results", nlohmann::json::array()}};
    if (arguments.trace) {
      Result<std::unique_ptr<TraceWriter>> made = TraceWriter::create(*arguments.trace);
      if (!made)
        return made.error();
      trace = *std::move(made);
    }
    return print(m.name + ", weights " + m.weights + ", " + std::to_string(pool().threads()) +
                 " threads\ntest               tokens/s      GB/s   GFLOP/s\n");
  }

  Status run(const BenchTest &test) {
    // A test with lookup has a prompt, whose time is not the test's.
    if (test.lookup > 0 || !(arguments.profile || trace))
      return add(runBench(model, test, arguments));
    Peaks peaks = limits();
    Profile profile(model, pool(), trace != nullptr);
    Result<BenchResult> result = runBench(model, test, arguments, &profile);
    if (Status added = add(result); !added)
      return added;
    ProfiledRun run{test.name(), profile, result->profiledSeconds, test.tokens * test.batch, peaks};
    if (arguments.profile) {
      json["results"].back()["profile"] = profileJson(run);
      if (Status done = print(profileTable(run)); !done)
        return done;
    }
    return trace ? trace->add(run) : Status();
  }

  Status end() {
    json["weights_in_large_pages"] = model.weightsInLargePages();
    if (trace)
      if (Status done = trace->commit(); !done)
        return done;
    return arguments.json ? writeOut(toJsonText(json) + "\n") : Status();
  }

private:
  /// Writes to stdout unless that is for JSON.
  Status print(const std::string &text) const { return arguments.json ? Status() : writeOut(text); }

  Status add(const Result<BenchResult> &result) {
    if (!result)
      return result.error();
    json["results"].push_back(describe(*result));
    char line[128];
    std::snprintf(line, sizeof line, "%-16s %10.2f %9.2f %9.2f\n", result->test.name().c_str(),
                  result->tokensPerSecond, result->gbPerSecond, result->gflopPerSecond);
    return print(line);
  }

  /// Measured now, as the machine's change from minute to minute.
  Peaks limits() const {
    Peaks peaks{0, 0, "given"};
    if (!arguments.peakGb || !arguments.peakGflop)
      peaks = measurePeaks(pool(), model.manifest());
    if (arguments.peakGb)
      peaks.bytesPerSecond = *arguments.peakGb * 1e9;
    if (arguments.peakGflop) {
      peaks.flopsPerSecond = *arguments.peakGflop * 1e9;
      peaks.instruction = "given";
    }
    return peaks;
  }

  const Model &model;
  const BenchArguments &arguments;
  nlohmann::ordered_json json;
  std::unique_ptr<TraceWriter> trace;
};
} // namespace

Status benchCommand(const Model &model, const BenchArguments &arguments) {
  Result<std::vector<BenchTest>> tests = benchTests(arguments, model.manifest());
  if (!tests)
    return tests.error();
  BenchReport report(model, arguments);
  Status done = report.begin();
  for (const BenchTest &test : *tests)
    if (done)
      done = report.run(test);
  return done ? report.end() : done;
}

} // namespace mica::rt
