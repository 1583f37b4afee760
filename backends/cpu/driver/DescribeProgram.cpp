//===- DescribeProgram.cpp - what a program says about its model ----------===//

#include "backends/cpu/driver/DescribeProgram.h"

#include "backends/cpu/lowering/Passes.h"
#include "backends/cpu/target/CpuDialect.h"
#include "backends/runtime/abi/Manifest.h"
#include "backends/runtime/abi/MatmulShape.h"
#include "backends/runtime/abi/ParseCaches.h"
#include "ir/Exec/Exec.h"
#include "ir/Mica/EntrySignature.h"
#include "ir/Mica/TensorPart.h"
#include "passes/support/Phases.h"
#include "passes/support/Weights.h"

#include "llvm/ADT/StringSet.h"

#include <map>
#include <utility>

using namespace mlir;
using namespace mica;
using namespace mica::cpu;
using nlohmann::json;

/// How many positions can always be rewound where layers have windows; a conversation whose edited
/// turn is longer is recomputed from its first position.
static constexpr int64_t kRewindPositions = 2048;

/// Any attribute of `mica.model` as JSON.
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

/// Extents as the runtime reads them: -1 is the number of sequences, -2 that of blocks of
/// positions.
static json shapeOf(SequenceState state) {
  std::vector<int64_t> shape = state.getPhysicalType().getShape().vec();
  int64_t next = -1;
  for (int64_t &extent : shape)
    if (ShapedType::isDynamic(extent))
      extent = std::exchange(next, -2);
  return json(shape);
}

static json describeCaches(func::FuncOp entry) {
  json caches = json::array();
  llvm::StringMap<int64_t> counts;
  for (BlockArgument argument : EntrySignature(entry).states()) {
    auto state = cast<SequenceState>(argument.getType());
    std::string content = state.getContentName().str();
    caches.push_back({{"name", content + std::to_string(counts[content]++)},
                      {"element", nameOf(precisionOf(state.getElementType())).str()},
                      {"shape", shapeOf(state)},
                      {"bytes_per_token", state.getBytesPerPosition()}});
    if (state.getWindow() > 0)
      caches.back()["window"] = state.getWindow();
    if (state.getSlots() > 0)
      caches.back()["slots"] = state.getSlots();
  }
  return caches;
}

/// The share of a stack of experts that one token reads.
static double expertShare(ModuleOp module) {
  double share = 1;
  module.walk([&](MoeExpertsOp op) {
    auto picks = cast<RankedTensorType>(op.getExperts().getType()),
         experts = cast<RankedTensorType>(op.getDown().getType());
    share = static_cast<double>(picks.getDimSize(1)) / static_cast<double>(experts.getDimSize(0));
  });
  return share;
}

/// The types of weights that hold a matrix for each expert.
static DenseSet<Type> typesOfExperts(ModuleOp module) {
  DenseSet<Type> types;
  module.walk([&](MoeExpertsOp op) {
    for (Value weight : allMatricesOf(op))
      types.insert(weight.getType());
  });
  return types;
}

/// Weights of which rows are gathered and nothing else.
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

/// Multiplications and additions of the logits of one row.
static double logitsFlops(ModuleOp module) {
  double flops = 0;
  module.walk([&](LmHeadOp head) {
    flops = 2 * static_cast<double>(
                    cast<RankedTensorType>(head.getWeight().getType()).getNumElements());
  });
  return flops;
}

/// Packed matrices are read whole, stacks of experts in part, rows of tables not counted.
llvm::StringMap<double> mica::cpu::sharesReadPerToken(ModuleOp module) {
  llvm::StringMap<double> shares;
  double share = expertShare(module);
  llvm::StringSet<> tables = tablesOf(module);
  DenseSet<Type> ofExperts = typesOfExperts(module);
  for (auto weight : module.getOps<WeightOp>()) {
    RankedTensorType type = weight.getTensorType();
    if (!isa_and_nonnull<PackedLayoutAttr>(type.getEncoding()) ||
        tables.contains(weight.getSymName()))
      continue;
    shares[weight.getSymName()] = ofExperts.contains(type) ? share : 1;
  }
  return shares;
}

/// What decoding one token costs: matrices that are read are multiplied. Prompts need logits of
/// their last row only.
static json describeCost(ModuleOp module, const json &caches) {
  double bytes = 0, ofLogits = logitsFlops(module), flops = -ofLogits;
  llvm::StringMap<double> shares = sharesReadPerToken(module);
  for (auto weight : module.getOps<WeightOp>()) {
    RankedTensorType type = weight.getTensorType();
    double part = shares.lookup(weight.getSymName());
    bytes += static_cast<double>(getStoredBytes(type)) * part;
    flops += 2 * static_cast<double>(type.getNumElements()) * part;
  }
  int64_t kvBytes = 0;
  for (const json &cache : caches)
    kvBytes += cache["bytes_per_token"].get<int64_t>();
  return {{"weight_bytes_per_token", static_cast<int64_t>(bytes)},
          {"flops_per_token", static_cast<int64_t>(flops)},
          {"flops_per_logits", static_cast<int64_t>(ofLogits)},
          {"kv_bytes_per_position", kvBytes}};
}

std::map<std::string, int64_t> mica::cpu::countOps(func::FuncOp function) {
  std::map<std::string, int64_t> counts;
  function.walk([&](Operation *op) {
    if (isa<MicaDialect>(op->getDialect()) && !isa<GetWeightOp>(op))
      ++counts[op->getName().stripDialect().str()];
  });
  return counts;
}

/// How often each op occurs in each function.
static json describeOps(ModuleOp module) {
  json functions = json::object();
  for (auto function : module.getOps<func::FuncOp>()) {
    json &counts = functions[function.getName().str()] = json::object();
    for (const auto &[name, count] : countOps(function))
      counts["mica." + name] = count;
  }
  return functions;
}

/// Whether the checkpoint is a file whose tensors are block-quantized in part.
static bool isOfBlocks(ModuleOp module) {
  return llvm::any_of(module.getOps<WeightOp>(),
                      [](WeightOp weight) { return !!weight.getStored(); });
}

/// `name` without the number of an expert: "experts.7.down_proj" => "experts.*.down_proj".
static std::string withoutExpert(StringRef name) {
  constexpr StringLiteral kBefore = ".experts.";
  size_t place = name.find(kBefore);
  if (place == StringRef::npos)
    return name.str();
  auto [before, rest] =
      std::pair(name.take_front(place + kBefore.size()), name.drop_front(place + kBefore.size()));
  StringRef after = rest.drop_while(llvm::isDigit);
  return after.size() == rest.size() ? name.str() : (before + "*" + after).str();
}

/// Adds the tensors that the weight is made of. Files with blocks store all experts in one.
static void addTensors(WeightOp weight, bool ofBlocks, llvm::StringSet<> &tensors) {
  for (Attribute source : weight.getSourceList()) {
    std::string name = TensorPart::of(source).tensor;
    tensors.insert(ofBlocks ? withoutExpert(name) : name);
  }
}

int64_t mica::cpu::countTensors(ModuleOp module) {
  llvm::StringSet<> tensors;
  bool ofBlocks = isOfBlocks(module);
  for (auto weight : module.getOps<WeightOp>())
    addTensors(weight, ofBlocks, tensors);
  return static_cast<int64_t>(tensors.size());
}

/// The number of the checkpoint's tensors in each element type for which `isCounted` holds: several
/// parts of a tensor, such as its experts, count once.
static TensorCounts countByType(ModuleOp module, llvm::function_ref<bool(Type)> isCounted) {
  std::map<std::string, llvm::StringSet<>> tensors;
  bool ofBlocks = isOfBlocks(module);
  for (auto weight : module.getOps<WeightOp>())
    if (Type element = weight.getTensorType().getElementType(); isCounted(element))
      addTensors(weight, ofBlocks, tensors[displayNameOf(element)]);
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

/// Whether all matrices of the op are block-quantized; else they are multiplied by floats.
static bool hasOnlyBlocks(MultipliesRows product) {
  return llvm::all_of(allMatricesOf(product),
                      [](Value each) { return isQuantized(getElementTypeOrSelf(each)); });
}

std::map<std::string, std::string> mica::cpu::rowsOfRoles(ModuleOp module) {
  std::map<std::string, std::string> rows;
  for (auto function : module.getOps<func::FuncOp>())
    if (StringRef role = rowRoleOf(function); !role.empty())
      function.walk([&](MultipliesRows product) {
        if (hasOnlyBlocks(product))
          rows[role.str()] = displayNameOf(getElementTypeOrSelf(product.getMultipliedRows().get()));
      });
  return rows;
}

json mica::cpu::describeProgram(ModuleOp module, Precision weights, Precision kv, int64_t maxSeq) {
  TargetDescription target = targetOf(module);
  func::FuncOp entry = firstEntry(module);
  auto model = module->getAttrOfType<DictionaryAttr>("mica.model");
  json config = toJson(model), caches = describeCaches(entry);
  int64_t block = 64;
  for (BlockArgument argument : EntrySignature(entry).states())
    if (int64_t own = cast<SequenceState>(argument.getType()).getPositionBlock(); own > 0)
      block = own;
  json manifest = {
      {"name", module.getName().value_or("model").str()},
      {"weights", nameOf(weights).str()},
      {"kv", nameOf(kv).str()},
      {"vocab", EntrySignature(entry).vocabulary()},
      {"max_seq", maxSeq},
      {"target", {{"cpu", target.cpu}, {"features", target.features}}},
      {"position_block", block},
      {"rewind_positions", kRewindPositions},
      {"bos", config.contains("bos") ? config["bos"] : json()},
      {"eos", config.value("eos", json::array())},
      {"generation", config.value("generation", json::object())},
      {"ops", describeOps(module)},
      {"config", config},
  };
  if (TensorCounts formats = blockFormatsOf(module); !formats.empty())
    manifest["block_formats"] = formats;
  if (TensorCounts types = floatTypesOf(module); !types.empty())
    manifest["float_types"] = types;
  if (std::map<std::string, std::string> rows = rowsOfRoles(module); !rows.empty())
    manifest["rows"] = rows;
  if (EntrySignature(entry).argument(EntryRole::Lengths)) {
    SmallVector<int64_t> thresholds = ropeLengthThresholds(module);
    manifest["rope_length_thresholds"] = std::vector<int64_t>(thresholds.begin(), thresholds.end());
  }
  if (auto rows = module->getAttrOfType<IntegerAttr>(kGemmThresholdAttr))
    manifest["batch_invariant_rows"] = rows.getInt();
  if (!rowRoleOf(entry).empty())
    manifest["depends_on_role"] = true;
  manifest["cost"] = describeCost(module, caches);
  manifest["caches"] = std::move(caches);
  return manifest;
}

llvm::Expected<int64_t> mica::cpu::cacheBytesOf(const json &manifest) {
  rt::Result<rt::Manifest> caches = rt::parseCaches(manifest);
  if (!caches)
    return llvm::createStringError(caches.error().message);
  return static_cast<int64_t>(rt::cacheBytesPerSequence(*caches, rt::kMaxPromptRows));
}

/// The places in the model of what launches `kernel`, without the numbers of layers.
static void addPlaces(json &kernels, const std::string &kernel, Location location) {
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
    addPlaces(kernels, launch.getKernel().str(), launch.getLoc());
  });
  module.walk([&](exec::MatmulOp product) {
    addPlaces(kernels,
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
  manifest["entry"] = {{"abi", kEntryAbi}, {"arguments", arguments}};
  auto number = [&](StringRef name) { return module->getAttrOfType<IntegerAttr>(name).getInt(); };
  manifest["scratch"] = {{"bytes_per_row", number("mica.scratch_per_row")},
                         {"bytes_fixed", number("mica.scratch_fixed")}};
  manifest["kernels"] = describeKernels(module);
}
