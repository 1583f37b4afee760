//===- ModelFacts.cpp - properties of a model -----------------------------===//

#include "tools/mica/ModelFacts.h"

#include "backends/cpu/driver/DescribeProgram.h"
#include "backends/cpu/pack/PackWeights.h"
#include "backends/cpu/target/CpuDialect.h"
#include "backends/runtime/abi/Manifest.h"
#include "backends/runtime/support/SizeText.h"
#include "frontend/support/InputError.h"
#include "ir/Mica/Diagnostics.h"
#include "ir/Mica/EntrySignature.h"
#include "ir/Mica/Mica.h"
#include "ir/Mica/ModelDescription.h"
#include "passes/support/CacheKinds.h"
#include "passes/support/Phases.h"
#include "tools/support/Support.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace mica::tool {

static void readWeights(ModuleOp module, ModelFacts &facts) {
  facts.tensors = cpu::countTensors(module);
  facts.parameters = cpu::countParameters(module);
}

static void readFunctions(ModuleOp module, ModelFacts &facts) {
  for (auto function : module.getOps<func::FuncOp>()) {
    ModelFacts::Function &entry = facts.functions[function.getName().str()];
    entry.ops = cpu::countOps(function);
    function.walk([&](func::CallOp call) { ++facts.functions[call.getCallee().str()].calls; });
  }
}

/// The number of layers as calls in the entry function; 0 if they are in a loop or inline.
static int64_t countLayerCalls(func::FuncOp main) {
  int64_t calls = 0;
  for (Operation &op : main.front()) {
    if (isa<scf::ForOp>(op))
      return 0;
    calls += isa<func::CallOp>(op);
  }
  return calls;
}

/// Describes the sizes of each op on a state once.
static void readStateOps(ModuleOp module, ModelFacts &facts) {
  auto size = [](Value value, unsigned index) {
    return llvm::Twine(cast<ShapedType>(value.getType()).getDimSize(index)).str();
  };
  auto add = [](std::vector<std::string> &all, std::string text) {
    if (!llvm::is_contained(all, text))
      all.push_back(std::move(text));
  };
  module.walk([&](Operation *op) {
    if (auto attention = dyn_cast<AttentionOp>(op)) {
      Value cache = findCache(attention.getK());
      auto state = cache ? dyn_cast<SequenceState>(cache.getType()) : SequenceState();
      if (SmallVector<int64_t> heads = state ? state.getRowShape() : SmallVector<int64_t>();
          heads.size() == 2)
        add(facts.attention, size(attention.getQ(), 1) + " heads, " + std::to_string(heads[0]) +
                                 " key/value heads of " + std::to_string(heads[1]));
    } else if (auto recurrence = dyn_cast<LinearAttentionOp>(op)) {
      add(facts.recurrences, size(recurrence.getV(), 1) + " heads with a matrix of " +
                                 size(recurrence.getK(), 2) + " x " + size(recurrence.getV(), 2) +
                                 ", " + size(recurrence.getK(), 1) + " heads of keys");
    } else if (auto convolution = dyn_cast<CausalConv1dOp>(op)) {
      add(facts.convolutions,
          size(convolution.getX(), 1) + " channels, " + size(convolution.getWeight(), 1) + " taps");
    }
  });
}

static void readShape(ModuleOp module, ModelFacts &facts) {
  readStateOps(module, facts);
  module.walk(
      [&](AttentionOp op) { facts.heads = cast<ShapedType>(op.getQ().getType()).getDimSize(1); });
  // The first table is that of the tokens; rows of others may have another size.
  module.walk([&](EmbeddingOp op) {
    if (facts.hidden == 0)
      facts.hidden = cast<ShapedType>(op.getType()).getDimSize(1);
  });
  auto main = module.lookupSymbol<func::FuncOp>("main");
  if (!main)
    return;
  facts.vocab = EntrySignature(main).vocabulary();
  CacheKinds kinds(module);
  // Problems with the caches are reported by the passes.
  if (failed(kinds.infer(module)))
    return;
  // A layer may have several states of fixed size, such as a convolution's and a matrix per head;
  // it counts once.
  llvm::SmallDenseMap<TypeID, int64_t> fixed;
  for (BlockArgument argument : main.getArguments()) {
    auto state = dyn_cast<SequenceState>(argument.getType());
    // Layers that cache values have keys as well.
    if (!state || kinds.get(argument) == KvKind::Values)
      continue;
    if (state.getSlots() > 0) {
      fixed[argument.getType().getTypeID()] += state.getLayers();
      continue;
    }
    facts.layers += state.getLayers();
    facts.caches[state.getWindow()].layers += state.getLayers();
    if (SmallVector<int64_t> heads = state.getRowShape(); heads.size() == 2)
      std::tie(facts.kvHeads, facts.headDim) = std::pair(heads[0], heads[1]);
  }
  facts.layers += fixed.empty() ? 0 : llvm::max_element(fixed, llvm::less_second())->second;
  // Layers may have several kinds of states, or none.
  if (int64_t calls = countLayerCalls(main))
    facts.layers = calls;
}

static void readKernels(ModuleOp module, ModelFacts &facts) {
  for (auto function : module.getOps<func::FuncOp>()) {
    function.walk([&](Operation *op) {
      if (!isa<MicaDialect>(op->getDialect()) || op->hasTrait<RunsNoKernel>())
        return;
      // Only some matmuls have several kernels to choose from; other kernels are generated.
      auto selects = dyn_cast<SelectsKernel>(op);
      StringRef kind = stringifyKernelKind(
          selects ? selects.getKernel().value_or(KernelKind::Generated) : KernelKind::Generated);
      ++facts.kernels[function.getName().str()][(op->getName().stripDialect() + " " + kind).str()];
    });
    if (!function.isPublic() || facts.cachePerToken + facts.statePerSequence != 0)
      continue;
    for (Type type : function.getArgumentTypes())
      if (auto state = dyn_cast<SequenceState>(type)) {
        if (state.getSlots() > 0) {
          facts.statePerSequence += state.getBytesPerSequence();
          continue;
        }
        facts.cachePerToken += state.getBytesPerPosition();
        facts.caches[state.getWindow()].perToken += state.getBytesPerPosition();
        facts.kv = nameOf(precisionOf(state.getElementType())).str();
      }
  }
  facts.blockFormats = cpu::blockFormatsOf(module);
  facts.floatTypes = cpu::floatTypesOf(module);
  facts.rows = cpu::rowsOfRoles(module);
  facts.storedBytes = cpu::packedBytes(module);
}

std::map<std::string, int64_t> readModelSizes(ModuleOp module) {
  ModelFacts facts;
  // Reported by the passes.
  FirstDiagnostic ignored(module.getContext());
  readWeights(module, facts);
  readShape(module, facts);
  std::map<std::string, int64_t> sizes{{"layers", facts.layers},    {"hidden", facts.hidden},
                                       {"heads", facts.heads},      {"kv_heads", facts.kvHeads},
                                       {"head_dim", facts.headDim}, {"tensors", facts.tensors}};
  std::erase_if(sizes, [](const auto &size) { return size.second == 0; });
  return sizes;
}

llvm::Expected<ModelFacts> readModelFacts(ModuleOp module, const cpu::CompileOptions &options) {
  ModelFacts facts;
  facts.name = module.getName().value_or("model").str();
  if (auto model = module->getAttrOfType<DictionaryAttr>(kModelAttr)) {
    if (auto family = model.getAs<StringAttr>("family"))
      facts.family = family.str();
    if (auto positions = model.getAs<IntegerAttr>("max_positions"))
      facts.context = positions.getInt();
  }
  FirstDiagnostic first(module.getContext());
  readWeights(module, facts);
  readFunctions(module, facts);
  readShape(module, facts);

  if (options.promptRows)
    setPromptRows(module, *options.promptRows);
  PassManager passes(module.getContext());
  StageOptions stages =
      cpu::stageOptionsOf(options, options.weights.value_or(cpu::checkpointPrecision(module)));
  if (llvm::Error error = cpu::stagesFor(options.target)
                              .buildPipeline(passes, Stage::Model, Stage::Kernels, stages))
    return std::move(error);
  // No test: no model is known that is valid but rejected by the passes.
  if (failed(passes.run(module)))
    return inputError(first.place(facts.name), first.message("cannot be taken to stage kernels"),
                      "correct the IR");
  facts.target = cpu::targetOf(module);
  readKernels(module, facts);
  facts.weights = nameOf(stages.weights).str();
  facts.promptRows = nameOf(*promptRowsOf(module)).str();
  facts.remarks = first.remarks().vec();
  return facts;
}

static llvm::json::Object countsJson(const std::map<std::string, int64_t> &counts) {
  llvm::json::Object object;
  for (const auto &[name, count] : counts)
    object[name] = count;
  return object;
}

static llvm::json::Array cachesJson(const ModelFacts &facts) {
  llvm::json::Array caches;
  for (const auto &[window, cache] : facts.caches) {
    llvm::json::Object entry{{"layers", cache.layers}, {"bytes_per_token", cache.perToken}};
    if (window > 0)
      entry["window"] = window;
    caches.push_back(std::move(entry));
  }
  return caches;
}

llvm::json::Object toJson(const ModelFacts &facts) {
  llvm::json::Object functions, kernels;
  for (const auto &[name, function] : facts.functions)
    functions[llvm::json::fixUTF8(name)] =
        llvm::json::Object{{"calls", function.calls}, {"ops", countsJson(function.ops)}};
  for (const auto &[name, counts] : facts.kernels)
    kernels[llvm::json::fixUTF8(name)] = countsJson(counts);
  llvm::json::Object object{{"name", llvm::json::fixUTF8(facts.name)},
                            {"family", llvm::json::fixUTF8(facts.family)},
                            {"context", facts.context},
                            {"vocab", facts.vocab},
                            {"hidden", facts.hidden},
                            {"layers", facts.layers},
                            {"heads", facts.heads},
                            {"kv_heads", facts.kvHeads},
                            {"head_dim", facts.headDim},
                            {"tensors", facts.tensors},
                            {"parameters", facts.parameters},
                            {"weights", facts.weights},
                            {"weight_bytes", facts.storedBytes},
                            {"prompt_rows", facts.promptRows},
                            {"kv", facts.kv},
                            {"cache_bytes_per_token", facts.cachePerToken},
                            {"caches", cachesJson(facts)},
                            {"state_bytes", facts.statePerSequence},
                            {"target", facts.target.cpu},
                            {"target_features", llvm::json::Array(facts.target.features)},
                            {"vector_bits", facts.target.vectorBits},
                            {"functions", std::move(functions)},
                            {"kernels", std::move(kernels)}};
  if (!facts.stored.empty())
    object["stored"] = facts.stored;
  if (!facts.blockFormats.empty())
    object["block_formats"] = countsJson(facts.blockFormats);
  if (!facts.floatTypes.empty())
    object["float_types"] = countsJson(facts.floatTypes);
  if (!facts.rows.empty()) {
    llvm::json::Object rows;
    for (const auto &[role, type] : facts.rows)
      rows[role] = type;
    object["rows"] = std::move(rows);
  }
  return object;
}

static std::string countsText(const std::map<std::string, int64_t> &counts) {
  std::string text;
  for (const auto &[name, count] : counts)
    text += (text.empty() ? "" : ", ") + name + (count > 1 ? " x " + std::to_string(count) : "");
  return text;
}

/// "q4_k x 24, f32 x 9": the tensors of each type of weights.
static std::string typesText(const ModelFacts &facts) {
  llvm::SmallVector<std::string> types;
  for (const auto *counts : {&facts.blockFormats, &facts.floatTypes})
    for (const auto &[name, count] : *counts)
      types.push_back(name + " x " + std::to_string(count));
  return llvm::join(types, ", ");
}

/// The target and the relevant features.
static std::string targetText(const cpu::TargetDescription &target) {
  return target.cpu + ": " + std::to_string(target.vectorBits) + "-bit vectors" +
         (target.bf16Dot ? ", bf16 dot products" : "") +
         (target.int8Dot ? ", int8 dot products" : "") + (target.tiles ? ", AMX tiles" : "");
}

std::string toText(const ModelFacts &facts) {
  std::string text;
  llvm::raw_string_ostream out(text);
  auto line = [&](llvm::StringRef name, const llvm::Twine &value) {
    out << llvm::formatv("{0,-13} ", name) << value << "\n";
  };
  line("model", facts.name + (facts.family.empty() ? "" : " (" + facts.family + ")"));
  line("context", llvm::Twine(facts.context) + " positions");
  line("vocabulary", llvm::Twine(facts.vocab));
  bool isUniform = facts.attention.size() == 1;
  line("shape", llvm::Twine(facts.layers) + " layers, hidden " + llvm::Twine(facts.hidden) +
                    (isUniform ? ", " + facts.attention.front() : ""));
  if (!isUniform)
    for (const std::string &sizes : facts.attention)
      line("attention", sizes);
  for (const std::string &sizes : facts.recurrences)
    line("recurrence", sizes);
  for (const std::string &sizes : facts.convolutions)
    line("convolution", sizes);
  line("parameters",
       llvm::Twine(facts.parameters) + " in " + llvm::Twine(facts.tensors) + " tensors");
  if (!facts.stored.empty())
    line("stored as", facts.stored + " (most weights)");
  line("program", rt::bytesText(static_cast<double>(facts.storedBytes)) + " of weights (" +
                      typesText(facts) + "), " +
                      rt::bitsPerWeightText(static_cast<double>(facts.storedBytes),
                                            static_cast<double>(facts.parameters)) +
                      ", " + rt::bytesText(static_cast<double>(facts.cachePerToken)) +
                      " of cache per token" + (facts.kv.empty() ? "" : " (" + facts.kv + ")"));
  for (const auto &[window, cache] : facts.caches)
    if (window > 0)
      line("window", llvm::Twine(cache.layers) + " layers store the last " + llvm::Twine(window) +
                         " positions, " + rt::bytesText(static_cast<double>(cache.perToken)) +
                         " of that cache");
  if (facts.statePerSequence > 0)
    line("state", rt::bytesText(static_cast<double>(facts.statePerSequence)) +
                      " per sequence of any length");
  for (const auto &[role, type] : facts.rows)
    line(rt::phaseText(role),
         "activations are " + type + " for block-quantized weights" +
             (role == kPromptRole ? " (--rows " + facts.promptRows + ")" : ""));
  line("target", targetText(facts.target));
  // Names of functions may be longer than the headings above.
  size_t width = 13;
  for (const auto &[name, function] : facts.functions)
    width = std::max(width, name.size());
  for (const auto &[name, counts] : facts.kernels)
    width = std::max(width, name.size() + 2);
  auto row = [&](std::string name, const llvm::Twine &value) {
    name.resize(width, ' ');
    out << name << " " << value << "\n";
  };
  for (const auto &[name, function] : facts.functions) {
    row(name, function.calls == 0   ? "entry"
              : function.calls == 1 ? "1 layer"
                                    : llvm::Twine(function.calls) + " layers");
    row("", countsText(function.ops));
  }
  out << "kernels for " << facts.target.cpu << "\n";
  for (const auto &[name, counts] : facts.kernels)
    row("  " + name, countsText(counts));
  return text;
}

} // namespace mica::tool
