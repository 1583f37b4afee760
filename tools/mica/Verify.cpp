//===- Verify.cpp - mica verify ---------------------------------------------===//

#include "frontend/support/InputError.h"
#include "frontend/support/MappedFile.h"
#include "ir/Mica/Diagnostics.h"
#include "tools/mica-interpret/CheckpointWeights.h"
#include "tools/mica/Candidate.h"
#include "tools/mica/Commands.h"
#include "tools/mica/FedProgram.h"
#include "tools/mica/ProbeRecords.h"
#include "tools/mica/Quality.h"
#include "tools/mica/Support.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"

#include <random>

using namespace llvm;

namespace mica::tool {

namespace {

/// Ids fed: a prompt, then a few rows at once, then one by one, so that the code for many rows and
/// that for few both run.
constexpr size_t kIds = 48;
constexpr std::array<size_t, 5> kLastCalls = {5, 1, 1, 1, 1};

/// How far off a precision of weights or caches may be, of both the coarser. For f32 a logit's
/// bound and for bf16 the divergence's are those of the design; what 8 and 4 bits lose it leaves to
/// `mica eval`, which has more positions than these. An op's error has passed through all layers
/// before it, and where an op is wrong it is 1.
struct Bounds {
  Precision precision;
  double op;      ///< normalised squared error of an op
  double logits;  ///< largest difference of a logit relative to the largest one
  double kl;      ///< mean KL(reference || program) in nats
  double sameTop; ///< share of positions
};
constexpr Bounds kBounds[] = {{Precision::F32, 1e-10, 1e-4, 1e-7, 0.99},
                              {Precision::BF16, 1e-3, 0.05, 1e-3, 0.95},
                              {Precision::Int8, 5e-3, 0.2, 1e-2, 0.9},
                              {Precision::Int4, 0.1, 1, 0.2, 0.7}};

/// The program's values and the interpreter's at one probe.
struct Comparison {
  std::string name;
  int64_t layer; ///< -1: none
  size_t order;
  Distance distance;
};

class Verification {
public:
  Verification(const VerifyArguments &arguments, const char *argv0)
      : arguments(arguments), argv0(argv0) {}

  Error run();
  /// The first op that is further off than the precision explains; null: none.
  const Comparison *firstFault() const;
  bool passed() const;
  json::Object toJson() const;
  std::string toText() const;

private:
  Error makeProgram();
  Error readIds();
  Error runProgram();
  Error interpretReference();
  Error compare();
  Expected<std::vector<interp::Value>> makeInputs(mlir::func::FuncOp main) const;
  /// What the interpreter runs.
  const std::string &referenceModel() const {
    return arguments.against.empty() ? arguments.model.model : arguments.against;
  }

  const VerifyArguments &arguments;
  const char *argv0;
  SmallString<128> program, probes;
  std::optional<FileRemover> removeProgram, removeProbes;
  rt::Manifest manifest;
  rt::Tokens ids;
  std::vector<float> logits, referenceLogits;
  ProbeRecords seen, reference;
  std::vector<Comparison> comparisons;
  Distance ofLogits;
  Quality quality;
  Bounds bounds = kBounds[0];
};

Error Verification::run() {
  for (auto step : {&Verification::makeProgram, &Verification::readIds, &Verification::runProgram,
                    &Verification::interpretReference, &Verification::compare})
    if (Error error = (this->*step)())
      return error;
  return Error::success();
}

Error Verification::makeProgram() {
  auto temporary = [](SmallString<128> &path, std::optional<FileRemover> &remover) -> Error {
    int file;
    if (std::error_code failed = sys::fs::createTemporaryFile("mica-verify", "tmp", file, path))
      return createStringError("cannot make a temporary file (" + failed.message() +
                               "), set TMPDIR to a folder with room");
    sys::fs::file_t handle = file;
    sys::fs::closeFile(handle);
    // Whoever writes it makes it anew.
    sys::fs::remove(path);
    remover.emplace(path);
    return Error::success();
  };
  if (Error error = temporary(program, removeProgram))
    return error;
  if (Error error = temporary(probes, removeProbes))
    return error;
  Expected<cpu::CompileOptions> options = programOptions(arguments.model, argv0);
  if (!options)
    return options.takeError();
  options->probes = true;
  return compileModel(arguments.model, std::move(*options), program, /*verbose=*/false).takeError();
}

Error Verification::readIds() {
  Expected<Candidate> opened = Candidate::open(program);
  if (!opened)
    return opened.takeError();
  manifest = std::move(opened->manifest);
  // From fine to coarse.
  for (const Bounds &row : kBounds)
    if (manifest.weights == nameOf(row.precision) || manifest.kv == nameOf(row.precision))
      bounds = row;
  size_t most = std::min(kIds, static_cast<size_t>(manifest.maxSeq));
  if (arguments.text.empty()) {
    std::mt19937 random(1);
    while (ids.size() < most)
      ids.push_back(static_cast<int32_t>(random() % static_cast<uint32_t>(manifest.vocab)));
    if (manifest.bos)
      ids.front() = *manifest.bos;
    return Error::success();
  }
  if (!opened->text)
    return inputError(arguments.model.model, "has no tokenizer, which --text needs",
                      "leave --text out");
  Expected<MappedFile> mapped = MappedFile::open(arguments.text);
  if (!mapped)
    return mapped.takeError();
  rt::Result<rt::Tokens> encoded = opened->text->encode(
      {reinterpret_cast<const char *>(mapped->bytes().data()), mapped->bytes().size()});
  if (!encoded)
    return createStringError(arguments.text + ": " + encoded.error().message);
  ids = *std::move(encoded);
  ids.resize(std::min(ids.size(), most));
  if (ids.size() < 2)
    return inputError(arguments.text, "has fewer than two tokens", "give a longer text");
  return Error::success();
}

Error Verification::runProgram() {
  std::vector<std::string> options = {"--probes", probes.str().str()};
  if (arguments.threads > 0)
    options.insert(options.end(), {"--threads", std::to_string(arguments.threads)});
  Expected<std::unique_ptr<FedProgram>> fed =
      FedProgram::start(program.str().str(), std::move(options));
  if (!fed)
    return fed.takeError();
  logits.resize(ids.size() * static_cast<size_t>(manifest.vocab));
  size_t last = 0;
  for (size_t rows : kLastCalls)
    last += rows;
  std::vector<size_t> calls;
  if (ids.size() > last) {
    calls.push_back(ids.size() - last);
    calls.insert(calls.end(), kLastCalls.begin(), kLastCalls.end());
  } else {
    calls.assign(ids.size(), 1);
  }
  size_t at = 0;
  for (size_t rows : calls) {
    auto vocab = static_cast<size_t>(manifest.vocab);
    if (Error error = (*fed)->ask(at, ids.size(), 0, ArrayRef(ids).slice(at, rows)))
      return error;
    if (Error error = (*fed)->read(MutableArrayRef(logits).slice(at * vocab, rows * vocab)))
      return error;
    at += rows;
  }
  // The file is complete when the process has ended.
  fed->reset();
  return seen.read(probes);
}

Expected<std::vector<interp::Value>> Verification::makeInputs(mlir::func::FuncOp main) const {
  mlir::Type i32 = mlir::IntegerType::get(main.getContext(), 32);
  auto count = static_cast<int64_t>(ids.size());
  auto numbers = [&](auto number) {
    interp::Tensor tensor = interp::Tensor::zeros(i32, {count});
    for (int64_t i = 0; i < count; ++i)
      tensor.ints[static_cast<size_t>(i)] = number(i);
    return interp::Value(std::move(tensor));
  };
  auto own = [](int64_t i) { return i; };
  std::vector<interp::Value> inputs = {
      numbers([&](int64_t i) { return ids[static_cast<size_t>(i)]; }),
      numbers([](int64_t) { return 0; }), numbers(own), numbers(own)};
  if (takesLengths(main.getFunctionType()))
    inputs.push_back(numbers([&](int64_t) { return count; }));
  for (mlir::Type type : main.getArgumentTypes().drop_front(inputs.size())) {
    auto cache = dyn_cast<KvCacheType>(type);
    if (!cache)
      return createStringError("@main has an argument that is no cache behind its numbers");
    if (Error error =
            interp::checkSize({cache.getLayers(), 1, count, cache.getHeads(), cache.getHeadDim()}))
      return std::move(error);
    inputs.push_back(interp::Value::makeCache(cache, 1, count));
  }
  return inputs;
}

Error Verification::interpretReference() {
  const std::string &model = referenceModel();
  mlir::DialectRegistry registry;
  cpu::registerCompilerDialects(registry);
  mlir::MLIRContext context(registry);
  FirstDiagnostic diagnostic(&context);
  Expected<ModelInput> input = readModel(context, model, WeightsNeeded::Yes);
  if (!input)
    return input.takeError();
  // The ops of the program, in f32: balanced where its channels are, and its weights that keep
  // blocks apart from others, so that values can be compared.
  cpu::CompileOptions options;
  options.weights = precisionNamed(arguments.model.weights);
  chooseWeights(*input, options);
  StageOptions stages;
  stages.keepBlocks = options.keepBlocks;
  stages.balance = manifest.weights == "int8" || manifest.weights == "int4";
  stages.probes = true;
  mlir::PassManager pm(&context);
  buildModelToFused(pm, stages);
  if (failed(pm.run(*input->module)))
    return createStringError(model + ": " + diagnostic.message("cannot be fused"));
  auto main = input->module->lookupSymbol<mlir::func::FuncOp>("main");
  Expected<std::vector<interp::Value>> inputs = makeInputs(main);
  if (!inputs)
    return inputs.takeError();
  ProgressBar bar;
  double done = 0;
  auto trace = [&](mlir::Operation *op, ArrayRef<interp::Value> results) {
    auto probe = dyn_cast<ProbeOp>(op);
    if (!probe)
      return;
    const interp::Tensor &tensor = *results.front().getTensor();
    reference.add(probe.getName(), /*layer=*/-1, tensor.floats);
    bar.show("interpreting", ++done / static_cast<double>(std::max<size_t>(seen.size(), 1)));
  };
  auto weights = [&](StringRef name) { return storedTensor(*input->weights, name, &context); };
  Expected<SmallVector<interp::Value>> results = interp::interpret(main, *inputs, weights, trace);
  if (!results)
    return results.takeError();
  referenceLogits = results->front().getTensor()->floats;
  return Error::success();
}

Error Verification::compare() {
  const std::string &model = referenceModel();
  for (const auto &[name, occurrences] : seen)
    for (auto [number, record] : enumerate(occurrences)) {
      const ProbeRecords::Record *other = reference.find(name, number);
      // An op of all layers of which the program shows some only: others quantise their results.
      if (record.layer >= 0 && reference.find(name, occurrences.size()))
        other = reference.find(name, static_cast<size_t>(record.layer));
      if (!other || other->values.size() != record.values.size())
        return inputError(model, "has no op '" + name + "' of the program's shape",
                          "give a model of the same shape to --against");
      comparisons.push_back(
          {name, record.layer, record.order, Distance(record.values, other->values)});
    }
  if (referenceLogits.size() != logits.size())
    return inputError(model, "has another vocabulary than the program",
                      "give a model of the same shape to --against");
  sort(comparisons, [](const Comparison &a, const Comparison &b) { return a.order < b.order; });
  ofLogits = Distance(logits, referenceLogits);
  auto vocab = static_cast<size_t>(manifest.vocab);
  for (size_t row = 0; row < ids.size(); ++row)
    if (!quality.add(ArrayRef(logits).slice(row * vocab, vocab),
                     ArrayRef(referenceLogits).slice(row * vocab, vocab),
                     ids[std::min(row + 1, ids.size() - 1)]))
      return createStringError(arguments.model.model +
                               ": computes logits that are not finite, compile it with --weights "
                               "f32 or check the checkpoint");
  return Error::success();
}

const Comparison *Verification::firstFault() const {
  auto fault = find_if(comparisons, [&](const Comparison &comparison) {
    return !(comparison.distance.nmse <= bounds.op);
  });
  return fault == comparisons.end() ? nullptr : &*fault;
}

bool Verification::passed() const {
  return !firstFault() && ofLogits.largest <= bounds.logits &&
         quality.divergence().mean() <= bounds.kl && quality.sameTop() >= bounds.sameTop;
}

std::string placeOf(const Comparison &comparison) {
  return comparison.layer < 0 ? comparison.name
                              : formatv("layer {0}, {1}", comparison.layer, comparison.name).str();
}

json::Object Verification::toJson() const {
  json::Array ops;
  for (const Comparison &comparison : comparisons)
    ops.push_back(json::Object{
        {"op", json::fixUTF8(comparison.name)},
        {"layer", comparison.layer < 0 ? json::Value(nullptr) : json::Value(comparison.layer)},
        {"max", comparison.distance.largest},
        {"nmse", comparison.distance.nmse}});
  const Comparison *fault = firstFault();
  return json::Object{
      {"model", json::fixUTF8(arguments.model.model)},
      {"weights", manifest.weights},
      {"kv", manifest.kv},
      {"positions", static_cast<int64_t>(ids.size())},
      {"ops", std::move(ops)},
      {"logits", json::Object{{"max", ofLogits.largest}, {"nmse", ofLogits.nmse}}},
      {"kl", quality.divergence().mean()},
      {"same_top", quality.sameTop()},
      {"bounds", json::Object{{"op_nmse", bounds.op},
                              {"logits_max", bounds.logits},
                              {"kl", bounds.kl},
                              {"same_top", bounds.sameTop}}},
      {"fault", fault ? json::Value(json::fixUTF8(placeOf(*fault))) : json::Value(nullptr)},
      {"passed", passed()}};
}

std::string Verification::toText() const {
  std::string text;
  raw_string_ostream out(text);
  out << formatv("{0}: weights {1}, kv {2}, {3} positions against the interpreter in f32\n",
                 arguments.model.model, manifest.weights, manifest.kv, ids.size());
  out << formatv("{0,5}  {1,-40} {2,10} {3,10}\n", "layer", "op", "max", "NMSE");
  for (const Comparison &comparison : comparisons)
    out << formatv("{0,5}  {1,-40} {2,10:e2} {3,10:e2}{4}\n",
                   comparison.layer < 0 ? std::string("-") : std::to_string(comparison.layer),
                   comparison.name, comparison.distance.largest, comparison.distance.nmse,
                   comparison.distance.nmse <= bounds.op ? "" : "  <- over the bound");
  out << formatv("logits    max {0:e2} (bound {1:e0}), NMSE {2:e2}\n", ofLogits.largest,
                 bounds.logits, ofLogits.nmse);
  out << formatv("KL        {0:e2} (bound {1:e0})\n", quality.divergence().mean(), bounds.kl);
  out << formatv("same top  {0:f1} % (bound {1:f0} %)\n", 100 * quality.sameTop(),
                 100 * bounds.sameTop);
  return text;
}

} // namespace

int runVerify(const VerifyArguments &arguments, const char *argv0) {
  Verification verification(arguments, argv0);
  if (Error error = verification.run())
    return report(arguments.model.model, std::move(error), {arguments.against, arguments.text});
  int printed = print(arguments.json ? formatv("{0}\n", json::Value(verification.toJson())).str()
                                     : verification.toText());
  if (printed != kDone || verification.passed())
    return printed;
  const Comparison *fault = verification.firstFault();
  return report(arguments.model.model,
                createStringError(
                    fault ? "is further off than its precision explains, first at " +
                                placeOf(*fault) + ": check that layer's weights and kernels"
                          : "its logits are further off than its precision explains, choose more "
                            "bits with --weights or --kv"));
}

} // namespace mica::tool
