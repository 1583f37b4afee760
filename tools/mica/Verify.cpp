//===- Verify.cpp - mica verify -------------------------------------------===//

#include "backends/cpu/driver/DescribeProgram.h"
#include "frontend/support/InputError.h"
#include "frontend/support/MappedFile.h"
#include "ir/Interpreter/Moe.h"
#include "ir/Mica/Diagnostics.h"
#include "tools/mica/Commands.h"
#include "tools/quality/Candidate.h"
#include "tools/quality/Quality.h"
#include "tools/quality/ScoringProcess.h"
#include "tools/support/ScratchFile.h"
#include "tools/support/Support.h"
#include "tools/verify/Findings.h"
#include "tools/verify/ProbeRecords.h"
#include "tools/verify/ReferenceModel.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"

#include <map>
#include <random>

using namespace llvm;

namespace mica::tool {

namespace {

using rt::RowRole;

/// The last calls of the program: many rows, then a few at once, then one by one, so that the code
/// for many rows and that for few both run. Where the arithmetic depends on the role of a row, all
/// are fed as prompts, and then all as decoding does.
constexpr std::array<size_t, 5> kLastCalls = {5, 1, 1, 1, 1};

/// Positions where nobody says how many: what the interpreter reads in about half a minute, of a
/// model of this many parameters one, and not fewer or more than these.
constexpr uint64_t kParametersRead = uint64_t(1) << 34;
constexpr uint64_t kMinPositions = 48, kMaxPositions = 512;

/// How near experts are to each other where the choice between them is nobody's fault, as a share
/// of what rounding can reach: of a gate that computes from the same rows what an op of f32 may be
/// off, and of one after all layers what logits may.
constexpr double kNearTie = 1e-5, kNearTieOfModel = 1e-4;

/// Numbers as a file of probes has them.
std::vector<float> shownBy(const interp::Tensor &tensor) {
  return tensor.isFloat() ? tensor.floats
                          : std::vector<float>(tensor.ints.begin(), tensor.ints.end());
}

class Verification {
public:
  Verification(const VerifyArguments &arguments, const char *argv0)
      : arguments(arguments), argv0(argv0) {
    findings.model = arguments.model.model;
  }

  Error run();
  /// Of all parts, the worst.
  Findings findings;

private:
  Error makeProgram();
  Error openReferences();
  void allowForStorage(std::initializer_list<double> bits);
  Error readIds();
  Error readText();
  Error verifyParts();
  /// A text of the first `length` ids, alone, whose rows have this role.
  Error verify(size_t length, RowRole role);
  Error runProgram(ArrayRef<int32_t> text);
  Error compareOps(ArrayRef<int32_t> text);
  Error compareWithF32(ArrayRef<int32_t> text);
  size_t takeNearTies(MoeGateOp gate, ArrayRef<interp::Value> operands,
                      MutableArrayRef<interp::Value> results, size_t occurrence, double slack);
  size_t defaultPositions() const;
  Error otherShape(const std::string &name) const;
  /// What the interpreter runs.
  const std::string &referenceModel() const {
    return arguments.against.empty() ? arguments.model.model : arguments.against;
  }

  const VerifyArguments &arguments;
  const char *argv0;
  ScratchFile program, probes;
  std::unique_ptr<rt::ProgramTokenizer> tokenizer;
  std::unique_ptr<ReferenceModel> alike, exact;
  rt::Tokens ids;
  ProgressBar bar;

  // Of the part that is being verified.
  RowRole role = RowRole::Prompt;
  std::vector<float> logits;
  ProbeRecords seen;
  // Of all parts, the worst.
  std::map<std::pair<std::string, size_t>, Comparison> found;
};

Error Verification::run() {
  for (auto step : {&Verification::makeProgram, &Verification::openReferences,
                    &Verification::readIds, &Verification::verifyParts})
    if (Error error = (this->*step)())
      return error;
  return Error::success();
}

Error Verification::makeProgram() {
  if (Error error = program.create("verify"))
    return error;
  if (Error error = probes.create("probes"))
    return error;
  Expected<cpu::CompileOptions> options = programOptions(arguments.model, argv0);
  if (!options)
    return options.takeError();
  options->probes = Probed::Results;
  options->outputHint = ScratchFile::hint;
  return compileModel(arguments.model, std::move(*options), program.path(), Messages::None)
      .takeError();
}

/// Bits that a number of `precision` is exact to.
static double bitsOf(Precision precision) {
  switch (precision) {
  case Precision::F32:
    return 24;
  case Precision::BF16:
    return 9;
  case Precision::Int8:
    return 8;
  case Precision::Int4:
    return 4;
  }
  llvm_unreachable("a precision without bits");
}

/// How most numbers of a GGUF file are stored; empty for others.
static Expected<ModelInput::Storage> storageOf(const std::string &model) {
  mlir::MLIRContext context(ReferenceModel::registry());
  FirstDiagnostic diagnostic(&context);
  Expected<ModelInput> input = readModel(context, model, WeightsNeeded::No);
  if (!input)
    return input.takeError();
  return input->storage.value_or(ModelInput::Storage());
}

Error Verification::openReferences() {
  Expected<Candidate> opened = Candidate::open(program.path());
  if (!opened)
    return opened.takeError();
  findings.manifest = std::move(opened->manifest);
  tokenizer = std::move(opened->text);
  StageOptions stages;
  stages.weights = precisionNamed(findings.manifest.weights).value_or(Precision::F32);
  stages.kv = precisionNamed(findings.manifest.kv).value_or(Precision::F32);
  auto promptRows = PromptRows::Exact;
  for (const auto &[role, type] : findings.manifest.rows)
    if (role == kPromptRole) {
      stages.exactRows = StringRef(type).starts_with("int16") ? ExactRows::Int16
                         : type == "f32"                      ? ExactRows::F32
                                                              : ExactRows::BF16;
      promptRows = StringRef(type).starts_with("int8") ? PromptRows::Int8 : PromptRows::Exact;
    }
  // The ops of the program, in f32 as well: balanced where its channels are, and its weights that
  // keep blocks apart from others, so that values can be compared.
  stages.equalize = stages.weights == Precision::Int8 || stages.weights == Precision::Int4;
  // From fine to coarse. Rows that multiply weights in blocks are bf16 at the coarsest, also where
  // all else is f32.
  for (const Bounds &row : kBounds)
    if (row.precision == stages.weights || row.precision == stages.kv ||
        (row.precision == Precision::BF16 && !findings.manifest.preservedBlocks.empty()))
      findings.bounds = row;
  if (findings.bounds.precision != Precision::F32 && arguments.text.empty())
    findings.bounds.skipLogits("a model is sure of nothing about random ids, see --text");
  std::string asked = arguments.model.weights;
  if (!arguments.against.empty()) {
    Expected<ModelInput::Storage> own = storageOf(arguments.model.model);
    if (!own)
      return own.takeError();
    Expected<ModelInput::Storage> other = storageOf(arguments.against);
    if (!other)
      return other.takeError();
    if (own->type != other->type) {
      // Weights that keep blocks are not equalized; the reference has others.
      stages.equalize = *stages.equalize && (!asked.empty() || own->type.empty());
      asked = nameOf(Precision::F32);
      allowForStorage({bitsOf(stages.weights), own->bits, other->bits});
    }
  }
  using Roles = ReferenceModel::Roles;
  auto open = [&](std::unique_ptr<ReferenceModel> &model, Roles roles) {
    return ReferenceModel::open(referenceModel(), asked, stages, promptRows, roles).moveInto(model);
  };
  if (Error error = open(alike, Roles::Separate))
    return error;
  stages.weights = stages.kv = Precision::F32;
  return open(exact, Roles::Equal);
}

/// Where the reference's numbers are stored otherwise than the model's, some were rounded that
/// others were not; 0 bits: not known.
void Verification::allowForStorage(std::initializer_list<double> bits) {
  double fewest = 24;
  for (double number : bits)
    if (number > 0)
      fewest = std::min(fewest, number);
  findings.bounds.op += boundOfRounding(fewest);
  findings.bounds.skipLogits("both models are stored differently");
}

size_t Verification::defaultPositions() const {
  return std::clamp(kParametersRead / std::max<uint64_t>(1, findings.manifest.parameters),
                    kMinPositions, kMaxPositions);
}

Error Verification::readIds() {
  auto room = static_cast<size_t>(findings.manifest.maxSeq);
  if (arguments.positions > findings.manifest.maxSeq)
    return createStringError("--positions " + Twine(arguments.positions) + " is more than the " +
                             Twine(room) + " that the program has, give fewer" +
                             findings.manifest.largerContextHint());
  size_t most = arguments.positions > 0 ? static_cast<size_t>(arguments.positions)
                                        : std::min(defaultPositions(), room);
  if (arguments.text.empty()) {
    std::mt19937 random(1); // NOLINT: the same ids each time
    while (ids.size() < most)
      ids.push_back(
          static_cast<int32_t>(random() % static_cast<uint32_t>(findings.manifest.vocab)));
    if (findings.manifest.bos)
      ids.front() = *findings.manifest.bos;
  } else {
    if (Error error = readText())
      return error;
    ids.resize(std::min(ids.size(), most));
    if (ids.size() < 2)
      return inputError(arguments.text, "has fewer than two tokens", "give a longer text");
  }
  auto count = static_cast<int64_t>(ids.size());
  auto note = [&](const Twine &what, int64_t positions) {
    if (positions >= count && positions < findings.manifest.maxSeq)
      findings.notReached.push_back(
          (what + ": more than " + Twine(positions) + " positions").str());
  };
  for (int64_t window : alike->windows())
    note("the end of a window", window);
  for (int64_t threshold : findings.manifest.ropeLengthThresholds)
    note("the rope's other frequencies", threshold);
  return Error::success();
}

Error Verification::readText() {
  if (!tokenizer)
    return inputError(arguments.model.model, "has no tokenizer, which --text needs",
                      "leave --text out");
  Expected<MappedFile> mapped = MappedFile::openNamed(arguments.text);
  if (!mapped)
    return mapped.takeError();
  rt::Result<rt::Tokens> encoded = tokenizer->encode(
      {reinterpret_cast<const char *>(mapped->bytes().data()), mapped->bytes().size()});
  if (!encoded)
    return createStringError(arguments.text + ": " + encoded.error().message);
  ids = *std::move(encoded);
  return Error::success();
}

/// Where frequencies follow the length of a text, texts on each side of a threshold; where
/// arithmetic follows the role of a row, in each role.
Error Verification::verifyParts() {
  SmallVector<RowRole> roles{RowRole::Prompt};
  if (findings.manifest.dependsOnRole)
    roles.push_back(RowRole::Decode);
  for (RowRole part : roles) {
    for (int64_t threshold : findings.manifest.ropeLengthThresholds)
      if (threshold < static_cast<int64_t>(ids.size()))
        if (Error error = verify(static_cast<size_t>(threshold), part))
          return error;
    if (Error error = verify(ids.size(), part))
      return error;
  }
  findings.positions = ids.size();
  for (auto &[place, comparison] : found)
    findings.comparisons.push_back(comparison);
  sort(findings.comparisons,
       [](const Comparison &a, const Comparison &b) { return a.order < b.order; });
  return Error::success();
}

Error Verification::verify(size_t length, RowRole role) {
  this->role = role;
  ArrayRef<int32_t> text = ArrayRef(ids).take_front(length);
  seen = ProbeRecords();
  for (auto step :
       {&Verification::runProgram, &Verification::compareOps, &Verification::compareWithF32})
    if (Error error = (this->*step)(text))
      return error;
  return Error::success();
}

Error Verification::runProgram(ArrayRef<int32_t> text) {
  std::vector<std::string> options = {"--probes", probes.path().str()};
  if (arguments.threads > 0)
    options.insert(options.end(), {"--threads", std::to_string(arguments.threads)});
  if (role == RowRole::Decode)
    options.emplace_back("--as-decode");
  Expected<std::unique_ptr<ScoringProcess>> process =
      ScoringProcess::start(program.path().str(), std::move(options));
  if (!process)
    return process.takeError();
  auto vocab = static_cast<size_t>(findings.manifest.vocab);
  logits.assign(text.size() * vocab, 0);
  size_t last = 0;
  for (size_t rows : kLastCalls)
    last += rows;
  std::vector<size_t> calls;
  if (text.size() > last) {
    calls.push_back(text.size() - last);
    calls.insert(calls.end(), kLastCalls.begin(), kLastCalls.end());
  } else {
    calls.assign(text.size(), 1);
  }
  size_t at = 0;
  for (size_t rows : calls) {
    if (Error error = (*process)->ask(at, text.size(), 0, text.slice(at, rows)))
      return error;
    if (Error error = (*process)->read(MutableArrayRef(logits).slice(at * vocab, rows * vocab)))
      return error;
    at += rows;
  }
  // The file is complete when the process has ended.
  process->reset();
  return seen.read(probes.path());
}

Error Verification::otherShape(const std::string &name) const {
  return inputError(referenceModel(), "has no op '" + name + "' of the program's shape",
                    "give a model of the same shape to --against");
}

/// The probe that shows what `gate` chooses; null: none.
static ProbeOp choicesOf(MoeGateOp gate) {
  for (mlir::Operation *user : gate.getExperts().getUsers())
    if (auto probe = dyn_cast<ProbeOp>(user))
      return probe;
  return {};
}

/// Where two experts are as good as equal, the order in which f32 is summed decides, and what
/// follows is another number altogether. A row for which the program has chosen otherwise takes its
/// choice where that is a near tie. Returns how many do.
size_t Verification::takeNearTies(MoeGateOp gate, ArrayRef<interp::Value> operands,
                                  MutableArrayRef<interp::Value> results, size_t occurrence,
                                  double slack) {
  ProbeOp probe = choicesOf(gate);
  const ProbeRecords::Record *record =
      probe ? seen.find(probe.getName().str(), occurrence) : nullptr;
  interp::Tensor weights = *results[0].getTensor(), experts = *results[1].getTensor();
  // Another shape is reported where the probe is met.
  if (!record || record->values.size() != experts.ints.size())
    return 0;
  size_t count = gate.getK(), taken = 0;
  for (size_t at = 0; at < experts.ints.size(); at += count) {
    SmallVector<int64_t> chosen(ArrayRef(record->values).slice(at, count));
    if (ArrayRef(experts.ints).slice(at, count) == ArrayRef(chosen))
      continue;
    std::optional<SmallVector<float>> own =
        interp::weightsIfNearTie(gate, operands, static_cast<int64_t>(at / count), chosen, slack);
    if (!own)
      continue;
    copy(*own, weights.floats.begin() + static_cast<ptrdiff_t>(at));
    copy(chosen, experts.ints.begin() + static_cast<ptrdiff_t>(at));
    ++taken;
  }
  results[0] = interp::Value(std::move(weights));
  results[1] = interp::Value(std::move(experts));
  return taken;
}

/// Every op of the interpreter computes from what the program's ops before it have made: an op is
/// off by what itself does.
Error Verification::compareOps(ArrayRef<int32_t> text) {
  std::map<std::string, size_t> met;
  std::string other;
  size_t done = 0;
  auto trace = [&](mlir::Operation *op, ArrayRef<interp::Value> operands,
                   MutableArrayRef<interp::Value> results) {
    if (auto gate = dyn_cast<MoeGateOp>(op))
      if (ProbeOp choices = choicesOf(gate))
        findings.nearTies +=
            takeNearTies(gate, operands, results, met[choices.getName().str()], kNearTie);
    auto probe = dyn_cast<ProbeOp>(op);
    if (!probe)
      return;
    std::string name = probe.getName().str();
    size_t occurrence = met[name]++;
    interp::Tensor tensor = *results.front().getTensor();
    std::vector<float> values = shownBy(tensor);
    const ProbeRecords::Record *record = seen.find(name, occurrence);
    // Norms that make integer rows are not recorded, but the reference may store floats instead.
    if (!record && !findings.manifest.preservedBlocks.empty())
      return;
    if (!record || record->values.size() != values.size()) {
      other = other.empty() ? name : other;
      return;
    }
    size_t experts = tensor.isFloat() ? 0 : static_cast<size_t>(tensor.rowSize());
    auto place = found.try_emplace(
        {name, occurrence}, Comparison{name, record->layer, record->order, experts, role, {}, {}});
    Comparison &comparison = place.first->second;
    Distance distance = comparison.distance(record->values, values);
    if (distance.nmse > comparison.own.nmse)
      comparison.role = role;
    comparison.own.raise(distance);
    if (tensor.isFloat())
      tensor.floats = record->values;
    else
      tensor.ints.assign(record->values.begin(), record->values.end());
    results.front() = std::move(tensor);
    bar.show("interpreting", static_cast<double>(++done) / (2 * static_cast<double>(seen.size())));
  };
  Expected<std::vector<float>> reference = alike->logits(text, role, trace);
  if (!reference)
    return reference.takeError();
  for (const auto &[name, occurrences] : seen)
    if (met[name] != occurrences.size())
      other = other.empty() ? name : other;
  if (!other.empty())
    return otherShape(other);
  if (reference->size() != logits.size())
    return inputError(referenceModel(), "has another vocabulary than the program",
                      "give a model of the same shape to --against");
  return Error::success();
}

Error Verification::compareWithF32(ArrayRef<int32_t> text) {
  ProbeRecords reference;
  std::map<std::string, size_t> met;
  auto trace = [&](mlir::Operation *op, ArrayRef<interp::Value> operands,
                   MutableArrayRef<interp::Value> results) {
    if (auto gate = dyn_cast<MoeGateOp>(op))
      if (ProbeOp choices = choicesOf(gate))
        findings.nearTiesOfModel +=
            takeNearTies(gate, operands, results, met[choices.getName().str()]++, kNearTieOfModel);
    auto probe = dyn_cast<ProbeOp>(op);
    if (!probe)
      return;
    reference.add(probe.getName(), /*layer=*/-1, shownBy(*results.front().getTensor()));
    bar.show("interpreting", 0.5 + 0.5 * static_cast<double>(reference.size()) /
                                       static_cast<double>(std::max<size_t>(seen.size(), 1)));
  };
  Expected<std::vector<float>> rows = exact->logits(text, role, trace);
  if (!rows)
    return rows.takeError();
  for (const auto &[name, occurrences] : seen)
    for (auto [number, record] : enumerate(occurrences)) {
      const ProbeRecords::Record *other = reference.find(name, number);
      // An op of all layers of which the program shows some only: others quantize their results.
      if (record.layer >= 0 && reference.find(name, occurrences.size()))
        other = reference.find(name, static_cast<size_t>(record.layer));
      if (!other || other->values.size() != record.values.size())
        return otherShape(name);
      Comparison &comparison = found.at({name, number});
      comparison.fromF32.raise(comparison.distance(record.values, other->values));
    }
  findings.ofLogits.raise(Distance(logits, *rows));
  auto vocab = static_cast<size_t>(findings.manifest.vocab);
  for (size_t row = 0; row < text.size(); ++row)
    if (!findings.quality.add(ArrayRef(logits).slice(row * vocab, vocab),
                              ArrayRef(*rows).slice(row * vocab, vocab),
                              text[std::min(row + 1, text.size() - 1)]))
      return createStringError(arguments.model.model +
                               ": computes logits that are not finite, compile it with --weights "
                               "f32 or check the checkpoint");
  return Error::success();
}

} // namespace

int runVerify(VerifyArguments arguments, const char *argv0) {
  for (std::string *model : {&arguments.model.model, &arguments.against}) {
    if (model->empty())
      continue;
    Expected<std::string> path = modelPath(*model);
    if (!path)
      return report(*model, path.takeError());
    *model = std::move(*path);
  }
  Verification verification(arguments, argv0);
  if (Error error = verification.run())
    return report(arguments.model.model, std::move(error), {arguments.against, arguments.text});
  int printed =
      print(arguments.json ? formatv("{0}\n", json::Value(verification.findings.toJson())).str()
                           : verification.findings.toText());
  if (printed != kDone || verification.findings.passed())
    return printed;
  const Comparison *fault = verification.findings.firstFault();
  return report(arguments.model.model,
                createStringError(
                    fault ? "is further off than its precision explains, first at " +
                                verification.findings.placeOf(*fault) +
                                ": check that layer's weights and kernels"
                          : "its logits are further off than its precision explains, choose more "
                            "bits with --weights or --kv"));
}

} // namespace mica::tool
