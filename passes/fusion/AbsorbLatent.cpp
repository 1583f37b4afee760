//===- AbsorbLatent.cpp - caches hold latents, not keys and values --------===//

#include "ir/Mica/TensorPart.h"
#include "passes/Passes.h"
#include "passes/support/CacheKinds.h"
#include "passes/support/Calls.h"

#include "llvm/ADT/BitVector.h"

namespace mica {
#define GEN_PASS_DEF_ABSORBLATENT
#include "passes/Passes.h.inc"
} // namespace mica

using namespace mlir;
using namespace mica;

static int64_t dimOf(Value value, unsigned axis) {
  return cast<RankedTensorType>(value.getType()).getDimSize(axis);
}

namespace {
/// A matmul that projects a latent to heads, [H * D, R], and the source of its matrix.
struct HeadsOfLatent {
  SplitHeadsOp split;
  LinearOp product;
  // One per call.
  SmallVector<GetWeightOp> gets;
  SmallVector<WeightOp> weights;

  int64_t heads() { return split.getType().getDimSize(1); }
  int64_t headDim() { return split.getType().getDimSize(2); }
  Location getLoc() {
    return FusedLoc::get(split.getContext(), {product.getLoc(), split.getLoc()});
  }
};

/// A cache's append, and the read of it by one attention.
struct Cached {
  KvAppendOp append;
  KvReadOp read;
};

/// Attention whose keys and values are projected from a latent [T, R]. Only the second part of the
/// keys, which all heads share, is not.
struct LatentAttention {
  AttentionOp attention;
  ConcatHeadsOp queries, joined;
  Cached keys, values;
  HeadsOfLatent plainKeys, plainValues;

  Value latent() { return plainKeys.product.getX(); }
  int64_t rank() { return dimOf(latent(), 1); }
  /// Number of elements of a cached head: the latent and the part that all heads share.
  int64_t width() { return rank() + dimOf(joined.getB(), 2); }
};
} // namespace

/// Follows `x`, keys or values, back to the append to an argument of the function. Apart from the
/// return, nothing else may use that argument, the append or the read. Returns the reason if this
/// fails, else an empty string.
static StringRef findCached(Value x, Cached &cached) {
  cached.read = x.getDefiningOp<KvReadOp>();
  cached.append = cached.read ? cached.read.getCache().getDefiningOp<KvAppendOp>() : KvAppendOp();
  if (!cached.append)
    return "keys or values are not read from an append";
  if (!isa<BlockArgument>(cached.append.getCache()) || !cached.append.getCache().hasOneUse())
    return "a cache is not an argument, or has a use other than its append";
  for (Operation *user : cached.append->getUsers())
    if (user != cached.read && !isa<func::ReturnOp>(user))
      return "a cache has a use other than its attention";
  return cached.read->hasOneUse() ? "" : "the keys or values read from a cache have another use";
}

/// Follows `heads` back to the matmul that projects them from a latent. Returns the reason if this
/// fails, else an empty string.
static StringRef findProduct(Value heads, HeadsOfLatent &made) {
  made.split = heads.getDefiningOp<SplitHeadsOp>();
  made.product = made.split ? made.split.getX().getDefiningOp<LinearOp>() : LinearOp();
  if (!made.product || !made.split->hasOneUse() || !made.product->hasOneUse())
    return "keys or values are not the result of a matmul alone";
  if (made.product.getBias() || made.product.getResidual() || made.product.getKernel())
    return "a matmul of the latent has a bias, a residual or a kernel";
  return {};
}

/// The source of head `head` out of `heads`, with `rows` rows each, in a matrix that consists of
/// one tensor or of one tensor entry per head; with `transposed`, of its transpose. Null if the
/// rows of a head are not contiguous in a tensor.
static Attribute sourceOfHead(WeightOp weight, int64_t head, int64_t heads, int64_t rows,
                              bool transposed) {
  SmallVector<Attribute> sources = weight.getSourceList();
  bool isByHead = sources.size() > 1;
  if (isByHead && static_cast<int64_t>(sources.size()) != heads)
    return {};
  TensorPart part = TensorPart::of(sources[isByHead ? head : 0]);
  if (part.asColumns)
    return {};
  if (isByHead) {
    part.transposed ^= transposed;
    return part.entry && part.period == 0 ? part.source(weight.getContext()) : Attribute();
  }
  if (part.period == 0) {
    part.last = rows;
    part.period = rows;
  }
  if (part.last - part.first != rows)
    return {};
  part.first += head * part.period;
  part.last += head * part.period;
  part.period *= heads;
  part.asColumns = transposed;
  return part.source(weight.getContext());
}

/// Finds the weights that a layer's calls pass as the matrix, each of which may have no other use.
/// Returns the reason if this fails, else an empty string.
static StringRef findWeights(HeadsOfLatent &made, ArrayRef<func::CallOp> calls,
                             const SymbolTable &symbols, const llvm::StringMap<unsigned> &gets) {
  auto argument = dyn_cast<BlockArgument>(made.product.getWeight());
  if (!argument || !argument.hasOneUse())
    return "a matrix is not an argument of the function, or has another use";
  for (func::CallOp call : calls) {
    auto get = call.getOperand(argument.getArgNumber()).getDefiningOp<GetWeightOp>();
    if (!get || !get->hasOneUse() || gets.lookup(get.getWeight()) != 1)
      return "a matrix is not a weight, or has another use";
    auto weight = symbols.lookup<WeightOp>(get.getWeight());
    for (int64_t head = 0; head < made.heads(); ++head)
      if (!sourceOfHead(weight, head, made.heads(), made.headDim(), false))
        return "the rows of a head are not contiguous in a tensor";
    made.gets.push_back(get);
    made.weights.push_back(weight);
  }
  return {};
}

/// Finds the parts of an attention over latents. Returns the reason if it is not one, else an empty
/// string.
static StringRef findParts(AttentionOp attention, LatentAttention &found) {
  if (StringRef reason = findCached(attention.getK(), found.keys); !reason.empty())
    return reason;
  if (StringRef reason = findCached(attention.getV(), found.values); !reason.empty())
    return reason;
  found.queries = attention.getQ().getDefiningOp<ConcatHeadsOp>();
  found.joined = found.keys.append.getX().getDefiningOp<ConcatHeadsOp>();
  if (!found.queries || !found.joined || !found.queries->hasOneUse() || !found.joined->hasOneUse())
    return "queries or keys are not concatenated from two parts";
  if (dimOf(found.joined.getB(), 1) != 1)
    return "each head has keys of its own in the second part";
  if (dimOf(found.queries.getA(), 2) != dimOf(found.joined.getA(), 2))
    return "queries and keys are concatenated from different parts";
  if (StringRef reason = findProduct(found.joined.getA(), found.plainKeys); !reason.empty())
    return reason;
  if (StringRef reason = findProduct(found.values.append.getX(), found.plainValues);
      !reason.empty())
    return reason;
  if (found.plainValues.product.getX() != found.latent())
    return "keys and values are computed from different rows";
  int64_t heads = found.plainKeys.heads();
  if (dimOf(attention.getQ(), 1) != heads || dimOf(found.queries.getA(), 1) != heads ||
      found.plainValues.heads() != heads)
    return "heads are shared";
  KvAppendOp keys = found.keys.append, values = found.values.append;
  if (keys.getLayer() != values.getLayer() || keys.getSequences() != values.getSequences() ||
      keys.getPositions() != values.getPositions())
    return "keys and values are appended to different places";
  if (found.width() >= heads * (dimOf(attention.getK(), 3) + dimOf(attention.getV(), 3)))
    return "the latent is as large as the keys and values computed from it";
  return {};
}

namespace {
/// Removes the caches of values, which are no longer used, from the arguments and results of
/// functions and from their calls.
class ValueCaches {
public:
  explicit ValueCaches(ModuleOp module) : module(module), kinds(module) {}

  /// Must be called before the first change to the module.
  LogicalResult find() {
    if (failed(kinds.infer(module)))
      return failure();
    module.walk([&](func::ReturnOp op) { operands.push_back({op, among(op.getOperands())}); });
    module.walk([&](func::CallOp op) {
      operands.push_back({op, among(op.getOperands())});
      results.push_back({op, among(op.getResults())});
    });
    for (auto function : module.getOps<func::FuncOp>())
      if (!function.isExternal())
        arguments.push_back({function, among(function.getArguments())});
    return success();
  }

  bool isOfValues(Value value) const { return kinds.get(value) == KvKind::Values; }

  void erase() {
    for (auto &[op, indices] : operands) {
      op->eraseOperands(indices);
      // Erases their attributes as well, as eraseArguments does below.
      if (isa<func::ReturnOp>(op))
        (void)op->getParentOfType<func::FuncOp>().eraseResults(indices);
    }
    for (auto &[call, indices] : results)
      eraseResults(call, indices);
    for (auto &[function, indices] : arguments)
      (void)function.eraseArguments(indices);
    module.walk(updateFunctionType);
  }

private:
  llvm::BitVector among(ValueRange values) const {
    llvm::BitVector indices;
    for (Value value : values)
      indices.push_back(isOfValues(value));
    return indices;
  }

  static void eraseResults(func::CallOp call, const llvm::BitVector &indices) {
    SmallVector<Type> types;
    for (auto [index, type] : llvm::enumerate(call.getResultTypes()))
      if (!indices.test(index))
        types.push_back(type);
    OpBuilder builder(call);
    auto next = func::CallOp::create(builder, call.getLoc(), call.getCalleeAttr(), types,
                                     call.getOperands());
    next->setDiscardableAttrs(call->getDiscardableAttrDictionary());
    unsigned kept = 0;
    for (auto [index, result] : llvm::enumerate(call.getResults()))
      if (!indices.test(index))
        result.replaceAllUsesWith(next.getResult(kept++));
    call.erase();
  }

  ModuleOp module;
  CacheKinds kinds;
  template <typename Op> using Indices = SmallVector<std::pair<Op, llvm::BitVector>, 0>;
  Indices<Operation *> operands;
  Indices<func::CallOp> results;
  Indices<func::FuncOp> arguments;
};

struct AbsorbLatent : mica::impl::AbsorbLatentBase<AbsorbLatent> {
  void runOnOperation() override {
    SmallVector<LatentAttention, 0> all;
    if (!findAll(all))
      return;
    ValueCaches caches(getOperation());
    if (failed(caches.find()))
      return signalPassFailure();
    LatentAttention &first = all.front();
    int64_t width = first.width();
    convertStates(getOperation(), [&](SequenceState state, Value value) -> Type {
      auto cache = dyn_cast<KvCacheType>(state);
      return !cache || caches.isOfValues(value) ? state : cache.withHeads(/*heads=*/1, width);
    });
    for (LatentAttention &found : all)
      rewrite(found);
    caches.erase();
  }

private:
  /// All layers share caches, so either all of them are changed or none. If none are, emits a
  /// remark with the reason for models that have latents.
  bool findAll(SmallVectorImpl<LatentAttention> &all) {
    SymbolTable symbols(getOperation());
    llvm::StringMap<unsigned> gets;
    getOperation().walk([&](GetWeightOp get) { ++gets[get.getWeight()]; });
    StringRef reason;
    getOperation().walk([&](AttentionOp attention) -> WalkResult {
      auto calls = findCalls(attention->getParentOfType<func::FuncOp>());
      LatentAttention &found = all.emplace_back();
      found.attention = attention;
      reason = calls ? findParts(attention, found) : "its function is called from elsewhere";
      if (reason.empty())
        reason = findWeights(found.plainKeys, *calls, symbols, gets);
      if (reason.empty())
        reason = findWeights(found.plainValues, *calls, symbols, gets);
      if (reason.empty() && found.width() != all.front().width())
        reason = "latents of layers have different sizes";
      return failure(!reason.empty());
    });
    if (!reason.empty() && hasLatents())
      all.back().attention.emitRemark("the caches hold keys and values of all heads in full: ")
          << reason;
    return !all.empty() && reason.empty();
  }

  /// Whether heads are concatenated from parts, which only models with latents do.
  bool hasLatents() {
    return getOperation()
        .walk([](ConcatHeadsOp) { return WalkResult::interrupt(); })
        .wasInterrupted();
  }

  /// [H * D, R] becomes one matrix per head: [H, D, R], or with `transposed` the transposed [H, R,
  /// D].
  static Value splitByHead(HeadsOfLatent &made, bool transposed) {
    int64_t heads = made.heads(), rows = made.headDim();
    auto old = cast<RankedTensorType>(made.product.getWeight().getType());
    int64_t rank = old.getDimSize(1);
    SmallVector<int64_t> shape{heads, transposed ? rank : rows, transposed ? rows : rank};
    auto type = RankedTensorType::get(shape, old.getElementType());
    for (WeightOp weight : made.weights) {
      SmallVector<Attribute> sources;
      for (int64_t head = 0; head < heads; ++head)
        sources.push_back(sourceOfHead(weight, head, heads, rows, transposed));
      Builder builder(weight.getContext());
      weight.setSourcesAttr(builder.getArrayAttr(sources));
      weight.setComposeAttr(ComposeAttr::get(builder.getContext(), Compose::Stack));
      weight.setTypeAttr(TypeAttr::get(type));
    }
    for (GetWeightOp get : made.gets)
      get.getResult().setType(type);
    Value matrix = made.product.getWeight();
    matrix.setType(type);
    return matrix;
  }

  void rewrite(LatentAttention &found) {
    AttentionOp attention = found.attention;
    OpBuilder builder(attention);
    Location loc = attention.getLoc();
    int64_t heads = found.plainKeys.heads(), rank = found.rank(), width = found.width();
    auto rowsOf = [&](int64_t count, int64_t size) {
      return RankedTensorType::get({dimOf(attention.getQ(), 0), count, size}, builder.getF32Type());
    };
    Value keyMatrices = splitByHead(found.plainKeys, /*transposed=*/true),
          valueMatrices = splitByHead(found.plainValues, /*transposed=*/false);
    Location keyLoc = found.plainKeys.getLoc(), valueLoc = found.plainValues.getLoc();

    Value latent =
        SplitHeadsOp::create(builder, found.latent().getLoc(), rowsOf(1, rank), found.latent());
    Value cached = ConcatHeadsOp::create(builder, found.joined.getLoc(), rowsOf(1, width), latent,
                                         found.joined.getB());
    KvAppendOp append = found.keys.append;
    append->moveBefore(attention);
    append.getXMutable().assign(cached);
    append->setLoc(builder.getFusedLoc({append.getLoc(), found.values.append.getLoc()}));
    auto read = [&](Location loc, int64_t size) {
      auto type = RankedTensorType::get({ShapedType::kDynamic, ShapedType::kDynamic, 1, size},
                                        append.getResult().getType().getElementType());
      return KvReadOp::create(builder, loc, type, append.getResult(), append.getLayer());
    };
    Value keys = read(found.keys.read.getLoc(), width),
          values = read(found.values.read.getLoc(), rank);
    Value inLatents = HeadLinearOp::create(builder, keyLoc, rowsOf(heads, rank),
                                           found.queries.getA(), keyMatrices);
    Value queries = ConcatHeadsOp::create(builder, found.queries.getLoc(), rowsOf(heads, width),
                                          inLatents, found.queries.getB());
    auto next = AttentionOp::create(
        builder, loc, rowsOf(heads, rank), queries, keys, values, attention.getSequences(),
        attention.getPositions(), attention.getKeyMask(), attention.getSinks(),
        attention.getMaskAttr(), attention.getScaleAttr(), attention.getWindowAttr(),
        attention.getSoftcapAttr(), attention.getAlibiAttr(), AttentionTilingAttr());
    Value result = HeadLinearOp::create(builder, valueLoc, attention.getType(), next.getResult(),
                                        valueMatrices);
    attention.getResult().replaceAllUsesWith(result);
    eraseOld(found);
  }

  /// Erases the replaced ops. The cache of values is passed through the function unchanged until
  /// ValueCaches::erase removes it everywhere.
  static void eraseOld(LatentAttention &found) {
    found.attention.erase();
    found.keys.read.erase();
    found.values.read.erase();
    found.values.append.getResult().replaceAllUsesWith(found.values.append.getCache());
    found.values.append.erase();
    for (Operation *op : std::initializer_list<Operation *>{
             found.queries, found.joined, found.plainKeys.split, found.plainKeys.product,
             found.plainValues.split, found.plainValues.product})
      op->erase();
  }
};
} // namespace
