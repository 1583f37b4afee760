//===- AssignPrecision.cpp - the precision of weights and caches ----------------===//

#include "passes/Passes.h"
#include "passes/Support/Weights.h"

#include "llvm/ADT/MapVector.h"

namespace mica {
#define GEN_PASS_DEF_ASSIGNPRECISION
#include "passes/Passes.h.inc"
} // namespace mica

using namespace mlir;
using namespace mica;

static Type elementOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getElementType();
}

namespace {
/// The element types that weight values need, spread from their uses through calls to the symbols.
class WeightTypes {
public:
  explicit WeightTypes(ModuleOp module) : symbols(module) {
    module.walk(
        [&](GetWeightOp get) { gets[get.getWeightAttr().getAttr()].push_back(get.getResult()); });
    module.walk([&](func::CallOp call) { calls[call.getCalleeAttr().getAttr()].push_back(call); });
  }

  /// `value` needs elements of `type` for `user`; fails when another use needs another type.
  LogicalResult require(Value value, Type type, Operation *user) {
    SmallVector<Value> open{value};
    while (!open.empty()) {
      Value next = open.pop_back_val();
      auto [known, isNew] = types.insert({next, type});
      if (!isNew && known->second != type)
        return user->emitOpError()
               << "needs a weight in " << type << ", but another use of it needs " << known->second;
      if (isNew)
        appendNeighbours(next, open);
    }
    return success();
  }

  /// Writes the types to values and symbols.
  void apply() {
    for (auto [value, type] : types) {
      value.setType(cast<RankedTensorType>(value.getType()).clone(type));
      if (auto get = value.getDefiningOp<GetWeightOp>())
        if (auto weight = symbols.lookup<WeightOp>(get.getWeightAttr().getAttr()))
          weight.setType(cast<RankedTensorType>(value.getType()));
    }
  }

private:
  /// Values that have the type of `value` because they are the same weight.
  void appendNeighbours(Value value, SmallVectorImpl<Value> &open) {
    if (auto get = value.getDefiningOp<GetWeightOp>())
      llvm::append_range(open, gets[get.getWeightAttr().getAttr()]);
    if (auto argument = dyn_cast<BlockArgument>(value))
      if (auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()))
        for (func::CallOp call : calls[function.getSymNameAttr()])
          open.push_back(call.getOperand(argument.getArgNumber()));
    for (OpOperand &use : value.getUses())
      if (auto call = dyn_cast<func::CallOp>(use.getOwner()))
        if (auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
            callee && !callee.isExternal())
          open.push_back(callee.getArgument(use.getOperandNumber()));
  }

  SymbolTable symbols;
  llvm::DenseMap<StringAttr, SmallVector<Value>> gets;
  llvm::DenseMap<StringAttr, SmallVector<func::CallOp>> calls;
  llvm::MapVector<Value, Type> types;
};

/// One cast per value, right behind it.
class SharedCasts {
public:
  explicit SharedCasts(Type type) : type(type) {}

  void narrow(OpOperand &operand) {
    Value value = operand.get();
    if (elementOf(value) == type)
      return;
    Value &cast = casts[value];
    if (!cast) {
      OpBuilder builder(value.getContext());
      builder.setInsertionPointAfterValue(value);
      cast = CastOp::create(builder, value.getLoc(),
                            llvm::cast<RankedTensorType>(value.getType()).clone(type), value);
    }
    operand.set(cast);
  }

private:
  Type type;
  llvm::DenseMap<Value, Value> casts;
};

struct AssignPrecision : mica::impl::AssignPrecisionBase<AssignPrecision> {
  using AssignPrecisionBase::AssignPrecisionBase;

  Type typeOf(Precision precision) {
    Builder builder(&getContext());
    return precision == Precision::F32 ? Type(builder.getF32Type()) : Type(builder.getBF16Type());
  }

  LogicalResult assignWeights() {
    Type matrix = typeOf(weights), vector = typeOf(Precision::F32);
    WeightTypes types(getOperation());
    WalkResult result = getOperation().walk([&](Operation *op) -> WalkResult {
      for (OpOperand &operand : op->getOpOperands()) {
        WeightUse use = classifyWeightUse(operand);
        if (use != WeightUse::None &&
            failed(types.require(operand.get(), use == WeightUse::Vector ? vector : matrix, op)))
          return WalkResult::interrupt();
      }
      return WalkResult::advance();
    });
    types.apply();
    return failure(result.wasInterrupted());
  }

  /// Rows are rounded where they enter a product with a narrow matrix, queries where they meet
  /// narrow keys.
  void insertCasts() {
    SharedCasts casts(Builder(&getContext()).getBF16Type());
    getOperation().walk([&](Operation *op) {
      TypeSwitch<Operation *>(op)
          .Case<LinearOp, LmHeadOp, GatedLinearOp>([&](auto product) {
            if (elementOf(product.getWeight()).isBF16())
              casts.narrow(product.getXMutable());
          })
          .Case([&](MoeExpertsOp experts) {
            if (elementOf(experts.getGate()).isBF16())
              casts.narrow(experts.getXMutable());
          })
          .Case([&](AttentionOp attention) {
            if (elementOf(attention.getK()).isBF16())
              casts.narrow(attention.getQMutable());
          });
    });
  }

  void runOnOperation() override {
    if (failed(assignWeights()))
      return signalPassFailure();
    Type cache = typeOf(kv);
    convertCaches(getOperation(), [&](KvCacheType type) {
      return KvCacheType::get(type.getContext(), type.getLayers(), type.getHeads(),
                              type.getHeadDim(), cache, type.getLayout());
    });
    insertCasts();
  }
};
} // namespace
