//===- Calibrate.cpp - importance of columns for quantization -------------===//

#include "tools/mica/Calibrate.h"

#include "backends/runtime/profile/Probes.h"
#include "backends/runtime/support/Report.h"
#include "backends/runtime/support/SizeText.h"
#include "frontend/config/gguf/GgufTensors.h"
#include "frontend/formats/gguf/GgufModel.h"
#include "frontend/formats/gguf/Imatrix.h"
#include "frontend/support/InputError.h"
#include "frontend/support/MappedFile.h"
#include "ir/Mica/Diagnostics.h"
#include "ir/Mica/TensorPart.h"
#include "passes/support/Weights.h"
#include "tools/quality/Candidate.h"
#include "tools/quality/Quality.h"
#include "tools/quality/ScoringProcess.h"
#include "tools/quality/TextIds.h"
#include "tools/support/ScratchFile.h"
#include "tools/support/Support.h"
#include "tools/verify/ProbeReader.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

#include <set>

using namespace llvm;

namespace mica::tool {

namespace {

/// A probe and its layer; -1: outside of layers.
using ProbeKey = std::pair<int64_t, std::string>;

/// The sources of the matrices that are multiplied by the rows of each probe of a module at stage
/// `fused`.
class ProbedProducts {
public:
  explicit ProbedProducts(mlir::ModuleOp module) : symbols(module) {
    module.walk([&](mlir::func::CallOp call) { calls[call.getCallee()].push_back(call); });
    module.walk([&](ProbeOp probe) { add(probe); });
  }

  const std::set<std::string> *find(const ProbeKey &place) const {
    auto known = sources.find(place);
    return known == sources.end() ? nullptr : &known->second;
  }

private:
  void add(ProbeOp probe) {
    auto function = probe->getParentOfType<mlir::func::FuncOp>();
    for (mlir::OpOperand &use : probe.getResult().getUses())
      for (mlir::OpOperand &weight : use.getOwner()->getOpOperands()) {
        if (multipliedRows(weight) != probe.getResult())
          continue;
        bool byExpert = isa<MoeDownOp>(use.getOwner());
        auto argument = dyn_cast<mlir::BlockArgument>(weight.get());
        if (!argument) {
          addWeight(probe, -1, weight.get(), byExpert);
          continue;
        }
        for (mlir::func::CallOp call : calls.lookup(function.getSymName()))
          addWeight(probe, layerOf(probe, call), call.getOperand(argument.getArgNumber()),
                    byExpert);
      }
  }

  /// The layer of the probe in the called function.
  static int64_t layerOf(ProbeOp probe, mlir::func::CallOp call) {
    auto argument = dyn_cast_or_null<mlir::BlockArgument>(probe.getLayer());
    APInt layer;
    return argument && mlir::matchPattern(call.getOperand(argument.getArgNumber()),
                                          mlir::m_ConstantInt(&layer))
               ? layer.getSExtValue()
               : -1;
  }

  /// `byExpert`: each source is multiplied by the rows of its expert. A single source with the
  /// matrices of all experts has no statistics.
  void addWeight(ProbeOp probe, int64_t layer, mlir::Value value, bool byExpert) {
    WeightOp weight = lookupWeight(value, symbols);
    if (!weight || (byExpert && !weight.getCompose()))
      return;
    for (auto [expert, source] : enumerate(weight.getSourceList())) {
      std::string name = byExpert
                             ? rt::probeNameOfExpert(probe.getName(), static_cast<int64_t>(expert))
                             : probe.getName().str();
      sources[{layer, name}].insert(TensorPart::of(source).text());
    }
  }

  mlir::SymbolTable symbols;
  StringMap<SmallVector<mlir::func::CallOp>> calls;
  std::map<ProbeKey, std::set<std::string>> sources;
};

/// The mean squares of the columns of each probe, from a file of backends/runtime/profile/Probes.h.
Expected<std::map<ProbeKey, std::vector<float>>> readMeanSquares(StringRef path) {
  Expected<ProbeReader> reader =
      ProbeReader::open(path, rt::columnSumsMagic, "file of column sums");
  if (!reader)
    return reader.takeError();
  std::map<ProbeKey, std::vector<float>> all;
  while (true) {
    Expected<std::optional<ProbeReader::Record>> record = reader->next();
    if (!record)
      return record.takeError();
    if (!*record)
      return all;
    Expected<std::vector<double>> sums = reader->take<double>(1, (*record)->columns);
    if (!sums)
      return sums.takeError();
    // No test: programs write no such sums.
    if ((*record)->rows <= 0)
      return inputError(path, "has column sums of no rows", "run the program again");
    std::vector<float> &means = all[{(*record)->layer, (*record)->name.str()}];
    for (double sum : *sums)
      means.push_back(static_cast<float>(sum / static_cast<double>((*record)->rows)));
  }
}

/// Runs a program on a text.
class Calibration {
public:
  Calibration(const ModelArguments &given, const ModelInput &input, StringRef launcher,
              StringRef text)
      : arguments(given), input(input), launcher(launcher), text(text) {
    arguments.weights = "bf16";
    arguments.kv.clear();
    arguments.rows.clear();
    // It runs here, wherever the quantized program will run.
    arguments.target = "native";
  }

  Expected<cpu::ColumnImportance> run() {
    if (Error error = makeProgram())
      return std::move(error);
    if (Error error = readText())
      return std::move(error);
    if (Error error = compute())
      return std::move(error);
    return takeImportance();
  }

private:
  Error makeProgram() {
    if (Error error = program.create("calibrate"))
      return error;
    if (Error error = sums.create("column-sums"))
      return error;
    Expected<cpu::CompileOptions> resolved = arguments.resolve();
    if (!resolved)
      return resolved.takeError();
    resolved->launcher = launcher.str();
    resolved->probes = Probed::ProductRows;
    resolved->outputHint = ScratchFile::hint;
    return compileModel(arguments, std::move(*resolved), program.path(), Messages::None)
        .takeError();
  }

  Error readText() {
    Expected<Candidate> opened = Candidate::open(program.path());
    if (!opened)
      return opened.takeError();
    if (!opened->text)
      return inputError(arguments.model, "has no tokenizer, which --calibrate needs",
                        "put tokenizer.json into the folder, or use --imatrix");
    if (Error error = idsOfText(text, *opened->text).moveInto(ids))
      return error;
    ids.resize(std::min(ids.size(), kCalibrationIds));
    auto context = std::min(kCalibrationWindow, static_cast<size_t>(opened->manifest.maxSeq));
    windows = planWindows(ids.size(), context, SIZE_MAX);
    if (windows.empty())
      return inputError(text, "has " + rt::countText(static_cast<int64_t>(ids.size()), "token"),
                        "use a longer text");
    constexpr size_t minUsefulIds = 1024;
    if (size_t used = windows.size() * windows.front().length; used < minUsefulIds)
      rt::reportWarning(
          llvm::formatv("{0}: statistics cover only {1} tokens; use a text of at least {2}", text,
                        used, minUsefulIds)
              .str());
    vocab = static_cast<size_t>(opened->manifest.vocab);
    if (opened->manifest.bos && ids.front() == *opened->manifest.bos)
      bos = ids.front();
    return Error::success();
  }

  /// lm_head is only computed for the last rows of each window: logits are large and not needed.
  Error compute() {
    constexpr size_t headRows = 32;
    Expected<std::unique_ptr<ScoringProcess>> process = ScoringProcess::start(
        program.path().str(), {"--column-sums", sums.path().str(), "--prefill-chunk",
                               std::to_string(kCalibrationWindow)});
    if (!process)
      return process.takeError();
    ProgressBar bar;
    std::vector<float> logits;
    for (auto [index, window] : enumerate(windows)) {
      bar.show("calibrating", static_cast<double>(index) / static_cast<double>(windows.size()));
      rt::Tokens piece(ids.begin() + static_cast<ptrdiff_t>(window.begin),
                       ids.begin() + static_cast<ptrdiff_t>(window.begin + window.length));
      if (bos)
        piece.front() = *bos;
      size_t rows = std::min(headRows, piece.size());
      if (Error error = (*process)->ask(0, piece.size(), piece.size() - rows, piece))
        return error;
      logits.resize(rows * vocab);
      if (Error error = (*process)->read(logits))
        return error;
    }
    return (*process)->finish();
  }

  Expected<cpu::ColumnImportance> takeImportance() {
    Expected<std::map<ProbeKey, std::vector<float>>> means = readMeanSquares(sums.path());
    if (!means)
      return means.takeError();
    mlir::OwningOpRef<mlir::ModuleOp> module = input.module.get().clone();
    FirstDiagnostic diagnostic(module->getContext());
    StageOptions stages;
    stages.weights = stages.kv = Precision::BF16;
    stages.probes = Probed::ProductRows;
    mlir::PassManager pm(module->getContext());
    buildModelToFused(pm, stages);
    if (failed(pm.run(*module)))
      return createStringError(arguments.model + ": " + diagnostic.message("cannot be fused"));
    ProbedProducts products(*module);
    cpu::ColumnImportance importance;
    for (auto &[place, columns] : *means)
      if (const std::set<std::string> *sources = products.find(place))
        for (const std::string &source : *sources)
          // No test: the program reports logits that are not finite first.
          if (!importance.add(source, columns))
            return inputError(arguments.model,
                              "has activations that are not finite on this text ('" + place.second +
                                  "')",
                              "check the checkpoint");
    return importance;
  }

  ModelArguments arguments; ///< of the program that is run
  const ModelInput &input;
  StringRef launcher, text;
  ScratchFile program, sums;
  rt::Tokens ids;
  std::optional<int32_t> bos; ///< if the text begins with it
  std::vector<EvalWindow> windows;
  size_t vocab = 0;
};

/// The sources of the matrices that are quantized with --weights int8 or int4 and used in matmuls,
/// in the order of the module.
std::vector<TensorPart> multipliedMatrices(mlir::ModuleOp module) {
  std::vector<TensorPart> matrices;
  StringSet<> known;
  for (WeightOp weight : weightsUsedAs(module, {WeightUse::Product}))
    for (mlir::Attribute source : weight.getSourceList())
      if (TensorPart part = TensorPart::of(source); known.insert(part.text()).second)
        matrices.push_back(std::move(part));
  return matrices;
}

/// How many of the matrices that are quantized have statistics.
class Coverage {
public:
  Coverage(mlir::ModuleOp module, const cpu::ColumnImportance &importance) {
    for (TensorPart &part : multipliedMatrices(module)) {
      ++all;
      if (importance.find(part).empty())
        missing.push_back(std::move(part));
    }
  }

  bool isComplete() const { return missing.empty(); }
  /// At least nine tenths: llama-imatrix omits lm_head.
  bool isOfMost() const { return 10 * (all - missing.size()) >= 9 * all; }

  /// Reports the numbers; `source` has made the statistics of `model`, whose tensors are displayed
  /// by their names in `places`, or their own.
  void report(const Twine &source, StringRef model, const StringMap<GgufTensorRef> &places) const {
    size_t found = all - missing.size();
    std::string message = llvm::formatv("{0} statistics for {1} of {2} matrices of {3}",
                                        source.str(), found, all, model);
    if (isOfMost())
      return rt::reportNote(message);
    const std::string &tensor = missing.front().tensor;
    auto place = places.find(tensor);
    rt::reportWarning(message + ", but not for " +
                      inQuotes(place == places.end() ? tensor : place->second.tensor) +
                      ", which is quantized without statistics");
  }

private:
  size_t all = 0;
  std::vector<TensorPart> missing;
};

} // namespace

Expected<FoundImportance> calibrate(const ModelArguments &arguments, const ModelInput &input,
                                    StringRef launcher, StringRef text) {
  Expected<cpu::ColumnImportance> importance = Calibration(arguments, input, launcher, text).run();
  if (!importance)
    return importance.takeError();
  // The text is of this model, so that complete statistics are no news.
  if (Coverage coverage(input.module.get(), *importance); !coverage.isComplete())
    coverage.report(text + ": gives", arguments.model,
                    input.config && isGguf(input.folder) ? ggufTensorRefs(*input.config)
                                                         : StringMap<GgufTensorRef>());
  return FoundImportance{std::move(*importance), ActivationStatistics::Calibrated};
}

Expected<FoundImportance> importanceOfImatrix(StringRef model, const ModelInput &input,
                                              StringRef path) {
  Expected<MappedFile> file = MappedFile::openNamed(path);
  if (!file)
    return file.takeError();
  Expected<Imatrix> imatrix = readImatrix(file->bytes(), path);
  if (!imatrix)
    return imatrix.takeError();
  if (!input.config)
    return inputError(model, "has no mapping of tensor names to those of GGUF files",
                      "use --calibrate, or the folder or GGUF file that it came from");
  cpu::ColumnImportance importance(path);
  StringMap<GgufTensorRef> places = ggufTensorRefs(*input.config);
  for (const auto &[name, place] : places) {
    auto entry = imatrix->find(place.tensor);
    if (entry == imatrix->end())
      continue;
    Expected<std::vector<float>> columns = entry->second.matrix(place.matrix, place.matrices);
    if (!columns)
      return inputError(
          path, "has " + toString(columns.takeError()) + " (" + inQuotes(place.tensor) + ")",
          "use the statistics of this model");
    importance.add(name, std::move(*columns));
  }
  if (importance.size() == 0)
    return inputError(path, "has no statistics for any matrix of " + model,
                      "use those of this model");
  // A file with few may belong to another model.
  Coverage coverage(input.module.get(), importance);
  coverage.report(path + ": has", model, places);
  return FoundImportance{std::move(importance), coverage.isOfMost()
                                                    ? ActivationStatistics::Imatrix
                                                    : ActivationStatistics::FewMatrices};
}

} // namespace mica::tool
