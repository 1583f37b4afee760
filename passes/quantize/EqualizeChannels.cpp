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
/// Weights of a function whose rows are multiplied only by the columns of others.
struct Meeting {
  SmallVector<Value> rows, columns;
  bool byEntry = false; ///< stacks of matrices, which are equalized separately for each expert
  RmsNormOp norm = {};  ///< that adds an offset to its gains, `rows`
};

/// What their weights are made of.
struct Sources {
  SmallVector<Attribute> rows, columns;
};
} // namespace

/// The matrices that multiply `rows`, where that is all that uses them; else nothing.
static std::optional<SmallVector<Value>> findReaders(Value rows) {
  SmallVector<Value> matrices;
  for (OpOperand &use : rows.getUses()) {
    if (use.getOperandNumber() != 0)
      return std::nullopt;
    auto product = dyn_cast<MultipliesRows>(use.getOwner());
    // Matrices of heads have columns for each head.
    if (product && cast<ShapedType>(rows.getType()).getRank() == 2)
      llvm::append_range(matrices, product.getMatrices());
    else if (auto gate = dyn_cast<MoeGateOp>(use.getOwner()))
      matrices.push_back(gate.getGate());
    else
      return std::nullopt;
  }
  return matrices;
}

/// Gains and bias of a norm, where nothing but products reads it.
static std::optional<Meeting> findMeeting(Value normed, ValueRange gains) {
  std::optional<SmallVector<Value>> readers = findReaders(normed);
  if (!readers || readers->empty())
    return std::nullopt;
  return Meeting{llvm::to_vector(gains), *readers};
}

// linear(mul(a, linear(x, up)), down): rows of up and columns of down.
static std::optional<Meeting> findMeeting(MulOp product) {
  std::optional<SmallVector<Value>> readers = findReaders(product);
  if (!readers || readers->empty())
    return std::nullopt;
  for (Value factor : {product.getRhs(), product.getLhs()})
    if (auto up = factor.getDefiningOp<LinearOp>(); up && up->hasOneUse() && !up.getResidual()) {
      Meeting meeting{{up.getWeight()}, *readers};
      if (up.getBias())
        meeting.rows.push_back(up.getBias());
      return meeting;
    }
  return std::nullopt;
}

/// All meetings of a function.
static SmallVector<Meeting> findMeetings(func::FuncOp function) {
  SmallVector<Meeting> meetings;
  function.walk([&](Operation *op) {
    std::optional<Meeting> meeting =
        TypeSwitch<Operation *, std::optional<Meeting>>(op)
            .Case([](RmsNormOp norm) {
              std::optional<Meeting> meeting = findMeeting(norm, norm.getWeight());
              if (meeting && !norm.getWeightOffset().isZero())
                meeting->norm = norm;
              return meeting;
            })
            .Case([](LayerNormOp norm) {
              return findMeeting(norm, norm->getOperands().drop_front());
            })
            .Case([](MulOp product) { return findMeeting(product); })
            .Case([](MoeExpertsOp experts) {
              // What is limited does not scale, and a bias of up would have to scale with it.
              return experts.getUp() && !experts.getLimit() && !experts.getUpBias()
                         ? std::optional(Meeting{{experts.getUp()}, {experts.getDown()}, true})
                         : std::nullopt;
            })
            .Default(std::nullopt);
    if (meeting)
      meetings.push_back(*meeting);
  });
  return meetings;
}

namespace {
/// Writes the ops of a module.
class Equalizer {
public:
  explicit Equalizer(ModuleOp module) : symbols(module) {
    module.walk([&](GetWeightOp get) { ++gets[get.getWeight()]; });
    for (WeightOp weight : module.getOps<WeightOp>())
      for (Attribute source : weight.getSourceList())
        ++uses[source];
  }

  /// For all calls of the meeting's function; a null one is of a function without arguments.
  void write(const Meeting &meeting, ArrayRef<func::CallOp> calls) {
    SmallVector<std::optional<Sources>> sources =
        llvm::map_to_vector(calls, [&](func::CallOp call) { return findSources(meeting, call); });
    double offset = 0;
    if (RmsNormOp norm = meeting.norm) {
      // (offset + w) / b is no offset plus a scaled w: all calls' gains have it added, or none.
      if (sources.empty() || llvm::is_contained(sources, std::nullopt))
        return;
      offset = norm.getWeightOffset().convertToDouble();
      norm.setWeightOffset(APFloat(0.0));
    }
    for (auto [call, found] : llvm::zip_equal(calls, sources))
      if (found)
        write(meeting, *found, offset, lookup(meeting.rows.front(), call));
  }

private:
  std::optional<Sources> findSources(const Meeting &meeting, func::CallOp call) {
    Sources sources;
    bool known = appendSources(meeting.rows, call, sources.rows) &&
                 appendSources(meeting.columns, call, sources.columns);
    return known ? std::optional(sources) : std::nullopt;
  }

  /// After `weight`.
  static void write(const Meeting &meeting, const Sources &sources, double offset,
                    WeightOp weight) {
    OpBuilder builder(weight->getContext());
    builder.setInsertionPointAfter(weight);
    auto add = [&](ArrayRef<Attribute> rows, ArrayRef<Attribute> columns) {
      EqualizeOp::create(builder, weight.getLoc(), builder.getArrayAttr(rows),
                         builder.getArrayAttr(columns), builder.getF64FloatAttr(offset));
    };
    if (!meeting.byEntry)
      return add(sources.rows, sources.columns);
    for (auto [row, column] : llvm::zip(sources.rows, sources.columns))
      add(row, column);
  }

  /// The weight that `value` is in a call; null where it is none, or has a use beside this one.
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

  /// Vectors, matrices and stacks of matrices whose sources are in no other weight.
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
      for (const Meeting &meeting : findMeetings(function))
        equalizer.write(meeting, *calls);
    }
  }
};
} // namespace
