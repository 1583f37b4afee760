//===- PreserveBlocks.cpp - weights keep their stored block formats -------===//

#include "ir/Mica/TensorPart.h"
#include "mlir/IR/SymbolTable.h"
#include "passes/Passes.h"
#include "passes/support/Weights.h"

namespace mica {
#define GEN_PASS_DEF_PRESERVEBLOCKS
#include "passes/Passes.h.inc"
} // namespace mica

using namespace mlir;
using namespace mica;

static RankedTensorType tensorOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// Whether a source of the weight is read transposed.
static bool isReadAcrossRows(WeightOp weight) {
  return llvm::any_of(weight.getSourceList(), [](Attribute source) {
    TensorPart part = TensorPart::of(source);
    return part.transposed || part.asColumns;
  });
}

/// The storage types of the weights that a call passes, by argument.
static ArrayAttr storageOf(func::CallOp call, const SymbolTable &symbols) {
  Builder builder(call.getContext());
  SmallVector<Attribute> stored;
  for (Value operand : call.getOperands()) {
    WeightOp weight = lookupWeight(operand, symbols);
    TypeAttr type = weight ? weight.getStoredAttr() : TypeAttr();
    stored.push_back(type ? Attribute(type) : Attribute(builder.getUnitAttr()));
  }
  return builder.getArrayAttr(stored);
}

/// Layers whose weights are stored in different formats need different functions: f(a: q8_0), f(b:
/// q4_0) => f(a), f_0(b)
static void splitByStorage(ModuleOp module) {
  SymbolTable symbols(module);
  for (auto function : llvm::to_vector(module.getOps<func::FuncOp>())) {
    std::optional<SmallVector<func::CallOp>> calls = findCalls(function);
    if (!calls)
      continue;
    llvm::MapVector<ArrayAttr, SmallVector<func::CallOp>> kinds;
    for (func::CallOp call : *calls)
      kinds[storageOf(call, symbols)].push_back(call);
    Operation *last = function;
    for (auto &[storage, own] : llvm::drop_begin(kinds)) {
      func::FuncOp kind = function.clone();
      symbols.insert(kind, std::next(Block::iterator(last)));
      last = kind;
      for (func::CallOp call : own)
        call.setCallee(kind.getSymName());
    }
  }
}

namespace {
/// Properties of an equivalence class of values that are the same weight.
struct Class {
  SmallVector<WeightOp> symbols;
  QuantizedElementType blocks; ///< preserved block format, or null
  std::string rejectionReason; ///< if blocks are not preserved
  bool isMatrix = true;        ///< used only as the matrix of matmuls and tables
};

class Keeper {
public:
  /// `weights` is the precision of matrices whose blocks are not preserved, for warnings.
  Keeper(ModuleOp module, Precision weights)
      : module(module), weights(weights), types(module, "elements of") {}

  LogicalResult run() {
    module.walk([&](Operation *op) {
      for (OpOperand &operand : op->getOpOperands())
        if (classifyWeightUse(operand) != WeightUse::None)
          classOf(operand.get());
    });
    return apply();
  }

private:
  static bool isMatrix(OpOperand &operand) {
    WeightUse use = classifyWeightUse(operand);
    return use == WeightUse::Product || use == WeightUse::Table;
  }

  Class &classOf(Value value) {
    auto [place, isNew] = indices.try_emplace(value, classes.size());
    if (!isNew)
      return classes[place->second];
    llvm::SetVector<Value> same = types.sameAs(value);
    for (Value other : same)
      indices[other] = classes.size();
    representatives.push_back(value);
    classes.push_back(judge(same.getArrayRef()));
    return classes.back();
  }

  Class judge(ArrayRef<Value> values) {
    Class result;
    QuantizedElementType blocks;
    for (Value value : values)
      if (WeightOp symbol = types.symbolOf(value)) {
        result.symbols.push_back(symbol);
        if (std::optional<Type> stored = symbol.getStored())
          blocks = cast<QuantizedElementType>(*stored);
      }
    if (!blocks)
      return result;
    result.isMatrix = llvm::all_of(values, onlyMultiplies);
    int64_t k = tensorOf(values.front()).getShape().back();
    if (!llvm::all_of(result.symbols,
                      [&](WeightOp symbol) { return symbol.getStored() == blocks; }))
      result.rejectionReason =
          "weights of other layers that share its argument are stored in another format";
    else if (llvm::any_of(result.symbols, isReadAcrossRows))
      result.rejectionReason = "it is read transposed";
    else if (k % blocks.getGroupSize() != 0)
      result.rejectionReason = "its row length is not a multiple of the block size";
    else if (!result.isMatrix)
      result.rejectionReason = "it is used by an op other than a matmul or an embedding lookup";
    else
      result.blocks = blocks;
    return result;
  }

  static bool onlyMultiplies(Value value) {
    return llvm::all_of(value.getUses(), [](OpOperand &use) {
      return isa<func::CallOp>(use.getOwner()) || isMatrix(use);
    });
  }

  LogicalResult apply() {
    for (auto [value, ofValue] : llvm::zip_equal(representatives, classes)) {
      if (!ofValue.rejectionReason.empty())
        for (WeightOp symbol : ofValue.symbols)
          if (symbol.getStored())
            warn(symbol, ofValue);
      if (ofValue.blocks && failed(types.require(value, TypeAttr::get(ofValue.blocks), module)))
        return failure();
    }
    types.apply([](RankedTensorType type, Attribute element) {
      return cast<RankedTensorType>(type.clone(cast<TypeAttr>(element).getValue()));
    });
    return success();
  }

  /// Emits a warning for one symbol at the location of its first tensor.
  void warn(WeightOp symbol, const Class &ofSymbol) {
    TensorPart part = TensorPart::of(symbol.getSourceList().front());
    Builder builder(symbol.getContext());
    Location tensor = NameLoc::get(builder.getStringAttr(part.tensor), symbol.getLoc());
    emitWarning(tensor) << "blocks of "
                        << cast<QuantizedElementType>(*symbol.getStored()).getDisplayName()
                        << " become " << nameOf(ofSymbol.isMatrix ? weights : Precision::F32)
                        << ": " << ofSymbol.rejectionReason;
  }

  ModuleOp module;
  Precision weights;
  WeightProperty types;
  DenseMap<Value, size_t> indices;
  SmallVector<Value> representatives;
  std::vector<Class> classes;
};

struct PreserveBlocks : mica::impl::PreserveBlocksBase<PreserveBlocks> {
  using PreserveBlocksBase::PreserveBlocksBase;

  void runOnOperation() override {
    splitByStorage(getOperation());
    if (failed(Keeper(getOperation(), weights).run()))
      signalPassFailure();
  }
};
} // namespace
