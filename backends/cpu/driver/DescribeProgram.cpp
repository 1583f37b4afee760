//===- DescribeProgram.cpp - the manifest of a program --------------------===//

#include "backends/cpu/driver/DescribeProgram.h"

#include "backends/cpu/lowering/Passes.h"
#include "backends/cpu/target/CpuDialect.h"
#include "backends/runtime/abi/Manifest.h"
#include "backends/runtime/abi/ManifestKeys.h"
#include "backends/runtime/abi/MatmulShape.h"
#include "ir/Exec/Exec.h"
#include "ir/Mica/EntrySignature.h"
#include "ir/Mica/ModelDescription.h"
#include "ir/Mica/RopeFrequencies.h"
#include "ir/Mica/Shard.h"
#include "ir/Mica/StackedExperts.h"
#include "ir/Mica/TensorPart.h"
#include "passes/support/CacheKinds.h"
#include "passes/support/CacheOrigins.h"
#include "passes/support/Phases.h"
#include "passes/support/Weights.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

#include <map>
#include <utility>

using namespace mlir;
using namespace mica;
using namespace mica::cpu;
using nlohmann::json;
namespace keys = mica::rt::manifest_keys;

/// The number of positions that can always be rewound in layers with windows; if the edited part of
/// a conversation is longer, the conversation is recomputed from its first position.
static constexpr int64_t kRewindPositions = 2048;

/// Converts an attribute of `mica.model` to JSON.
static json toJson(Attribute attribute) {
  if (auto text = dyn_cast<StringAttr>(attribute))
    return text.str();
  if (auto boolean = dyn_cast<BoolAttr>(attribute))
    return boolean.getValue();
  if (auto integer = dyn_cast<IntegerAttr>(attribute))
    return integer.getInt();
  if (auto number = dyn_cast<FloatAttr>(attribute))
    return number.getValueAsDouble();
  json result;
  if (auto array = dyn_cast<ArrayAttr>(attribute)) {
    result = json::array();
    for (Attribute element : array)
      result.push_back(toJson(element));
  } else if (auto dictionary = dyn_cast<DictionaryAttr>(attribute)) {
    result = json::object();
    for (NamedAttribute entry : dictionary)
      result[entry.getName().str()] = toJson(entry.getValue());
  }
  return result;
}

static func::FuncOp firstEntry(ModuleOp module) {
  for (auto function : module.getOps<func::FuncOp>())
    if (isEntry(function))
      return function;
  return {};
}

/// The extents of a state in the manifest's format: -1 is the number of sequences, -2 the number of
/// blocks of positions.
static json shapeOf(SequenceState state) {
  std::vector<int64_t> shape = state.getPhysicalType().getShape().vec();
  int64_t next = -1;
  for (int64_t &extent : shape)
    if (ShapedType::isDynamic(extent))
      extent = std::exchange(next, -2);
  return json(shape);
}

namespace {
/// Counts how often a step reads a layer of each cache: several layers may read the same one, and
/// those of a multi-token prediction head are in another function.
class CacheReads {
public:
  /// The number of reads of each argument of `function`.
  SmallVector<int64_t> of(func::FuncOp function) {
    auto known = counts.find(function);
    if (known != counts.end())
      return known->second;
    SmallVector<int64_t> reads(function.getNumArguments());
    function.walk([&](Operation *op) {
      if (auto attention = dyn_cast<AttentionOp>(op)) {
        llvm::SmallSetVector<Value, 2> caches;
        for (Value rows : {attention.getK(), attention.getV()})
          if (Value cache = findCache(rows))
            caches.insert(cache);
        for (Value cache : caches)
          add(reads, cache, iterationsOf(op));
      } else if (auto call = dyn_cast<func::CallOp>(op)) {
        SmallVector<int64_t> inside =
            of(SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr()));
        for (auto [operand, times] : llvm::zip_equal(call.getOperands(), inside))
          if (times > 0)
            add(reads, operand, times * iterationsOf(op));
      }
    });
    counts[function] = reads;
    return reads;
  }

private:
  void add(SmallVector<int64_t> &reads, Value cache, int64_t times) {
    if (BlockArgument argument = origins.argumentOf(cache))
      reads[argument.getArgNumber()] += times;
  }

  /// How often the loops around an op execute it.
  static int64_t iterationsOf(Operation *op) {
    int64_t times = 1;
    for (auto loop = op->getParentOfType<scf::ForOp>(); loop;
         loop = loop->getParentOfType<scf::ForOp>())
      if (std::optional<llvm::APInt> trips = loop.getStaticTripCount())
        times *= trips->getSExtValue();
    return times;
  }

  CacheOrigins origins;
  DenseMap<Operation *, SmallVector<int64_t>> counts;
};
} // namespace

static json describeCaches(func::FuncOp entry) {
  json caches = json::array();
  SmallVector<int64_t> reads = CacheReads().of(entry);
  llvm::StringMap<int64_t> counts;
  for (BlockArgument argument : EntrySignature(entry).states()) {
    auto state = cast<SequenceState>(argument.getType());
    std::string content = state.getContentName().str();
    caches.push_back(
        {{keys::cacheName.text, content + std::to_string(counts[content]++)},
         {keys::element.text, nameOf(precisionOf(state.getElementType())).str()},
         {keys::shape.text, shapeOf(state)},
         {keys::bytesPerToken.text, state.getBytesPerPosition()},
         {keys::bytesReadPerPosition.text,
          state.getBytesPerPosition() / state.getLayers() * reads[argument.getArgNumber()]}});
    if (state.getWindow() > 0)
      caches.back()[keys::window.text] = state.getWindow();
    if (state.getSlots() > 0)
      caches.back()[keys::slots.text] = state.getSlots();
    if (auto recurrent = dyn_cast<RecurrentStateType>(argument.getType())) {
      caches.back()[keys::matrix.text] = recurrent.getKeyDim() * recurrent.getValueDim();
      caches.back()[keys::chunk.text] = RecurrentStateType::kChunk;
    }
  }
  return caches;
}

/// The fraction of the experts that one token reads.
static double expertShare(ModuleOp module) {
  double share = 1;
  auto shareOf = [&](Value choice, Value matrices) {
    auto picks = cast<RankedTensorType>(choice.getType()),
         experts = cast<RankedTensorType>(matrices.getType());
    share = static_cast<double>(picks.getDimSize(1)) / static_cast<double>(experts.getDimSize(0));
  };
  module.walk([&](MoeExpertsOp op) { shareOf(op.getExperts(), op.getDown()); });
  module.walk([&](MoeDownOp op) { shareOf(op.getExperts(), op.getDown()); });
  return share;
}

/// The types of weights that are stacks of one matrix per expert.
static DenseSet<Type> typesOfExperts(ModuleOp module) {
  DenseSet<Type> types;
  module.walk([&](MultipliesRows op) {
    if (isa<MoeExpertsOp, MoeGateUpOp, MoeDownOp>(op))
      for (Value weight : allMatricesOf(op))
        types.insert(weight.getType());
  });
  return types;
}

/// The names of weights that are only used to gather rows.
static llvm::StringSet<> tablesOf(ModuleOp module) {
  llvm::StringSet<> tables, others;
  module.walk([&](GetWeightOp get) {
    for (OpOperand &use : get->getUses())
      (classifyWeightUse(use) == WeightUse::Table ? tables : others).insert(get.getWeight());
  });
  for (const auto &other : others)
    tables.erase(other.getKey());
  return tables;
}

/// The number of multiplications and additions for the logits of one row.
static double logitsFlops(ModuleOp module) {
  double flops = 0;
  module.walk([&](MultipliesRows product) {
    if (product->hasTrait<ComputesLogits>())
      flops =
          2 * static_cast<double>(
                  cast<RankedTensorType>(product.getMatrices().front().getType()).getNumElements());
  });
  return flops;
}

/// The names of weights that a step of the model does not use, only its multi-token prediction
/// head.
static llvm::StringSet<> weightsOfHead(ModuleOp module) {
  llvm::StringSet<> ofHead, others;
  for (auto function : module.getOps<func::FuncOp>())
    function.walk([&](GetWeightOp get) {
      (rowRoleOf(function) == kDraftRole ? ofHead : others).insert(get.getWeight());
    });
  for (const auto &other : others)
    ofHead.erase(other.getKey());
  return ofHead;
}

/// Packed matrices are read completely, stacks of experts in part; gathered rows are not counted,
/// nor is what drafts read.
llvm::StringMap<double> mica::cpu::sharesReadPerToken(ModuleOp module) {
  llvm::StringMap<double> shares;
  double share = expertShare(module);
  llvm::StringSet<> tables = tablesOf(module), ofHead = weightsOfHead(module);
  DenseSet<Type> ofExperts = typesOfExperts(module);
  for (auto weight : module.getOps<WeightOp>()) {
    RankedTensorType type = weight.getTensorType();
    if (!isa_and_nonnull<PackedLayoutAttr>(type.getEncoding()) ||
        tables.contains(weight.getSymName()) || ofHead.contains(weight.getSymName()))
      continue;
    shares[weight.getSymName()] = ofExperts.contains(type) ? share : 1;
  }
  return shares;
}

/// The cost of decoding one token: all matrices that are read are multiplied. Prefill computes
/// logits only for the last row.
static json describeCost(ModuleOp module) {
  double bytes = 0, ofLogits = logitsFlops(module), flops = -ofLogits;
  llvm::StringMap<double> shares = sharesReadPerToken(module);
  for (auto weight : module.getOps<WeightOp>()) {
    RankedTensorType type = weight.getTensorType();
    double part = shares.lookup(weight.getSymName());
    bytes += static_cast<double>(getStoredBytes(type)) * part;
    flops += 2 * static_cast<double>(type.getNumElements()) * part;
  }
  return {{keys::weightBytesPerToken.text, static_cast<int64_t>(bytes)},
          {keys::flopsPerToken.text, static_cast<int64_t>(flops)},
          {keys::flopsPerLogits.text, static_cast<int64_t>(ofLogits)}};
}

std::map<std::string, int64_t> mica::cpu::countOps(func::FuncOp function) {
  std::map<std::string, int64_t> counts;
  function.walk([&](Operation *op) {
    if (isa<MicaDialect>(op->getDialect()) && !isa<GetWeightOp>(op))
      ++counts[op->getName().stripDialect().str()];
  });
  return counts;
}

/// The number of occurrences of each op in each function.
static json describeOps(ModuleOp module) {
  json functions = json::object();
  for (auto function : module.getOps<func::FuncOp>()) {
    json &counts = functions[function.getName().str()] = json::object();
    for (const auto &[name, count] : countOps(function))
      counts["mica." + name] = count;
  }
  return functions;
}

/// Adds the checkpoint's tensors that the weight is made of.
static void addTensors(WeightOp weight, llvm::StringSet<> &tensors) {
  bool isStacked = weight->getParentOfType<ModuleOp>()->hasAttr(kStackedExpertsAttr);
  for (Attribute source : weight.getSourceList()) {
    std::string name = TensorPart::of(source).tensor;
    tensors.insert(isStacked ? stackedName(name) : name);
  }
}

int64_t mica::cpu::countTensors(ModuleOp module) {
  return countTensors(llvm::to_vector(module.getOps<WeightOp>()));
}

int64_t mica::cpu::countTensors(ArrayRef<WeightOp> weights) {
  llvm::StringSet<> tensors;
  for (WeightOp weight : weights)
    addTensors(weight, tensors);
  return static_cast<int64_t>(tensors.size());
}

/// The number of the checkpoint's tensors in each element type for which `isCounted` holds: several
/// parts of a tensor, such as its experts, count once.
static TensorCounts countByType(ModuleOp module, llvm::function_ref<bool(Type)> isCounted) {
  std::map<std::string, llvm::StringSet<>> tensors;
  for (auto weight : module.getOps<WeightOp>())
    if (Type element = weight.getTensorType().getElementType(); isCounted(element))
      addTensors(weight, tensors[displayNameOf(element)]);
  TensorCounts counts;
  for (const auto &[name, ofType] : tensors)
    counts[name] = static_cast<int64_t>(ofType.size());
  return counts;
}

TensorCounts mica::cpu::preservedBlocks(ModuleOp module) {
  return countByType(module, [](Type element) {
    auto quantized = dyn_cast<QuantizedElementType>(element);
    return quantized && quantized.isOfFiles();
  });
}

TensorCounts mica::cpu::blockFormatsOf(ModuleOp module) {
  return countByType(module, [](Type element) { return isa<QuantizedElementType>(element); });
}

TensorCounts mica::cpu::floatTypesOf(ModuleOp module) {
  return countByType(module, [](Type element) { return !isa<QuantizedElementType>(element); });
}

/// Whether all matrices of the op are block-quantized; otherwise activations are floats.
static bool hasOnlyBlocks(MultipliesRows product) {
  return llvm::all_of(allMatricesOf(product),
                      [](Value each) { return isQuantized(getElementTypeOrSelf(each)); });
}

std::map<std::string, std::string> mica::cpu::rowsOfRoles(ModuleOp module) {
  std::map<std::string, std::string> rows;
  for (auto function : module.getOps<func::FuncOp>())
    function.walk([&](MultipliesRows product) {
      if (!hasOnlyBlocks(product))
        return;
      std::string type = displayNameOf(getElementTypeOrSelf(product.getMultipliedRows().get()));
      StringRef role = rowRoleOf(function);
      if (!role.empty())
        rows[role.str()] = type;
      else // The same for both roles.
        rows[kPromptRole.str()] = rows[kDecodeRole.str()] = type;
    });
  return rows;
}

/// The bytes of weights that every rank has as well, by name, with `*` for numbers.
static std::map<std::string, int64_t> replicatedWeights(ModuleOp module) {
  std::map<std::string, int64_t> bytes;
  for (auto weight : module.getOps<WeightOp>()) {
    std::optional<ShardAttr> shard = weight.getShard();
    if (shard && shard->getReplicas() == 1)
      continue;
    SmallVector<StringRef> words;
    weight.getSymName().split(words, '.');
    for (StringRef &word : words)
      if (!word.empty() && llvm::all_of(word, llvm::isDigit))
        word = "*";
    bytes[llvm::join(words, ".")] += getStoredBytes(weight.getTensorType());
  }
  return bytes;
}

json mica::cpu::describeProgram(ModuleOp module, Precision weights, Precision kv, int64_t maxSeq) {
  TargetDescription target = targetOf(module);
  func::FuncOp entry = firstEntry(module);
  auto model = module->getAttrOfType<DictionaryAttr>(kModelAttr);
  json config = toJson(model), caches = describeCaches(entry);
  int64_t block = 64;
  for (BlockArgument argument : EntrySignature(entry).states())
    if (int64_t own = cast<SequenceState>(argument.getType()).getPositionBlock(); own > 0)
      block = own;
  json manifest = {
      {keys::name.text, module.getName().value_or("model").str()},
      {keys::weights.text, nameOf(weights).str()},
      {keys::kv.text, nameOf(kv).str()},
      {keys::vocab.text, EntrySignature(entry).vocabulary()},
      {keys::maxSeq.text, maxSeq},
      {keys::target.text, {{keys::cpu.text, target.cpu}, {keys::features.text, target.features}}},
      {keys::positionBlock.text, block},
      {keys::rewindPositions.text, kRewindPositions},
      {keys::bos.text, config.value(keys::bos.text, json())},
      {keys::eos.text, config.value(keys::eos.text, json::array())},
      {keys::generation.text, config.value(keys::generation.text, json::object())},
      {keys::ops.text, describeOps(module)},
      {keys::config.text, config},
  };
  if (BlockArgument hidden = EntrySignature(entry).hidden())
    manifest[keys::hidden.text] = cast<RankedTensorType>(hidden.getType()).getDimSize(1);
  if (TensorCounts formats = blockFormatsOf(module); !formats.empty())
    manifest[keys::blockFormats.text] = formats;
  if (TensorCounts types = floatTypesOf(module); !types.empty())
    manifest[keys::floatTypes.text] = types;
  if (std::map<std::string, std::string> rows = rowsOfRoles(module); !rows.empty())
    manifest[keys::rows.text] = rows;
  if (EntrySignature(entry).argument(EntryRole::Lengths)) {
    SmallVector<int64_t> thresholds = ropeLengthThresholds(module);
    manifest[keys::ropeLengthThresholds.text] =
        std::vector<int64_t>(thresholds.begin(), thresholds.end());
    if (ropeThetaGrows(module))
      manifest[keys::ropeThetaGrows.text] = true;
  }
  if (auto rows = module->getAttrOfType<IntegerAttr>(kGemmThresholdAttr))
    manifest[keys::batchInvariantRows.text] = rows.getInt();
  if (!rowRoleOf(entry).empty())
    manifest[keys::dependsOnRole.text] = true;
  if (int64_t ranks = getRanks(module); ranks > 1) {
    manifest[keys::ranks.text] = ranks;
    manifest[keys::replicated.text] = replicatedWeights(module);
  }
  manifest[keys::cost.text] = describeCost(module);
  manifest[keys::caches.text] = std::move(caches);
  return manifest;
}

llvm::Expected<SequenceBytes> mica::cpu::addSequenceBytes(json &manifest) {
  rt::Result<rt::Manifest> parsed = rt::parseCaches(manifest);
  if (!parsed)
    return llvm::createStringError(parsed.error().message);
  for (auto [index, cache] : llvm::enumerate(parsed->caches)) {
    json &described = manifest[keys::caches.text][index];
    described[keys::bytesPerSequence.text] =
        rt::cacheBytesPerSequence(*parsed, cache, rt::kMaxPromptRows);
    if (uint64_t checkpoint = rt::checkpointBytes(cache))
      described[keys::bytesPerCheckpoint.text] = checkpoint;
  }
  return SequenceBytes{static_cast<int64_t>(rt::cacheBytesPerToken(*parsed)),
                       static_cast<int64_t>(rt::cacheBytesPerSequence(*parsed, rt::kMaxPromptRows)),
                       static_cast<int64_t>(rt::stateBytesPerSequence(*parsed)),
                       static_cast<int64_t>(rt::checkpointBytes(*parsed))};
}

/// Adds the locations in the model of the ops that launch `kernel`, without layer indices.
static void addLocations(json &kernels, const std::string &kernel, Location location) {
  json &places = kernels.emplace(kernel, json::array()).first.value();
  location->walk([&](Location part) {
    auto name = dyn_cast<NameLoc>(part);
    if (!name)
      return WalkResult::advance();
    std::string place = name.getName().str();
    if (llvm::find(places, place) == places.end())
      places.push_back(std::move(place));
    return WalkResult::skip();
  });
}

json mica::cpu::describeKernels(ModuleOp module) {
  json kernels = json::object();
  module.walk([&](exec::LaunchOp launch) {
    addLocations(kernels, launch.getKernel().str(), launch.getLoc());
  });
  module.walk([&](exec::MatmulOp product) {
    addLocations(kernels,
                 rt::matmulName(static_cast<int64_t>(product.getN()),
                                static_cast<int64_t>(product.getK()), product.getAccumulate()),
                 product.getLoc());
  });
  return kernels;
}

void mica::cpu::describeCode(json &manifest, ModuleOp module) {
  func::FuncOp entry = firstEntry(module);
  json arguments = json::array();
  for (unsigned index = 0; index < entry.getNumArguments(); ++index)
    arguments.push_back(std::string(infoOf(*EntrySignature(entry).argumentRole(index)).name));
  manifest[keys::entry.text] = {{keys::abi.text, kEntryAbi}, {keys::arguments.text, arguments}};
  auto number = [&](StringRef name) { return module->getAttrOfType<IntegerAttr>(name).getInt(); };
  manifest[keys::scratch.text] = {{keys::bytesPerRow.text, number(kScratchPerRowAttr)},
                                  {keys::bytesPerOutput.text, number(kScratchPerOutputAttr)},
                                  {keys::bytesFixed.text, number(kScratchFixedAttr)}};
  manifest[keys::kernels.text] = describeKernels(module);
}
