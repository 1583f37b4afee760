//===- Compiler.cpp - from stage model to any later one ------------------------------------------===//

#include "backends/cpu/compile/Compiler.h"

#include "backends/cpu/codegen/NativeCode.h"
#include "backends/cpu/codegen/Passes.h"
#include "backends/cpu/compile/Diagnostics.h"
#include "backends/cpu/compile/ProgramOutput.h"
#include "backends/cpu/lowering/Passes.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using llvm::Error;
using llvm::Expected;

namespace mica::cpu {

StageTable stagesFor(const TargetDescription &target) {
  StageTable table = StageTable::graphStages();
  bool bf16Dot = target.avx512Bf16;
  table.set(Stage::Loops, [bf16Dot](OpPassManager &pm, const StageOptions &) { buildLoopsPipeline(pm, bf16Dot); });
  table.set(Stage::Llvm, [target](OpPassManager &pm, const StageOptions &) { addLoopsToLlvmPasses(pm, target); });
  return table;
}

StageOptions stageOptionsFor(ModuleOp module, const CompileOptions &options) {
  bool narrow = llvm::any_of(module.getOps<WeightOp>(), [](WeightOp weight) {
    RankedTensorType type = weight.getTensorType();
    return type.getRank() >= 2 && !type.getElementType().isF32();
  });
  StageOptions stages;
  stages.weights = options.weights.value_or(narrow ? Precision::BF16 : Precision::F32);
  stages.kv = options.kv.value_or(stages.weights);
  // oneDNN has its fast packed forms for AVX-512 only.
  stages.onednnF32 = options.target.vectorBits == 512;
  stages.onednnBf16 = options.target.avx512Bf16;
  return stages;
}

/// The context length that programs get where nobody says otherwise is bounded: its memory is reserved at start.
static Error setContext(ModuleOp module, const CompileOptions &options) {
  constexpr int64_t mostByDefault = 8192;
  auto model = module->getAttrOfType<DictionaryAttr>("mica.model");
  auto limit = model ? model.getAs<IntegerAttr>("max_positions") : IntegerAttr();
  int64_t own = limit ? limit.getInt() : mostByDefault;
  if (own < 1)
    return llvm::createStringError("the model's max_positions is " + llvm::Twine(own) + ", but must be positive");
  int64_t wanted = options.maxSeq.value_or(std::min(own, mostByDefault));
  if (wanted < 1 || wanted > own)
    return llvm::createStringError("--max-seq " + llvm::Twine(wanted) + " is not between 1 and the model's own " + llvm::Twine(own) +
                                   " positions, choose another");
  NamedAttrList entries(model);
  entries.set("max_positions", Builder(module.getContext()).getI64IntegerAttr(wanted));
  module->setAttr("mica.model", entries.getDictionary(module.getContext()));
  return Error::success();
}

/// A module with the weight symbols only: the way to stage `llvm` drops them.
static OwningOpRef<ModuleOp> weightsOf(ModuleOp module) {
  OwningOpRef<ModuleOp> weights = ModuleOp::create(module.getLoc());
  OpBuilder builder = OpBuilder::atBlockEnd(weights->getBody());
  for (WeightOp weight : module.getOps<WeightOp>())
    builder.clone(*weight);
  return weights;
}

static Error writeTo(StringRef path, StringRef bytes) {
  Error error = llvm::writeToOutput(path, [&](raw_ostream &stream) {
    stream << bytes;
    return Error::success();
  });
  if (!error)
    return error;
  return llvm::createStringError(path + ": cannot be written (" + llvm::toString(std::move(error)) + ")");
}

namespace {

/// One run of the compiler.
class Compilation {
public:
  Compilation(ModuleOp module, const WeightSource *source, const CompileOptions &options, StringRef output)
      : module(module), source(source), options(options), output(output), stages(stagesFor(options.target)) {}

  Expected<CompileResult> run() {
    if (Error error = setContext(module, options))
      return error;
    stageOptions = stageOptionsFor(module, options);
    if (Error error = runPasses())
      return error;
    if (options.emit > Stage::Llvm)
      if (Error error = generateCode())
        return error;
    return std::move(result);
  }

private:
  bool wanted(Stage stage) const { return stage <= options.emit; }

  /// Files the stage that was just reached: measured, dumped, written.
  Error reached(Stage stage, double seconds, llvm::function_ref<std::string()> text) {
    const StageInfo &info = getStageInfo(stage);
    bool emitted = stage == options.emit, dumped = !options.dumpFolder.empty();
    std::string bytes = emitted || dumped || options.measureBytes ? text() : std::string();
    result.stages.push_back({info.name.str(), seconds, bytes.size()});
    if (dumped)
      if (Error error = dump(stage, bytes))
        return error;
    return emitted ? writeTo(output, bytes) : Error::success();
  }

  Error dump(Stage stage, StringRef bytes) {
    if (std::error_code error = llvm::sys::fs::create_directories(options.dumpFolder))
      return llvm::createStringError(options.dumpFolder + ": cannot be made (" + error.message() + ")");
    static constexpr StringRef extensions[] = {"mlir", "mlir", "mlir", "mlir", "mlir", "ll", "s", "o", ""};
    auto number = static_cast<size_t>(stage);
    std::string name = llvm::formatv("{0}-{1}.{2}", number, getStageInfo(stage).name, extensions[number]);
    return writeTo(options.dumpFolder + "/" + name, bytes);
  }

  std::string printed() {
    std::string text;
    llvm::raw_string_ostream(text) << module << "\n";
    return text;
  }

  Error runPasses() {
    for (Stage stage : {Stage::Model, Stage::Fused, Stage::Kernels, Stage::Loops, Stage::Llvm}) {
      if (!wanted(stage))
        break;
      Stopwatch watch;
      if (options.onStage)
        options.onStage(getStageInfo(stage).name);
      if (stage == Stage::Llvm)
        weights = weightsOf(module);
      if (stage != Stage::Model)
        if (Error error = runStage(stage))
          return error;
      if (Error error = reached(stage, watch.seconds(), [&] { return printed(); }))
        return error;
      if (Error error = readFactsAt(stage))
        return error;
    }
    return Error::success();
  }

  Error runStage(Stage stage) {
    PassManager passes(module.getContext());
    auto before = static_cast<Stage>(static_cast<int>(stage) - 1);
    if (Error error = stages.buildPipeline(passes, before, stage, stageOptions))
      return error;
    FirstError first(module.getContext());
    if (failed(passes.run(module)))
      return first.take(("stage " + getStageInfo(stage).name + " cannot be reached").str());
    return Error::success();
  }

  Error readFactsAt(Stage stage) {
    if (stage == Stage::Kernels) {
      Expected<ProgramFacts> facts = readFacts(module);
      if (!facts)
        return facts.takeError();
      result.facts = std::move(*facts);
    }
    if (stage == Stage::Loops)
      addScratchFacts(module, *result.facts);
    return Error::success();
  }

  Error generateCode() {
    Expected<std::unique_ptr<llvm::TargetMachine>> machine = createTargetMachine(options.target);
    if (!machine)
      return machine.takeError();
    llvm::LLVMContext context;
    Expected<std::unique_ptr<llvm::Module>> ir = generateIr(context, **machine);
    if (!ir)
      return ir.takeError();
    if (Error error = generateAssembly(**ir, **machine))
      return error;
    if (!wanted(Stage::Obj))
      return Error::success();
    Stopwatch watch;
    start(Stage::Obj);
    Expected<llvm::SmallString<0>> object = emit(**ir, **machine, llvm::CodeGenFileType::ObjectFile);
    if (!object)
      return object.takeError();
    if (Error error = reached(Stage::Obj, watch.seconds(), [&] { return object->str().str(); }))
      return error;
    return wanted(Stage::Exe) ? makeProgram(*object) : Error::success();
  }

  void start(Stage stage) {
    if (options.onStage)
      options.onStage(getStageInfo(stage).name);
  }

  Expected<std::unique_ptr<llvm::Module>> generateIr(llvm::LLVMContext &context, llvm::TargetMachine &machine) {
    Stopwatch watch;
    start(Stage::Ll);
    FirstError first(module.getContext());
    Expected<std::unique_ptr<llvm::Module>> ir = translateToLlvmIr(module, context, options.target, machine);
    if (!ir)
      return first.take(llvm::toString(ir.takeError()));
    optimize(**ir, machine);
    auto text = [&] {
      std::string bytes;
      llvm::raw_string_ostream stream(bytes);
      (*ir)->print(stream, nullptr);
      return bytes;
    };
    if (Error error = reached(Stage::Ll, watch.seconds(), text))
      return error;
    return ir;
  }

  /// Assembly is no step on the way to an object: it is made where someone looks at it, from a copy, as code generation uses the
  /// module up.
  Error generateAssembly(llvm::Module &ir, llvm::TargetMachine &machine) {
    if (options.emit != Stage::Asm && options.dumpFolder.empty())
      return Error::success();
    if (!wanted(Stage::Asm))
      return Error::success();
    Stopwatch watch;
    start(Stage::Asm);
    std::unique_ptr<llvm::Module> copy = llvm::CloneModule(ir);
    Expected<llvm::SmallString<0>> text = emit(*copy, machine, llvm::CodeGenFileType::AssemblyFile);
    if (!text)
      return text.takeError();
    return reached(Stage::Asm, watch.seconds(), [&] { return text->str().str(); });
  }

  Error makeProgram(StringRef object) {
    Stopwatch watch;
    start(Stage::Exe);
    Expected<llvm::SmallVector<char, 0>> code = linkSharedObject(object);
    if (!code)
      return code.takeError();
    StringRef bytes(code->data(), code->size());
    if (Error error = checkUndefinedSymbols(bytes, runtimeSymbols()))
      return error;
    auto progress = [&](uint64_t done, uint64_t all) {
      if (options.onPacked)
        options.onPacked(done, all);
    };
    std::string manifest = llvm::formatv("{0}", llvm::json::Value(makeManifest(*result.facts, options.target)));
    ProgramParts parts{options.launcher, bytes, options.tokenizer, manifest, *weights, source, progress};
    if (Error error = writeProgram(parts, output))
      return error;
    uint64_t size = 0;
    (void)llvm::sys::fs::file_size(output, size);
    result.stages.push_back({"exe", watch.seconds(), size});
    return Error::success();
  }

  ModuleOp module;
  const WeightSource *source;
  const CompileOptions &options;
  StringRef output;
  StageTable stages;
  StageOptions stageOptions;
  OwningOpRef<ModuleOp> weights;
  CompileResult result;
};

} // namespace

Expected<CompileResult> compile(ModuleOp module, const WeightSource *source, const CompileOptions &options, StringRef output) {
  return Compilation(module, source, options, output).run();
}

Error lowerTo(ModuleOp module, Stage last, const CompileOptions &options) {
  if (Error error = setContext(module, options))
    return error;
  PassManager passes(module.getContext());
  if (Error error = stagesFor(options.target).buildPipeline(passes, Stage::Model, last, stageOptionsFor(module, options)))
    return error;
  FirstError first(module.getContext());
  if (failed(passes.run(module)))
    return first.take("the passes fail");
  return Error::success();
}

} // namespace mica::cpu
