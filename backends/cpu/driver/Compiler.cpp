//===- Compiler.cpp - from a module to a program --------------------------===//

#include "backends/cpu/driver/Compiler.h"

#include "backends/cpu/codegen/ModelSymbols.h"
#include "backends/cpu/codegen/NativeCode.h"
#include "backends/cpu/codegen/Pipeline.h"
#include "backends/cpu/codegen/SharedObject.h"
#include "backends/cpu/dispatch/Pipeline.h"
#include "backends/cpu/driver/DescribeProgram.h"
#include "backends/cpu/driver/TextOutput.h"
#include "backends/cpu/lowering/Pipeline.h"
#include "backends/cpu/pack/PackWeights.h"
#include "backends/cpu/target/Passes.h"
#include "backends/runtime/abi/ManifestKeys.h"
#include "backends/runtime/program/ProgramWriter.h"
#include "backends/runtime/support/Threads.h"
#include "ir/Exec/Exec.h"
#include "ir/Mica/EntrySignature.h"
#include "ir/Mica/ModelDescription.h"
#include "ir/Mica/Names.h"
#include "ir/Mica/RopeFrequencies.h"

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Transforms/Utils/Cloning.h"

#include <chrono>

using namespace mlir;
using namespace mica;
using namespace mica::cpu;
namespace keys = mica::rt::manifest_keys;

static llvm::Error error(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

/// Caches are f32 if the weights are, else bf16 by default.
static Precision kvPrecision(const CompileOptions &options, Precision weights) {
  return options.kv.value_or(std::min(weights, Precision::BF16));
}

/// The shortest context that a rope scaling extends to; nullopt if none defines one.
static std::optional<int64_t> lengthScaledFor(ModuleOp module) {
  std::optional<int64_t> shortest;
  module.walk([&](RotatesByPosition rope) {
    RopeScalingAttr scaling = rope.getScalingAttr();
    std::optional<double> extended = scaling ? scaling.getExtendedContext() : std::nullopt;
    if (!extended)
      return;
    auto length = static_cast<int64_t>(std::clamp(*extended, 1.0, 1e15));
    shortest = std::min(shortest.value_or(length), length);
  });
  return shortest;
}

/// Whether the model can be used beyond its own length: its theta grows with the sequence length,
/// and positions are not looked up in a table.
static bool goesBeyondItsLength(ModuleOp module) {
  bool looksUp = false;
  module.walk([&](GathersRows embedding) {
    looksUp |= EntrySignature::roleOf(embedding.getTokens()) != EntryRole::Tokens;
  });
  return ropeThetaGrows(module) && !looksUp;
}

/// The path of a stage's text for --dump-stages.
static std::string dumpPath(StringRef folder, Stage stage) {
  StringRef name = getStageInfo(stage).name;
  StringRef ending = stage <= Stage::Llvm  ? ".mlir"
                     : stage == Stage::Ll  ? ""
                     : stage == Stage::Asm ? ".s"
                                           : ".o";
  return (folder + "/" + llvm::Twine(static_cast<int>(stage)) + "-" +
          (stage == Stage::Ll ? "optimized.ll" : name + ending))
      .str();
}

std::vector<OutputFile> mica::cpu::outputsOf(const CompileOptions &options, StringRef output) {
  std::vector<OutputFile> files = {{output.str(), "-o"}};
  if (!options.dumpFolder.empty())
    for (const StageInfo &info : getStages())
      if (info.stage <= options.emit && info.stage != Stage::Exe)
        files.push_back({dumpPath(options.dumpFolder, info.stage), "--dump-stages"});
  return files;
}

llvm::Error mica::cpu::checkOutput(const CompileOptions &options, StringRef output) {
  if (output.empty() || output == "-")
    return llvm::Error::success();
  // Created files are removed again.
  auto file = options.emit == Stage::Exe
                  ? program::ProgramWriter::createFile(output.str(), options.outputHint)
                  : rt::TemporaryFile::create(output.str(), {}, options.outputHint);
  return file ? llvm::Error::success()
              : llvm::createStringError(output + ": " + file.error().message);
}

namespace {

/// One run through the stages.
class Compilation {
public:
  Compilation(ModuleOp module, const WeightSource *weights, const CompileOptions &options,
              StringRef output)
      : module(module), weights(weights), options(options), output(output),
        precision(options.weights.value_or(checkpointPrecision(module))),
        kv(kvPrecision(options, precision)), parameters(countParameters(module)),
        diagnostic(module.getContext()) {}

  llvm::Expected<CompileReport> run() {
    if (llvm::Error failed = makeDumpFolder())
      return failed;
    if (options.promptRows)
      setPromptRows(module, *options.promptRows);
    for (const StageInfo &info : getStages()) {
      Stage stage = info.stage;
      if (stage > options.emit)
        break;
      // Assembly is only for display; no later stage depends on it.
      if (stage == Stage::Asm && options.emit != Stage::Asm && options.dumpFolder.empty())
        continue;
      auto start = std::chrono::steady_clock::now();
      if (llvm::Error failed = reach(stage))
        return failed;
      std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
      if (llvm::Error failed = observe(stage))
        return failed;
      if (llvm::Error failed = leave(stage, seconds.count()))
        return failed;
    }
    report.remarks = diagnostic.remarks().vec();
    return report;
  }

private:
  llvm::Error reach(Stage stage) {
    tell({stage});
    switch (stage) {
    case Stage::Model:
      report.scaledFor = lengthScaledFor(module);
      return llvm::Error::success();
    case Stage::Fused:
      return runPasses(stage);
    case Stage::Llvm:
      return isLoweringCached ? llvm::Error::success() : runPasses(stage);
    case Stage::Kernels:
      if (llvm::Error failed = runPasses(stage))
        return failed;
      return describe();
    case Stage::Loops:
      return makeLoops();
    case Stage::Ll:
      return makeLlvmIr();
    case Stage::Asm:
      return emitCode(llvm::CodeGenFileType::AssemblyFile, text);
    case Stage::Obj:
      return makeObject();
    case Stage::Exe:
      return writeProgram();
    }
    llvm_unreachable("all stages are handled above");
  }

  llvm::Error observe(Stage stage) {
    if (!options.observer)
      return llvm::Error::success();
    if (stage <= Stage::Llvm)
      return options.observer->onModule(stage, module);
    if (stage == Stage::Ll)
      return options.observer->onCode(*code, *machine);
    return stage == Stage::Obj ? options.observer->onObject(object, manifest.dump())
                               : llvm::Error::success();
  }

  /// Runs the passes from the previous stage to `stage`.
  llvm::Error runPasses(Stage stage) {
    PassManager pm(module.getContext());
    auto before = static_cast<Stage>(static_cast<int>(stage) - 1);
    if (llvm::Error failed =
            stages.buildPipeline(pm, before, stage, stageOptionsOf(options, precision)))
      return failed;
    if (options.observer)
      options.observer->onPipeline(stage, pm);
    if (succeeded(pm.run(module)))
      return llvm::Error::success();
    std::string place = diagnostic.place("");
    return error(
        (place.empty() ? "the model" : place) + ": " +
        diagnostic.message(("cannot reach stage `" + getStageInfo(stage).name + "`").str()));
  }

  /// Creates the part of the manifest that is known at stage `kernels`.
  llvm::Error describe() {
    constexpr int64_t kDefaultMaxSeq = 8192;
    Attribute attribute = module->getAttr(kModelAttr);
    if (!attribute)
      return error("the module has no mica.model with max_positions: "
                   "add `mica.model = {max_positions = N}` to its attributes");
    FailureOr<ModelDescription> model = readModelDescription(attribute, getVocabulary(module),
                                                             [&] { return module.emitOpError(); });
    if (failed(model))
      return error(diagnostic.message("the module's mica.model is wrong"));
    int64_t maxSeq = options.maxSeq.value_or(std::min(model->maxPositions, kDefaultMaxSeq));
    int64_t limit = goesBeyondItsLength(module) ? bounds::maxPositions.max : model->maxPositions;
    if (maxSeq < 1 || maxSeq > limit)
      return error("--max-seq " + llvm::Twine(maxSeq) + " is not between 1 and " +
                   (limit == model->maxPositions ? "the model's own " : "") + llvm::Twine(limit) +
                   " positions; choose another");
    manifest = describeProgram(module, precision, kv, maxSeq);
    manifest[keys::maxPositions.text] = limit;
    manifest[keys::parameters.text] = parameters;
    report.maxSeq = maxSeq;
    report.weights = precision;
    report.kv = kv;
    report.promptRows = *promptRowsOf(module);
    report.preservedBlocks = preservedBlocks(module);
    llvm::Expected<SequenceBytes> bytes = addSequenceBytes(manifest);
    if (!bytes)
      return error(llvm::toString(bytes.takeError()));
    report.cacheBytesPerToken = bytes->perToken;
    report.cacheBytes = bytes->caches;
    report.stateBytes = bytes->states;
    report.checkpointBytes = bytes->checkpoint;
    if (!options.chatTemplate.empty())
      manifest[keys::chat.text] = {
          {keys::chatTemplate.text, options.chatTemplate},
          {keys::specialTokens.text,
           nlohmann::json(std::map<std::string, std::string>(options.specialTokens.begin(),
                                                             options.specialTokens.end()))}};
    if (!options.chatTemplate.empty() && !options.toolTemplate.empty())
      manifest[keys::chat.text][keys::toolTemplate.text] = options.toolTemplate;
    return llvm::Error::success();
  }

  /// Whether objects of earlier compilations can be used: no stage between is observed or written.
  bool usesCache() const {
    return options.objects && !options.observer && options.dumpFolder.empty() &&
           options.emit >= Stage::Obj;
  }

  llvm::Error makeLoops() {
    if (usesCache())
      moduleKey = ObjectCache::keyOf(module);
    if (!findLowered()) {
      if (llvm::Error failed = runPasses(Stage::Loops))
        return failed;
      describeCode(codeManifest, module);
      manifest.update(codeManifest);
    }
    // The packer needs the symbols of weights, which the passes to `llvm` erase.
    packed = module.clone();
    return llvm::Error::success();
  }

  /// An entry by `moduleKey` is the text of `codeManifest`, which ends with a null character, and
  /// the object.
  bool findLowered() {
    std::optional<llvm::SmallString<0>> found =
        moduleKey.empty() ? std::nullopt : options.objects->find(moduleKey);
    if (!found)
      return false;
    auto [description, code] = found->str().split('\0');
    manifest.update(nlohmann::json::parse(description.str()));
    object = code;
    return isLoweringCached = report.isCodeCached = true;
  }

  llvm::Error storeLowered() {
    if (moduleKey.empty() || isLoweringCached)
      return llvm::Error::success();
    std::string entry = codeManifest.dump() + '\0';
    return options.objects->store(moduleKey, entry.append(object.begin(), object.end()));
  }

  llvm::Error makeLlvmIr() {
    if (isLoweringCached)
      return llvm::Error::success();
    llvm::Expected<std::unique_ptr<llvm::TargetMachine>> made =
        createTargetMachine(targetOf(module));
    if (!made)
      return made.takeError();
    machine = std::move(*made);
    llvm::Expected<std::unique_ptr<llvm::Module>> translated =
        translateToLlvmIr(module, llvmContext, *machine);
    if (!translated)
      return translated.takeError();
    code = std::move(*translated);
    if (usesCache()) {
      objectKey = ObjectCache::keyOf(*code, *machine);
      if (auto found = options.objects->find(objectKey)) {
        object = std::move(*found);
        report.isCodeCached = true;
        return llvm::Error::success();
      }
    }
    llvm::PassInstrumentationCallbacks callbacks;
    if (options.observer)
      options.observer->onOptimizer(*code, callbacks);
    optimize(*code, *machine, options.observer ? &callbacks : nullptr);
    return llvm::Error::success();
  }

  llvm::Error makeObject() {
    if (report.isCodeCached)
      return storeLowered();
    if (llvm::Error failed = emitCode(llvm::CodeGenFileType::ObjectFile, object))
      return failed;
    if (!objectKey.empty())
      if (llvm::Error failed = options.objects->store(objectKey, object))
        return failed;
    return storeLowered();
  }

  llvm::Error emitCode(llvm::CodeGenFileType type, llvm::SmallString<0> &into) {
    // Code generation consumes its module.
    std::unique_ptr<llvm::Module> copy = llvm::CloneModule(*code);
    llvm::Expected<llvm::SmallString<0>> emitted = emit(*copy, *machine, type);
    if (!emitted)
      return emitted.takeError();
    into = std::move(*emitted);
    return llvm::Error::success();
  }

  /// Converts a status of the program writer to an error that names the output.
  llvm::Error take(rt::Status status) const {
    return status ? llvm::Error::success() : error(output + ": " + status.error().message);
  }

  llvm::Error writeProgram() {
    if (!weights)
      return error("a program needs the model's weights, but the folder has none");
    auto created = program::ProgramWriter::create(output, options.launcher, options.outputHint);
    if (!created)
      return error(output + ": " + created.error().message);
    llvm::Expected<llvm::SmallVector<char, 0>> shared = linkSharedObject(object);
    if (!shared)
      return shared.takeError();
    if (llvm::Error unknown =
            checkUndefinedSymbols(StringRef(shared->data(), shared->size()), kLibrarySymbols))
      return unknown;
    program::ProgramWriter &writer = **created;
    auto bytesOf = [](const auto &range) {
      return std::as_bytes(std::span(range.data(), range.size()));
    };
    if (llvm::Error failed = take(writer.add(program::SectionKind::Code, bytesOf(*shared))))
      return failed;
    if (llvm::Error failed = writeWeights(writer))
      return failed;
    if (!options.tokenizer.empty())
      if (llvm::Error failed =
              take(writer.add(program::SectionKind::Tokenizer, bytesOf(options.tokenizer))))
        return failed;
    manifest[keys::weightBytes.text] = packedBytes(*packed);
    std::string json = manifest.dump(1);
    if (llvm::Error failed = take(writer.add(program::SectionKind::Manifest, bytesOf(json))))
      return failed;
    return take(writer.commit());
  }

  llvm::Error writeWeights(program::ProgramWriter &writer) {
    uint64_t ofRank = packedBytes(*packed);
    PackOptions pack;
    pack.rankStride = program::rankStride(ofRank);
    if (llvm::Error failed = take(writer.begin(program::SectionKind::Weights,
                                               program::bytesOfRanks(ofRank, options.ranks))))
      return failed;
    auto sink = [&](ArrayRef<uint8_t> bytes) {
      return take(writer.append(std::as_bytes(std::span(bytes.data(), bytes.size()))));
    };
    auto progress = [&](uint64_t done, uint64_t all) {
      tell({Stage::Exe, /*isReached=*/false, done, all});
    };
    // Weights that are not partitioned have the same padding in programs for one process.
    uint64_t padding = 0, unsharded = 0;
    auto count = [&](WeightOp weight, int64_t paddingBytes) {
      std::optional<ShardAttr> shard = weight.getShard();
      uint64_t unused = shard ? paddingBytes : 0;
      padding += unused;
      unsharded +=
          (getStoredBytes(weight.getTensorType()) - unused) * (shard ? shard->getParts() : 1);
    };
    pack.sink = sink;
    pack.progress = progress;
    pack.padding = count;
    pack.importance = options.importance;
    report.packingThreads = pack.threads = rt::defaultThreads();
    if (llvm::Error failed = packWeights(*packed, *weights, pack))
      return failed;
    if (options.ranks > 1) {
      manifest[keys::paddingBytes.text] = padding;
      manifest[keys::unshardedBytes.text] = unsharded;
    }
    report.weightBytes = writer.sectionSize();
    return take(writer.end());
  }

  /// Creates only the folder itself: a missing parent may be a mistyped path.
  llvm::Error makeDumpFolder() {
    StringRef folder = options.dumpFolder;
    if (folder.empty())
      return llvm::Error::success();
    std::error_code failed =
        llvm::sys::fs::create_directory(folder, /*IgnoreExisting=*/true, llvm::sys::fs::all_all);
    return failed ? error(folder + ": cannot be created (" + failed.message() +
                          "); choose another --dump-stages")
                  : llvm::Error::success();
  }

  void tell(const CompileProgress &progress) {
    if (options.progress)
      options.progress(progress);
  }

  /// The text of a stage; empty for the program.
  std::string print(Stage stage) {
    std::string printed;
    llvm::raw_string_ostream stream(printed);
    if (stage <= Stage::Kernels)
      printNamed(module, stream);
    else if (stage <= Stage::Llvm)
      module.print(stream);
    else if (stage == Stage::Ll)
      code->print(stream, nullptr);
    else if (stage == Stage::Asm)
      stream << text;
    else if (stage == Stage::Obj)
      stream << object;
    return printed;
  }

  /// Writes the requested output of a stage, and reports its cost.
  llvm::Error leave(Stage stage, double seconds) {
    uint64_t bytes = 0;
    bool emitted = stage == options.emit && stage != Stage::Exe && !output.empty();
    if (emitted || (!options.dumpFolder.empty() && stage != Stage::Exe)) {
      std::string printed = print(stage);
      bytes = printed.size();
      if (!options.dumpFolder.empty())
        if (llvm::Error failed =
                writeText(dumpPath(options.dumpFolder, stage), printed, "--dump-stages"))
          return failed;
      if (emitted)
        if (llvm::Error failed = writeText(output, printed, "-o"))
          return failed;
    }
    if (stage == Stage::Obj)
      bytes = object.size();
    // Errors are ignored because the size is only reported: the program may already have been
    // moved.
    if (stage == Stage::Exe && llvm::sys::fs::file_size(output, bytes))
      bytes = 0;
    tell({stage, /*isReached=*/true, report.weightBytes, report.weightBytes});
    report.stages.push_back({stage, seconds, bytes});
    return llvm::Error::success();
  }

  ModuleOp module;
  const WeightSource *weights;
  const CompileOptions &options;
  std::string output;
  Precision precision, kv;
  int64_t parameters;
  FirstDiagnostic diagnostic;
  StageTable stages = stagesFor(options.target);
  CompileReport report;
  nlohmann::json manifest;
  nlohmann::json codeManifest; ///< the part of the manifest that is known at stage `loops`
  /// The module at stage `loops`, or `kernels` if the code is cached: their weights are the same.
  OwningOpRef<ModuleOp> packed;
  bool isLoweringCached = false; ///< whether the code was found by the module at stage `kernels`
  llvm::LLVMContext llvmContext;
  std::unique_ptr<llvm::TargetMachine> machine;
  std::unique_ptr<llvm::Module> code;
  std::string moduleKey, objectKey; ///< empty: the cache is not used
  llvm::SmallString<0> text, object;
};

} // namespace

CompileObserver::~CompileObserver() = default;

void mica::cpu::registerCompilerDialects(DialectRegistry &registry) {
  registerAllDialects(registry);
  registerAllExtensions(registry);
  registry.insert<MicaDialect, exec::ExecDialect, CpuDialect>();
  exec::registerBufferization(registry);
}

StageTable mica::cpu::stagesFor(const TargetDescription &target) {
  StageTable stages = StageTable::graphStages();
  stages.set(Stage::Kernels, [target](OpPassManager &pm, const StageOptions &options) {
    pm.addPass(createSetTarget(target));
    buildFusedToKernels(pm, options);
  });
  stages.set(Stage::Loops, [](OpPassManager &pm, const StageOptions &) { buildLoopsPipeline(pm); });
  stages.set(Stage::Llvm,
             [](OpPassManager &pm, const StageOptions &) { addLoopsToLlvmPasses(pm); });
  return stages;
}

StageOptions mica::cpu::stageOptionsOf(const CompileOptions &options, Precision weights) {
  StageOptions stage;
  stage.weights = weights;
  stage.kv = kvPrecision(options, weights);
  stage.preserveBlocks = options.preserveBlocks;
  stage.ranks = options.ranks;
  stage.probes = options.probes;
  return stage;
}

void mica::cpu::chooseWeights(CompileOptions &options, double bits) {
  if (options.weights)
    return;
  // The precision of matrices that are not block-quantized or whose blocks cannot be preserved.
  constexpr double kBitsOfF32 = 32;
  options.weights = bits < kBitsOfF32 ? Precision::BF16 : Precision::F32;
  options.preserveBlocks = true;
}

Precision mica::cpu::checkpointPrecision(ModuleOp module) {
  for (auto weight : module.getOps<WeightOp>())
    if (weight.getTensorType().getRank() > 1 && weight.getTensorType().getElementType().isF32())
      return Precision::F32;
  return Precision::BF16;
}

int64_t mica::cpu::countParameters(ModuleOp module) {
  int64_t count = 0;
  for (auto weight : module.getOps<WeightOp>())
    count += weight.getTensorType().getNumElements();
  return count;
}

llvm::Expected<CompileReport> mica::cpu::compile(ModuleOp module, const WeightSource *weights,
                                                 const CompileOptions &options, StringRef output) {
  return Compilation(module, weights, options, output).run();
}
