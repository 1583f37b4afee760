//===- AssignPrecision.cpp - the precision of weights and caches ----------------===//

#include "passes/Passes.h"
#include "passes/Support/Weights.h"

namespace mica {
#define GEN_PASS_DEF_ASSIGNPRECISION
#include "passes/Passes.h.inc"
} // namespace mica

using namespace mlir;
using namespace mica;

static Type elementOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getElementType();
}

/// Norms, biases and routers are small, and their errors spread: they stay in f32.
static bool staysWide(WeightUse use) { return use == WeightUse::Vector || use == WeightUse::Router; }

namespace {
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
    auto matrix = TypeAttr::get(typeOf(weights)), vector = TypeAttr::get(typeOf(Precision::F32));
    WeightProperty types(getOperation(), "elements of");
    WalkResult result = getOperation().walk([&](Operation *op) -> WalkResult {
      for (OpOperand &operand : op->getOpOperands()) {
        WeightUse use = classifyWeightUse(operand);
        if (use != WeightUse::None &&
            failed(types.require(operand.get(), staysWide(use) ? vector : matrix, op)))
          return WalkResult::interrupt();
      }
      return WalkResult::advance();
    });
    types.apply([](RankedTensorType type, Attribute element) {
      return cast<RankedTensorType>(type.clone(cast<TypeAttr>(element).getValue()));
    });
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
    convertCaches(getOperation(), [&](Value value) {
      auto type = cast<KvCacheType>(value.getType());
      return KvCacheType::get(type.getContext(), type.getLayers(), type.getHeads(),
                              type.getHeadDim(), cache, type.getLayout());
    });
    insertCasts();
  }
};
} // namespace
