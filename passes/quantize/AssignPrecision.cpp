//===- AssignPrecision.cpp - the precision of weights and caches ----------===//

#include "passes/Passes.h"
#include "passes/support/Weights.h"

namespace mica {
#define GEN_PASS_DEF_ASSIGNPRECISION
#include "passes/Passes.h.inc"
} // namespace mica

using namespace mlir;
using namespace mica;

static Type elementOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getElementType();
}

/// The element type of a weight. Norms, biases and routers stay in f32: they are small, and their
/// errors affect all channels.
static Type chooseType(WeightUse use, Operation *user, Precision matrices) {
  MLIRContext *context = user->getContext();
  if (use == WeightUse::Vector || use == WeightUse::Router)
    return Float32Type::get(context);
  return use == WeightUse::Table || user->hasTrait<ComputesLogits>()
             ? vocabularyTypeOf(context, matrices)
             : weightTypeOf(context, matrices);
}

/// The type to which rows are rounded for matmuls with `element`, or null if they are not rounded.
static Type rowsFor(Type element) {
  if (element.isBF16())
    return element;
  auto quantized = dyn_cast<QuantizedElementType>(element);
  return quantized ? quantized.getMultipliedRowType() : Type();
}

/// The matrix that determines the type of the rows: one of floats if the op has any, in which case
/// the blocks of its other matrices are expanded to floats.
static Value matrixOfRows(MultipliesRows product) {
  SmallVector<Value> matrices = allMatricesOf(product);
  auto isOfFloats = [](Value matrix) { return !isQuantized(elementOf(matrix)); };
  const auto *ofFloats = llvm::find_if(matrices, isOfFloats);
  return ofFloats == matrices.end() ? matrices.front() : *ofFloats;
}

namespace {
/// Casts of values, one per value and type, inserted right after the value.
class SharedCasts {
public:
  /// Rounds the rows `operand` to the activation type of `weights`, if there is one.
  void narrow(OpOperand &operand, Value weights) {
    Value value = operand.get();
    Type type = rowsFor(elementOf(weights));
    if (!type || elementOf(value) == type)
      return;
    Value &cast = casts[{value, type}];
    if (!cast) {
      OpBuilder builder(value.getContext());
      builder.setInsertionPointAfterValue(value);
      cast = CastOp::create(builder, value.getLoc(),
                            llvm::cast<RankedTensorType>(value.getType()).clone(type), value);
    }
    operand.set(cast);
  }

private:
  llvm::DenseMap<std::pair<Value, Type>, Value> casts;
};

struct AssignPrecision : mica::impl::AssignPrecisionBase<AssignPrecision> {
  using AssignPrecisionBase::AssignPrecisionBase;

  LogicalResult assignWeights() {
    WeightProperty types(getOperation(), "elements of");
    WalkResult result = getOperation().walk([&](Operation *op) -> WalkResult {
      for (OpOperand &operand : op->getOpOperands()) {
        WeightUse use = classifyWeightUse(operand);
        if (use != WeightUse::None && cast<RankedTensorType>(operand.get().getType()).getEncoding())
          return op->emitOpError("has a weight with a layout: assign precisions before layouts");
        if (use == WeightUse::None || isQuantized(elementOf(operand.get())))
          continue;
        Type type = chooseType(use, op, weights);
        if (failed(types.require(operand.get(), TypeAttr::get(type), op)))
          return WalkResult::interrupt();
      }
      return WalkResult::advance();
    });
    types.apply([](RankedTensorType type, Attribute element) {
      return cast<RankedTensorType>(type.clone(cast<TypeAttr>(element).getValue()));
    });
    return failure(result.wasInterrupted());
  }

  /// Inserts the casts. Rows are rounded at the input of a matmul with a narrow matrix, queries if
  /// keys are bf16; for integer keys, queries are not rounded.
  void insertCasts() {
    SharedCasts casts;
    getOperation().walk([&](Operation *op) {
      TypeSwitch<Operation *>(op)
          .Case([&](MultipliesRows product) {
            casts.narrow(product.getMultipliedRows(), matrixOfRows(product));
          })
          .Case([&](AttentionOp attention) {
            if (!isQuantized(elementOf(attention.getK())))
              casts.narrow(attention.getQMutable(), attention.getK());
          });
    });
  }

  void runOnOperation() override {
    if (failed(assignWeights()))
      return signalPassFailure();
    if (!isCachePrecision(kv)) {
      getOperation().emitError("caches of 4-bit integers are not supported: use f32, bf16 or int8");
      return signalPassFailure();
    }
    Type cache = cacheTypeOf(&getContext(), kv);
    convertStates(getOperation(),
                  [&](SequenceState state, Value) { return state.withElementType(cache); });
    insertCasts();
  }
};
} // namespace
