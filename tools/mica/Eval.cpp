//===- Eval.cpp - mica eval -----------------------------------------------===//

#include "tools/mica/Eval.h"

#include "backends/runtime/support/SizeText.h"
#include "frontend/support/InputError.h"
#include "passes/support/Precision.h"
#include "tools/quality/Candidate.h"
#include "tools/quality/Quality.h"
#include "tools/quality/ScoringProcess.h"
#include "tools/quality/TextIds.h"
#include "tools/support/Support.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

using namespace llvm;

namespace mica::tool {

namespace {

constexpr int64_t kDefaultContext = 512;
/// The number of logits requested at once.
constexpr size_t kPieceBytes = 16 << 20;

/// Computes the figures of an invocation of the command.
class Evaluation {
public:
  explicit Evaluation(const EvalArguments &arguments) : arguments(arguments) {}

  Error run() {
    if (Error error = openPrograms())
      return error;
    if (Error error = readText())
      return error;
    if (Error error = choosePlan())
      return error;
    return compute();
  }
  json::Object toJson() const;
  std::string toText() const;

private:
  Error openPrograms();
  Error readText();
  Error choosePlan();
  Error compute();
  Error computeWindow(const EvalWindow &window);
  Error score(size_t row, int32_t next);
  Expected<std::unique_ptr<ScoringProcess>> start(const Candidate &candidate) const;
  /// Window and position of the n-th scored position: "window 3, position 300".
  std::pair<size_t, size_t> windowAndPosition(size_t scored) const;
  StringRef textFile() const {
    return arguments.text.empty() ? arguments.tokensFile : arguments.text;
  }
  json::Object describe(const Candidate &candidate, double perplexity, double error) const;

  const EvalArguments &arguments;
  Candidate program;
  std::optional<Candidate> reference;
  rt::Tokens ids;
  bool begins = false; ///< whether the text begins with BOS
  size_t context = 0;
  std::vector<EvalWindow> windows;
  std::unique_ptr<ScoringProcess> process, referenceProcess;
  std::vector<float> logits, referenceRow;
  Quality quality;
};

Error Evaluation::openPrograms() {
  Expected<Candidate> opened = Candidate::open(arguments.program);
  if (!opened)
    return opened.takeError();
  program = std::move(*opened);
  if (arguments.reference.empty())
    return Error::success();
  Expected<Candidate> other = Candidate::open(arguments.reference);
  if (!other)
    return other.takeError();
  if (other->manifest.vocab != program.manifest.vocab)
    return other->error("has a vocabulary of " + Twine(other->manifest.vocab) + " ids and " +
                            program.path + " one of " + Twine(program.manifest.vocab),
                        "compare programs of one model");
  reference = std::move(*other);
  return Error::success();
}

Error Evaluation::readText() {
  if (!arguments.tokensFile.empty()) {
    if (Error error = idsInFile(arguments.tokensFile, program.manifest.vocab).moveInto(ids))
      return error;
  } else {
    if (!program.text)
      return program.error("has no tokenizer", "pass the text as ids with --tokens-file");
    if (Error error = idsOfText(arguments.text, *program.text).moveInto(ids))
      return error;
    if (reference && reference->text) {
      Expected<rt::Tokens> others = idsOfText(arguments.text, *reference->text);
      if (errorToBool(others.takeError()) || *others != ids)
        return reference->error("its tokenizer produces different ids than that of " + program.path,
                                "compare programs of one model");
    }
  }
  begins = program.manifest.bos && !ids.empty() && ids.front() == *program.manifest.bos;
  return Error::success();
}

Error Evaluation::choosePlan() {
  const Candidate *shortest = &program;
  if (reference && reference->manifest.maxSeq < program.manifest.maxSeq)
    shortest = &*reference;
  int64_t max = shortest->manifest.maxSeq;
  if (arguments.context > max)
    return shortest->error("holds " + Twine(max) + " positions",
                           "choose a --context of at most " + Twine(max));
  context = static_cast<size_t>(arguments.context > 0 ? arguments.context
                                                      : std::min(max, kDefaultContext));
  windows = planWindows(ids.size(), context,
                        arguments.windows > 0 ? static_cast<size_t>(arguments.windows) : SIZE_MAX);
  if (windows.empty())
    return inputError(textFile(),
                      "has " + rt::countText(static_cast<int64_t>(ids.size()), "token") +
                          ", but scoring needs at least two",
                      "use a longer text");
  return Error::success();
}

Expected<std::unique_ptr<ScoringProcess>> Evaluation::start(const Candidate &candidate) const {
  std::vector<std::string> options;
  auto add = [&](const char *name, int64_t value) {
    if (value > 0)
      options.insert(options.end(), {name, std::to_string(value)});
  };
  add("--prefill-chunk", arguments.prefillChunk);
  add("--threads", arguments.threads);
  // Programs that compute all rows in the same way may be older than the option.
  if (arguments.asDecode && candidate.manifest.dependsOnRole)
    options.emplace_back("--as-decode");
  return ScoringProcess::start(candidate.path, std::move(options));
}

Error Evaluation::compute() {
  Expected<std::unique_ptr<ScoringProcess>> started = start(program);
  if (!started)
    return started.takeError();
  process = std::move(*started);
  if (reference) {
    Expected<std::unique_ptr<ScoringProcess>> other = start(*reference);
    if (!other)
      return other.takeError();
    referenceProcess = std::move(*other);
  }
  ProgressBar bar;
  for (auto [index, window] : enumerate(windows)) {
    bar.show("evaluating", static_cast<double>(index) / static_cast<double>(windows.size()));
    if (Error error = computeWindow(window))
      return error;
  }
  return Error::success();
}

Error Evaluation::computeWindow(const EvalWindow &window) {
  rt::Tokens inputIds(ids.begin() + static_cast<ptrdiff_t>(window.begin),
                      ids.begin() + static_cast<ptrdiff_t>(window.begin + window.length));
  if (begins)
    inputIds.front() = *program.manifest.bos;
  auto vocab = static_cast<size_t>(program.manifest.vocab);
  size_t max = std::max<size_t>(1, kPieceBytes / (vocab * sizeof(float)));
  // The first piece begins with everything before the scored positions.
  for (size_t from = 0, at = window.first; at + 1 < window.length;) {
    size_t rows = std::min(max, window.length - 1 - at);
    ArrayRef<int32_t> piece(inputIds.data() + from, at + rows - from);
    logits.resize(rows * vocab);
    if (Error error = process->ask(from, window.length, at - from, piece))
      return error;
    if (Error error = process->read(logits))
      return error;
    if (referenceProcess)
      if (Error error = referenceProcess->ask(from, window.length, at - from, piece))
        return error;
    for (size_t row = 0; row < rows; ++row)
      if (Error error = score(row, inputIds[at + row + 1]))
        return error;
    at += rows;
    from = at;
  }
  return Error::success();
}

/// Scores row `row` of the piece, which is followed by `next` in the text.
Error Evaluation::score(size_t row, int32_t next) {
  auto vocab = static_cast<size_t>(program.manifest.vocab);
  ArrayRef<float> own(logits.data() + row * vocab, vocab);
  bool finite;
  if (referenceProcess) {
    referenceRow.resize(vocab);
    if (Error error = referenceProcess->read(referenceRow))
      return error;
    finite = quality.add(own, referenceRow, next);
  } else {
    finite = quality.add(own, next);
  }
  if (finite)
    return Error::success();
  bool ownFinite = all_of(own, [](float x) { return std::isfinite(x); });
  return (ownFinite ? *reference : program)
      .error("computes logits that are not finite",
             "compile it with --weights f32 or check the checkpoint");
}

std::pair<size_t, size_t> Evaluation::windowAndPosition(size_t scored) const {
  size_t window = 0;
  for (; scored >= windows[window].scored(); ++window)
    scored -= windows[window].scored();
  return {window, windows[window].first + scored};
}

/// JSON cannot represent infinity.
json::Value number(double value) {
  return std::isfinite(value) ? json::Value(value) : json::Value(nullptr);
}

json::Object Evaluation::describe(const Candidate &candidate, double perplexity,
                                  double error) const {
  return json::Object{
      {"file", json::fixUTF8(candidate.path)},
      {"model", json::fixUTF8(candidate.manifest.name)},
      {"weights", rt::weightsText(candidate.manifest)},
      {"kv", nameOf(candidate.manifest.kv)},
      {"weight_bytes", static_cast<int64_t>(candidate.weightBytes)},
      {"parameters", static_cast<int64_t>(candidate.manifest.parameters)},
      {"bits", candidate.bits() > 0 ? json::Value(candidate.bits()) : json::Value(nullptr)},
      {"perplexity", number(perplexity)},
      {"perplexity_error", number(error)}};
}

json::Object Evaluation::toJson() const {
  json::Object result{
      {"text", json::fixUTF8(textFile())},
      {"tokens", static_cast<int64_t>(ids.size())},
      {"context", static_cast<int64_t>(windows.front().length)},
      {"windows", static_cast<int64_t>(windows.size())},
      {"first_scored", static_cast<int64_t>(windows.front().first)},
      {"positions", static_cast<int64_t>(quality.positions())},
      {"as_decode", arguments.asDecode},
      {"program", describe(program, quality.perplexity(), quality.perplexityError())}};
  if (!reference)
    return result;
  auto [window, position] = windowAndPosition(quality.maxDivergenceAt());
  result["reference"] =
      describe(*reference, quality.referencePerplexity(), quality.referencePerplexityError());
  result["kl"] = json::Object{{"mean", quality.divergence().mean()},
                              {"error", quality.divergence().error()},
                              {"p99", quality.divergencePercentile(0.99)},
                              {"p99_9", quality.divergencePercentile(0.999)},
                              {"max", quality.maxDivergence()},
                              {"max_window", static_cast<int64_t>(window)},
                              {"max_position", static_cast<int64_t>(position)}};
  result["same_top"] = quality.sameTop();
  result["rms_delta_p"] = 100 * quality.rmsDeltaP();
  return result;
}

/// Formats the value so that it fits in its column, whatever its magnitude.
std::string shown(double value) {
  return std::abs(value) < 1e5 ? formatv("{0:f4}", value) : formatv("{0:e4}", value);
}

std::string Evaluation::toText() const {
  std::string text;
  raw_string_ostream out(text);
  const EvalWindow &first = windows.front();
  out << textFile() << ": " << ids.size() << " tokens, " << windows.size() << " windows of "
      << first.length << "\nscored: positions " << first.first << " to " << first.length - 2
      << " of each window, " << quality.positions() << " in total"
      << (arguments.asDecode ? ", computed as in decoding\n" : "\n");
  out << formatv("{0,-11} {1,13} {2,11} {3,11} {4,13}  {5}\n", "", "perplexity", "std. error",
                 "bits/weight", "weight bytes", "file");
  auto line = [&](StringRef name, const Candidate &candidate, double perplexity, double error) {
    out << formatv("{0,-11} {1,13} {2,11} {3,11} {4,13}  {5}\n", name, shown(perplexity),
                   shown(error),
                   candidate.bits() > 0 ? formatv("{0:f2}", candidate.bits()).str() : "?",
                   candidate.weightBytes, candidate.path);
  };
  line("program", program, quality.perplexity(), quality.perplexityError());
  if (!reference)
    return text;
  line("reference", *reference, quality.referencePerplexity(), quality.referencePerplexityError());
  auto [window, position] = windowAndPosition(quality.maxDivergenceAt());
  out << formatv("KL(reference || program)  {0:e3} +- {1:e1}, at most {2:e3} (window {3}, position "
                 "{4})\n",
                 quality.divergence().mean(), quality.divergence().error(), quality.maxDivergence(),
                 window, position);
  out << formatv("KL percentiles            99 %: {0:e3}, 99.9 %: {1:e3}\n",
                 quality.divergencePercentile(0.99), quality.divergencePercentile(0.999));
  out << formatv("same top                  {0:f2} %\n", 100 * quality.sameTop());
  out << formatv("RMS delta p               {0:f3} percentage points\n", 100 * quality.rmsDeltaP());
  return text;
}

} // namespace

Expected<json::Object> evaluate(const EvalArguments &arguments) {
  Evaluation evaluation(arguments);
  if (Error error = evaluation.run())
    return error;
  return evaluation.toJson();
}

int runEval(const EvalArguments &arguments) {
  if (arguments.text.empty() && arguments.tokensFile.empty())
    return usage("--text FILE or --tokens-file FILE is required", "mica eval");
  Evaluation evaluation(arguments);
  if (Error error = evaluation.run())
    return report(std::move(error));
  return print(arguments.json ? formatv("{0}\n", json::Value(evaluation.toJson())).str()
                              : evaluation.toText());
}

} // namespace mica::tool
