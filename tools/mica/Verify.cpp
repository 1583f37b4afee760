//===- Verify.cpp - mica verify -------------------------------------------===//

#include "tools/mica/Verify.h"

#include "frontend/support/InputError.h"
#include "ir/Mica/Diagnostics.h"
#include "tools/mica/CompileModel.h"
#include "tools/mica/Pull.h"
#include "tools/quality/Candidate.h"
#include "tools/quality/TextIds.h"
#include "tools/support/ScratchFile.h"
#include "tools/support/Support.h"
#include "tools/verify/OpComparison.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"

#include <random>

using namespace llvm;

namespace mica::tool {

namespace {

using rt::RowRole;

/// The default number of positions depends on the number of parameters, within these limits, so
/// that the interpreter takes about half a minute.
constexpr uint64_t kParametersRead = uint64_t(1) << 34;
constexpr uint64_t kMinPositions = 48, kMaxPositions = 512;

class Verification {
public:
  Verification(const VerifyArguments &arguments, const char *argv0)
      : arguments(arguments), argv0(argv0), comparison(findings, referenceModel()) {
    findings.model = arguments.model.model;
  }

  Error run();
  /// The worst results of all parts.
  Findings findings;

private:
  Error makeProgram();
  Error openReferences();
  void allowForStorage(std::initializer_list<double> bits);
  Error readIds();
  Error readText();
  Error verifyParts();
  /// Verifies the first `length` ids as a text whose rows have this role.
  Error verify(size_t length, RowRole role);
  size_t defaultPositions() const;
  /// The path of the module that the interpreter runs.
  const std::string &referenceModel() const {
    return arguments.against.empty() ? arguments.model.model : arguments.against;
  }

  const VerifyArguments &arguments;
  const char *argv0;
  OpComparison comparison;
  ScratchFile program, probes;
  std::unique_ptr<rt::ProgramTokenizer> tokenizer;
  std::unique_ptr<ReferenceModel> alike, exact;
  rt::Tokens ids;
  ProgressBar bar;
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

/// The most frequent type in a checkpoint with blocks or a GGUF file; empty for others.
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
  stages.weights = findings.manifest.weights;
  stages.kv = findings.manifest.kv;
  auto promptRows = PromptRows::Exact;
  mlir::MLIRContext context(ReferenceModel::registry());
  context.loadDialect<MicaDialect>();
  for (const auto &[role, type] : findings.manifest.rows)
    if (role == kPromptRole)
      if (auto rows = promptRowsOfType(&context, type))
        std::tie(promptRows, stages.exactRows) = *rows;
  // The program's ops, in f32 as well: equalized if its channels are, and its preserved weights
  // separate from others, so that values can be compared.
  stages.equalize = isInteger(stages.weights);
  // From fine to coarse. Activations of block-quantized weights are bf16 at the coarsest, even if
  // everything else is f32.
  for (const Bounds &row : kBounds)
    if (row.precision == stages.weights || row.precision == stages.kv ||
        (row.precision == Precision::BF16 && !findings.manifest.blockFormats.empty()))
      findings.bounds = row;
  if (findings.bounds.precision != Precision::F32 && arguments.text.empty())
    findings.bounds.skipLogits("predictions for random ids are not meaningful (see --text)");
  std::string asked = arguments.model.weights;
  if (!arguments.against.empty()) {
    Expected<ModelInput::Storage> own = storageOf(arguments.model.model);
    if (!own)
      return own.takeError();
    Expected<ModelInput::Storage> other = storageOf(arguments.against);
    if (!other)
      return other.takeError();
    if (own->type != other->type) {
      // Preserved weights are not equalized; the reference has others.
      stages.equalize = *stages.equalize && (!asked.empty() || own->type.empty());
      asked = nameOf(Precision::F32);
      allowForStorage({significantBitsOf(stages.weights), own->bits, other->bits});
    }
  }
  using Roles = ReferenceModel::Roles;
  auto open = [&](std::unique_ptr<ReferenceModel> &model, Roles roles) {
    return ReferenceModel::open(referenceModel(), asked, stages, promptRows, roles,
                                arguments.model.mtpHead())
        .moveInto(model);
  };
  if (Error error = open(alike, Roles::Separate))
    return error;
  stages.weights = stages.kv = Precision::F32;
  return open(exact, Roles::Equal);
}

/// If the weights of the reference and of the model are stored in different formats, they were
/// rounded differently; 0 bits: unknown.
void Verification::allowForStorage(std::initializer_list<double> bits) {
  double minBits = 24;
  for (double number : bits)
    if (number > 0)
      minBits = std::min(minBits, number);
  findings.bounds.op += boundOfRounding(minBits);
  findings.bounds.skipLogits("the models are stored in different formats");
}

size_t Verification::defaultPositions() const {
  return std::clamp(kParametersRead / std::max<uint64_t>(1, findings.manifest.parameters),
                    kMinPositions, kMaxPositions);
}

Error Verification::readIds() {
  auto room = static_cast<size_t>(findings.manifest.maxSeq);
  if (arguments.positions > findings.manifest.maxSeq)
    return createStringError("--positions " + Twine(arguments.positions) +
                             " exceeds the program's context of " + Twine(room) + "; use fewer" +
                             findings.manifest.largerContextHint());
  size_t maxIds = arguments.positions > 0 ? static_cast<size_t>(arguments.positions)
                                          : std::min(defaultPositions(), room);
  if (arguments.text.empty()) {
    std::mt19937 random(1); // NOLINT: the same ids each time
    while (ids.size() < maxIds)
      ids.push_back(
          static_cast<int32_t>(random() % static_cast<uint32_t>(findings.manifest.vocab)));
    if (findings.manifest.bos)
      ids.front() = *findings.manifest.bos;
  } else {
    if (Error error = readText())
      return error;
    ids.resize(std::min(ids.size(), maxIds));
    if (ids.size() < 2)
      return inputError(arguments.text, "has fewer than two tokens", "use a longer text");
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
  return idsOfText(arguments.text, *tokenizer).moveInto(ids);
}

/// Verifies texts on both sides of each threshold if rope frequencies depend on the length, and
/// each role if arithmetic depends on the role of a row.
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
  findings.comparisons = comparison.comparisons();
  return Error::success();
}

Error Verification::verify(size_t length, RowRole role) {
  Expected<ProgramRun> run =
      runProgram({program.path().str(), probes.path().str(),
                  static_cast<size_t>(findings.manifest.vocab), arguments.threads},
                 ArrayRef(ids).take_front(length), role);
  if (!run)
    return run.takeError();
  auto progress = [&](double done) { bar.show("interpreting", done); };
  if (Error error = comparison.compareOps(*run, *alike, progress))
    return error;
  return comparison.compareWithF32(*run, *exact, progress);
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
  if (const Comparison *fault = verification.findings.firstFault())
    return report(arguments.model.model,
                  createStringError("exceeds the tolerance of its precision, first at " +
                                    verification.findings.locationOf(*fault) +
                                    ": check that layer's weights and kernels"));
  // No test: no known model has such logits while all of its ops are within their bounds.
  return report(arguments.model.model,
                createStringError("its logits exceed the tolerance of its precision; choose "
                                  "more bits with --weights or --kv"));
}

} // namespace mica::tool
