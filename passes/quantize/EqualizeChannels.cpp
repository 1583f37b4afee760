//===- EqualizeChannels.cpp - cross-layer equalization --------------------===//

#include "passes/Passes.h"
#include "passes/support/Calls.h"

#include "llvm/ADT/StringMap.h"

namespace mica {
#define GEN_PASS_DEF_EQUALIZECHANNELS
#include "passes/Passes.h.inc"
} // namespace mica

using namespace mlir;
using namespace mica;

namespace {
/// Weights of a function whose rows produce channels that only the columns of other weights
/// multiply.
struct EqualizedWeights {
  SmallVector<Value> rows, columns;
  bool byEntry = false; ///< stacks of matrices, which are equalized separately for each expert
  RmsNormOp norm = {};  ///< norm with a weight_offset whose weights are `rows`
};

/// The sources of these weights in one call.
struct Sources {
  SmallVector<Attribute> rows, columns;
};
} // namespace

/// The matrices that multiply `rows` if nothing else uses it; else nullopt.
static std::optional<SmallVector<Value>> findReaders(Value rows) {
  SmallVector<Value> matrices;
  for (OpOperand &use : rows.getUses()) {
    if (use.getOperandNumber() != 0)
      return std::nullopt;
    auto product = dyn_cast<MultipliesRows>(use.getOwner());
    // Per-head matrices have separate columns for each head.
    if (product && cast<ShapedType>(rows.getType()).getRank() == 2)
      llvm::append_range(matrices, product.getMatrices());
    else if (auto router = dyn_cast<RoutesRows>(use.getOwner()))
      matrices.push_back(router.getGate());
    else
      return std::nullopt;
  }
  return matrices;
}

/// The weights and bias of a norm whose result only matmuls and expert routers read.
static std::optional<EqualizedWeights> findEqualized(Value normed, ValueRange normWeights) {
  std::optional<SmallVector<Value>> readers = findReaders(normed);
  if (!readers || readers->empty())
    return std::nullopt;
  return EqualizedWeights{llvm::to_vector(normWeights), *readers};
}

// linear(mul(a, linear(x, up)), down): rows of up and columns of down.
static std::optional<EqualizedWeights> findEqualized(MulOp product) {
  std::optional<SmallVector<Value>> readers = findReaders(product);
  if (!readers || readers->empty())
    return std::nullopt;
  for (Value factor : {product.getRhs(), product.getLhs()})
    if (auto up = factor.getDefiningOp<LinearOp>(); up && up->hasOneUse() && !up.getResidual()) {
      EqualizedWeights equalized{{up.getWeight()}, *readers};
      if (up.getBias())
        equalized.rows.push_back(up.getBias());
      return equalized;
    }
  return std::nullopt;
}

/// Everything in a function that can be equalized.
static SmallVector<EqualizedWeights> findAllEqualized(func::FuncOp function) {
  SmallVector<EqualizedWeights> all;
  function.walk([&](Operation *op) {
    std::optional<EqualizedWeights> equalized =
        TypeSwitch<Operation *, std::optional<EqualizedWeights>>(op)
            .Case([](RmsNormOp norm) {
              std::optional<EqualizedWeights> equalized = findEqualized(norm, norm.getWeight());
              if (equalized && !norm.getWeightOffset().isZero())
                equalized->norm = norm;
              return equalized;
            })
            .Case([](LayerNormOp norm) {
              return findEqualized(norm, norm->getOperands().drop_front());
            })
            .Case([](MulOp product) { return findEqualized(product); })
            .Case([](MoeExpertsOp experts) {
              // A clamped result does not scale, and a bias of up would have to be scaled as well.
              return experts.getUp() && !experts.getLimit() && !experts.getUpBias()
                         ? std::optional(
                               EqualizedWeights{{experts.getUp()}, {experts.getDown()}, true})
                         : std::nullopt;
            })
            .Default(std::nullopt);
    if (equalized)
      all.push_back(*equalized);
  });
  return all;
}

namespace {
/// Creates the `mica.equalize` ops of a module.
class Equalizer {
public:
  explicit Equalizer(ModuleOp module) : symbols(module) {
    module.walk([&](GetWeightOp get) { ++gets[get.getWeight()]; });
    for (WeightOp weight : module.getOps<WeightOp>())
      for (Attribute source : weight.getSourceList())
        ++uses[source];
  }

  /// Creates the ops for all calls of the function that `equalized` is in. A null call means a
  /// function that is not called, whose weights are read in its body.
  void write(const EqualizedWeights &equalized, ArrayRef<func::CallOp> calls) {
    SmallVector<std::optional<Sources>> sources =
        llvm::map_to_vector(calls, [&](func::CallOp call) { return findSources(equalized, call); });
    double offset = 0;
    if (RmsNormOp norm = equalized.norm) {
      // (offset + w) / b is not of the form offset + w', so the offset is added to the weights of
      // all calls or of none.
      if (sources.empty() || llvm::is_contained(sources, std::nullopt))
        return;
      offset = norm.getWeightOffset().convertToDouble();
      norm.setWeightOffset(APFloat(0.0));
    }
    for (auto [call, found] : llvm::zip_equal(calls, sources))
      if (found)
        write(equalized, *found, offset, lookup(equalized.rows.front(), call));
  }

private:
  std::optional<Sources> findSources(const EqualizedWeights &equalized, func::CallOp call) {
    Sources sources;
    bool known = appendSources(equalized.rows, call, sources.rows) &&
                 appendSources(equalized.columns, call, sources.columns);
    return known ? std::optional(sources) : std::nullopt;
  }

  /// Inserts the op after `weight`.
  static void write(const EqualizedWeights &equalized, const Sources &sources, double offset,
                    WeightOp weight) {
    OpBuilder builder(weight->getContext());
    builder.setInsertionPointAfter(weight);
    auto add = [&](ArrayRef<Attribute> rows, ArrayRef<Attribute> columns) {
      EqualizeOp::create(builder, weight.getLoc(), builder.getArrayAttr(rows),
                         builder.getArrayAttr(columns), builder.getF64FloatAttr(offset));
    };
    if (!equalized.byEntry)
      return add(sources.rows, sources.columns);
    for (auto [row, column] : llvm::zip(sources.rows, sources.columns))
      add(row, column);
  }

  /// The weight that `value` is in a call; null if it is not an unquantized weight with this as its
  /// only use.
  WeightOp lookup(Value value, func::CallOp call) {
    if (!value.hasOneUse())
      return {};
    if (auto argument = dyn_cast<BlockArgument>(value); argument && call)
      value = call.getOperand(argument.getArgNumber());
    auto get = value.getDefiningOp<GetWeightOp>();
    if (isQuantized(getElementTypeOrSelf(value)))
      return {};
    return get && get->hasOneUse() && gets[get.getWeight()] == 1
               ? symbols.lookup<WeightOp>(get.getWeight())
               : WeightOp();
  }

  /// Appends the sources of `values`; returns false if one is not a vector, a matrix or a stack of
  /// matrices, or if another weight has the same source.
  bool appendSources(ValueRange values, func::CallOp call, SmallVectorImpl<Attribute> &sources) {
    for (Value value : values) {
      WeightOp weight = lookup(value, call);
      if (!weight)
        return false;
      int64_t rank = weight.getTensorType().getRank();
      bool plain = !weight.getCompose() && rank <= 2,
           stacked = weight.getCompose() == Compose::Stack && weight.getParts() == 1 && rank == 3;
      if (!plain && !stacked)
        return false;
      for (Attribute source : weight.getSourceList()) {
        if (uses[source] != 1)
          return false;
        sources.push_back(source);
      }
    }
    return true;
  }

  SymbolTable symbols;
  llvm::StringMap<unsigned> gets;
  DenseMap<Attribute, unsigned> uses;
};

struct EqualizeChannels : mica::impl::EqualizeChannelsBase<EqualizeChannels> {
  void runOnOperation() override {
    Equalizer equalizer(getOperation());
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      std::optional<SmallVector<func::CallOp>> calls = findCalls(function);
      if (!calls)
        calls.emplace(1);
      for (const EqualizedWeights &equalized : findAllEqualized(function))
        equalizer.write(equalized, *calls);
    }
  }
};
} // namespace
