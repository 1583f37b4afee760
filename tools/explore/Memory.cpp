//===- Memory.cpp - weights and buffers -----------------------------------===//

#include "tools/explore/Memory.h"

#include "backends/cpu/driver/DescribeProgram.h"
#include "backends/cpu/lowering/Passes.h"
#include "ir/Exec/Exec.h"
#include "ir/Mica/EntrySignature.h"
#include "ir/Mica/Mica.h"
#include "tools/explore/Provenance.h"
#include "tools/explore/Types.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;

namespace mica::explore {

static uint32_t numberOf(Operation *op) {
  Origins numbers = originsOf(op->getLoc());
  return numbers.empty() ? 0 : numbers.front();
}

std::vector<WeightRecord> recordWeights(ModuleOp module) {
  std::vector<WeightRecord> weights;
  llvm::StringMap<double> shares = cpu::sharesReadPerToken(module);
  for (auto weight : module.getOps<WeightOp>()) {
    TypeRecord type = recordType(weight.getTensorType());
    auto number = [&](StringRef name) {
      auto attribute = weight->getAttrOfType<IntegerAttr>(name);
      return attribute ? attribute.getInt() : 0;
    };
    weights.push_back({weight.getSymName().str(), std::move(type.text), std::move(type.format),
                       numberOf(weight), number("offset"), number("bytes"),
                       static_cast<double>(getStoredBytes(weight.getTensorType())) *
                           shares.lookup(weight.getSymName())});
  }
  llvm::sort(weights, [](const auto &a, const auto &b) { return a.offset < b.offset; });
  return weights;
}

/// Whether `dim` is the number of rows with logits, not of all rows.
static bool isNumberOfOutputs(memref::DimOp dim) {
  return EntrySignature::roleOf(dim.getSource()) == EntryRole::LogitIndices;
}

/// An index as multiples of the number of rows and of those with logits, plus a constant.
struct Linear {
  int64_t rows = 0, outputs = 0, rest = 0;

  bool isConstant() const { return rows == 0 && outputs == 0; }
  Linear times(int64_t factor) const { return {rows * factor, outputs * factor, rest * factor}; }
};

/// Nothing if the index has another form.
static std::optional<Linear> linearOf(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return std::nullopt;
  if (auto constant = dyn_cast<arith::ConstantIndexOp>(op))
    return Linear{.rest = constant.value()};
  if (auto dim = dyn_cast<memref::DimOp>(op))
    return isNumberOfOutputs(dim) ? Linear{.outputs = 1} : Linear{.rows = 1};
  if (!isa<arith::AddIOp, arith::MulIOp>(op))
    return std::nullopt;
  std::optional<Linear> a = linearOf(op->getOperand(0)), b = linearOf(op->getOperand(1));
  if (!a || !b)
    return std::nullopt;
  if (isa<arith::AddIOp>(op))
    return Linear{a->rows + b->rows, a->outputs + b->outputs, a->rest + b->rest};
  if (b->isConstant())
    return a->times(b->rest);
  return a->isConstant() ? b->times(a->rest) : std::optional<Linear>();
}

/// An op that uses a buffer, by itself or through views.
struct Use {
  uint32_t op;
  bool reads;
};

static void collectUses(Value view, std::vector<Use> &uses) {
  for (OpOperand &use : view.getUses()) {
    Operation *user = use.getOwner();
    if (isa<ViewLikeOpInterface>(user)) {
      for (Value result : user->getResults())
        collectUses(result, uses);
      continue;
    }
    auto destination = dyn_cast<DestinationStyleOpInterface>(user);
    auto product = dyn_cast<exec::MatmulOp>(user);
    bool adds = product && product.getAccumulate();
    uses.push_back({numberOf(user), !destination || adds || !destination.isDpsInit(&use)});
  }
}

/// The live ranges of the buffers that share a view: CSE merges views of buffers with the same type
/// and offset. A live range begins with a write after the previous buffer was last read.
static std::vector<std::pair<uint32_t, uint32_t>> livesOf(Value view) {
  std::vector<Use> uses;
  collectUses(view, uses);
  llvm::sort(uses, [](const Use &a, const Use &b) { return a.op < b.op; });
  std::vector<std::pair<uint32_t, uint32_t>> lives;
  bool wasRead = true;
  for (size_t i = 0; i < uses.size();) {
    uint32_t op = uses[i].op;
    bool reads = false;
    for (; i < uses.size() && uses[i].op == op; ++i)
      reads |= uses[i].reads;
    if (lives.empty() || (wasRead && !reads))
      lives.emplace_back(op, op);
    lives.back().second = op;
    wasRead = reads;
  }
  return lives;
}

/// The scratch memory of a function; null if it has none.
static Value scratchOf(func::FuncOp function) {
  if (cpu::isEntry(function))
    return EntrySignature(function).argument(EntryRole::Scratch);
  auto arguments = function.getArguments();
  auto type = arguments.empty() ? MemRefType() : dyn_cast<MemRefType>(arguments.back().getType());
  return type && type.getElementType().isInteger(8) ? Value(arguments.back()) : Value();
}

namespace {

/// The contents of the memory that a value is a view of: entry functions take weights and caches,
/// and pass views of them to the layers.
class Contents {
public:
  explicit Contents(ModuleOp module) : symbols(module) {
    for (auto function : module.getOps<func::FuncOp>())
      if (cpu::isEntry(function))
        followCalls(function);
  }

  std::optional<EntryRole> roleOf(Value value) const {
    while (Operation *op = value.getDefiningOp()) {
      auto view = dyn_cast<ViewLikeOpInterface>(op);
      if (!view)
        return std::nullopt;
      value = view.getViewSource();
    }
    auto argument = cast<BlockArgument>(value);
    Operation *parent = argument.getOwner()->getParentOp();
    if (auto loop = dyn_cast<LoopLikeOpInterface>(parent)) {
      OpOperand *init = loop.getTiedLoopInit(argument);
      return init ? roleOf(init->get()) : std::nullopt;
    }
    if (auto function = dyn_cast<func::FuncOp>(parent); function && cpu::isEntry(function))
      return EntrySignature::roleOf(argument);
    auto known = roles.find(argument);
    return known == roles.end() ? std::nullopt : std::optional<EntryRole>(known->second);
  }

private:
  void followCalls(func::FuncOp function) {
    function.walk([&](func::CallOp call) {
      auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
      if (!callee || callee.isExternal())
        return;
      for (auto [operand, argument] : llvm::zip(call.getOperands(), callee.getArguments()))
        if (std::optional<EntryRole> role = roleOf(operand))
          roles.try_emplace(argument, *role);
      followCalls(callee);
    });
  }

  SymbolTable symbols;
  llvm::DenseMap<Value, EntryRole> roles;
};

} // namespace

/// Adds a lane for `memory`, unless it is not used.
static void addLane(std::vector<LaneRecord> &lanes, Value memory, EntryRole role) {
  LaneRecord lane{locationsOf(memory.getLoc()), role == EntryRole::Cache, 0, {}};
  auto type = cast<MemRefType>(memory.getType());
  if (type.hasStaticShape())
    lane.bytes = type.getNumElements() * ((type.getElementTypeBitWidth() + 7) / 8);
  std::vector<Use> uses;
  collectUses(memory, uses);
  llvm::sort(uses, [](const Use &a, const Use &b) { return a.op < b.op; });
  for (const Use &use : uses) {
    if (lane.uses.empty() || lane.uses.back().op != use.op)
      lane.uses.push_back({use.op, false, false});
    lane.uses.back().reads |= use.reads;
    lane.uses.back().writes |= !use.reads;
  }
  if (!lane.uses.empty())
    lanes.push_back(std::move(lane));
}

/// Weights are views in entry functions and arguments of layers; caches are arguments.
static std::vector<LaneRecord> lanesOf(func::FuncOp function, const Contents &contents) {
  std::vector<LaneRecord> lanes;
  bool isEntry = cpu::isEntry(function);
  for (BlockArgument argument : function.getArguments()) {
    std::optional<EntryRole> role =
        isa<MemRefType>(argument.getType()) ? contents.roleOf(argument) : std::nullopt;
    if (role == EntryRole::Cache || (role == EntryRole::Weights && !isEntry))
      addLane(lanes, argument, *role);
  }
  if (isEntry)
    function.walk([&](memref::ViewOp view) {
      if (contents.roleOf(view.getSource()) == EntryRole::Weights)
        addLane(lanes, view, EntryRole::Weights);
    });
  return lanes;
}

std::vector<FunctionMemory> recordMemory(ModuleOp module) {
  std::vector<FunctionMemory> all;
  Contents contents(module);
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.isExternal())
      continue;
    Value scratch = scratchOf(function);
    FunctionMemory memory{function.getName().str(), {}, lanesOf(function, contents)};
    function.walk([&](memref::ViewOp view) {
      MemRefType type = view.getType();
      std::optional<Linear> offset = linearOf(view.getByteShift());
      // Views of bytes are the remaining memory, which is passed to called functions.
      if (view.getSource() != scratch || !offset || type.getElementType().isInteger(8))
        return;
      int64_t size = (type.getElementTypeBitWidth() + 7) / 8;
      for (int64_t extent : type.getShape())
        size *= ShapedType::isDynamic(extent) ? 1 : extent;
      auto rows = type.hasStaticShape() ? memref::DimOp()
                                        : view.getSizes().front().getDefiningOp<memref::DimOp>();
      BufferExtent extent = type.hasStaticShape()             ? BufferExtent::Fixed
                            : rows && isNumberOfOutputs(rows) ? BufferExtent::PerOutput
                                                              : BufferExtent::PerRow;
      int64_t place = extent == BufferExtent::Fixed    ? offset->rest
                      : extent == BufferExtent::PerRow ? offset->rows
                                                       : offset->outputs;
      for (auto [first, last] : livesOf(view))
        memory.buffers.push_back({numberOf(view), place, size, extent, first, last});
    });
    if (!memory.buffers.empty() || !memory.lanes.empty())
      all.push_back(std::move(memory));
  }
  return all;
}

} // namespace mica::explore
