#include "frontend/import/WeightPlan.h"

#include "llvm/ADT/StringExtras.h"

namespace mica {
namespace {

/// Lists the weights of one layer type.
class LayerLister {
public:
  LayerLister(const ModelConfig &model, const LayerType &kind)
      : model(model), names(*model.names), hidden(model.hidden), kind(kind) {}

  std::vector<LayerWeight> list() {
    if (kind.mixes)
      attention();
    if (!std::holds_alternative<std::monostate>(kind.ffn))
      feedForward();
    if (kind.perLayer)
      perLayer(*kind.perLayer);
    if (model.block.layerScalar)
      weights.push_back({names.layerScalar.str(), {1}});
    return std::move(weights);
  }

private:
  /// The rows of a matrix in a tensor with several matrices: [first, last) of every `period`.
  struct Rows {
    llvm::StringRef tensor;
    int64_t first, last, period;
  };

  void feedForward() {
    llvm::StringRef before = !kind.mixes                                    ? names.attentionNorm
                             : model.block.parallel == Parallel::SharedNorm ? ""
                                                                            : names.ffnNorm;
    blockNorms(before, names.postFfnNorm, [&] {
      if (auto *dense = std::get_if<DenseConfig>(&kind.ffn))
        this->dense(*dense);
      else
        sparse(std::get<SparseConfig>(kind.ffn));
    });
  }
  void norm(llvm::StringRef module, llvm::ArrayRef<int64_t> shape, const NormConfig &config) {
    weights.push_back({(module + ".weight").str(), llvm::SmallVector<int64_t, 3>(shape)});
    // A star in the name: one tensor per head.
    weights.back().stacked = module.contains('*') ? shape.front() : 0;
    if (config.bias)
      weights.push_back({(module + ".bias").str(), llvm::SmallVector<int64_t, 3>(shape)});
  }
  /// Lists the weights of a block between its pre-norm and post-norm, if there are any.
  void blockNorms(llvm::StringRef before, llvm::StringRef after, llvm::function_ref<void()> list) {
    if (model.block.preNorms && !before.empty())
      norm(before, hidden, model.norm);
    list();
    if (model.block.postNorms)
      norm(after, hidden, model.norm);
  }
  void linear(const llvm::Twine &module, int64_t rows, int64_t columns, bool bias,
              std::optional<Rows> of = std::nullopt) {
    weights.push_back({(module + ".weight").str(), {rows, columns}});
    weights.back().source = sourceOf(module, ".weight", of, names.transposed);
    if (!bias)
      return;
    weights.push_back({(module + ".bias").str(), {rows}});
    weights.back().source = sourceOf(module, ".bias", of, false);
  }
  static std::optional<TensorPart> sourceOf(const llvm::Twine &module, llvm::StringRef suffix,
                                            const std::optional<Rows> &of, bool transposed) {
    if (!of && !transposed)
      return std::nullopt;
    TensorPart source{(of ? of->tensor.str() : module.str()) + suffix.str()};
    source.transposed = transposed;
    if (of) {
      source.first = of->first;
      source.last = of->last;
      source.period = of->period;
    }
    return source;
  }
  void attention();
  void conv(const ShortConvConfig &conv);
  void filters(int64_t channels, int64_t taps, bool bias);
  void mamba(const MambaConfig &mamba);
  void deltaNet(const DeltaNetConfig &delta);
  void projections();
  void qkNorms();
  void latent();
  void joinedHeads(llvm::StringRef suffix, int64_t rows, llvm::StringRef module, bool transposed);
  void dense(const DenseConfig &dense);
  void sparse(const SparseConfig &sparse);
  std::optional<Rows> rowsOfGateUp(int64_t index, const DenseConfig &config);
  void expert(const llvm::Twine &prefix, int64_t width, const DenseConfig &config, bool isShared);
  void stackedExperts(const SparseConfig &sparse);
  void perLayer(const PerLayerConfig &perLayer);

  const ModelConfig &model;
  const NamingTable &names;
  int64_t hidden;
  const LayerType &kind;
  std::vector<LayerWeight> weights;
};

/// Queries, keys and values: separate tensors, or rows of one.
void LayerLister::projections() {
  const AttentionConfig &a = kind.attention;
  int64_t d = a.headDim, q = a.heads * d, kv = a.kvHeads * d;
  std::optional<Rows> parts[3];
  if (!names.qkv.empty() && names.qkvOrder == QkvOrder::Consecutive) {
    parts[0] = {names.qkv, 0, q, q + 2 * kv};
    parts[1] = {names.qkv, q, q + kv, q + 2 * kv};
    parts[2] = {names.qkv, q + kv, q + 2 * kv, q + 2 * kv};
  } else if (!names.qkv.empty()) {
    for (int64_t i = 0; i < 3; ++i)
      parts[i] = {names.qkv, i * d, (i + 1) * d, 3 * d};
  }
  if (a.outputGate)
    parts[0] = {names.query, 0, d, 2 * d};
  linear(names.query, q, hidden, a.qkvBias, parts[0]);
  if (!a.sharesCache)
    linear(names.key, kv, hidden, a.qkvBias, parts[1]);
  if (!a.sharesCache && !a.valuesAreKeys)
    linear(names.value, kv, hidden, a.qkvBias, parts[2]);
  if (a.outputGate)
    linear(names.query + "_gate", q, hidden, a.qkvBias, Rows{names.query, d, 2 * d, 2 * d});
}

void LayerLister::qkNorms() {
  const AttentionConfig &a = kind.attention;
  for (auto [module, heads] : {std::pair(names.queryNorm, a.heads), {names.keyNorm, a.kvHeads}}) {
    if (a.sharesCache && module == names.keyNorm)
      continue;
    switch (a.qkNorm) {
    case QkNorm::None:
      break;
    case QkNorm::PerHead:
      norm(module, a.headDim, a.norm);
      break;
    case QkNorm::OwnPerHead:
      norm(module, {heads, a.headDim}, a.norm);
      break;
    case QkNorm::AllHeads:
      norm(module, heads * a.headDim, a.norm);
      break;
    }
  }
}

/// The projections to latents, their norms, and the projections of latents to heads.
void LayerLister::latent() {
  const AttentionConfig &a = kind.attention;
  const LatentConfig &l = *a.latent;
  int64_t d = l.qkNopeHeadDim + l.qkRopeHeadDim, from = l.queryRank == 0 ? hidden : l.queryRank;
  if (l.queryRank != 0) {
    linear(names.queryDown, l.queryRank, hidden, l.bias);
    norm(names.queryDownNorm, l.queryRank, a.norm);
  }
  llvm::StringRef queries = l.queryRank == 0 ? names.query : names.queryUp;
  linear(queries + "_plain", a.heads * l.qkNopeHeadDim, from, false,
         Rows{queries, 0, l.qkNopeHeadDim, d});
  linear(queries + "_rotated", a.heads * l.qkRopeHeadDim, from, false,
         Rows{queries, l.qkNopeHeadDim, d, d});
  int64_t all = l.rank + l.qkRopeHeadDim, up = l.qkNopeHeadDim + a.valueDim;
  linear(names.latentDown + "_plain", l.rank, hidden, l.bias,
         Rows{names.latentDown, 0, l.rank, all});
  linear(names.latentDown + "_rotated", l.qkRopeHeadDim, hidden, l.bias,
         Rows{names.latentDown, l.rank, all, all});
  norm(names.latentNorm, l.rank, a.norm);
  if (!names.latentUpKeys.empty()) {
    joinedHeads("_keys", l.qkNopeHeadDim, names.latentUpKeys, /*transposed=*/true);
    joinedHeads("_values", a.valueDim, names.latentUpValues, /*transposed=*/false);
    return;
  }
  linear(names.latentUp + "_keys", a.heads * l.qkNopeHeadDim, l.rank, false,
         Rows{names.latentUp, 0, l.qkNopeHeadDim, up});
  linear(names.latentUp + "_values", a.heads * a.valueDim, l.rank, false,
         Rows{names.latentUp, l.qkNopeHeadDim, up, up});
}

/// The projection of the latent to `rows` rows per head; every head is an entry of one tensor.
void LayerLister::joinedHeads(llvm::StringRef suffix, int64_t rows, llvm::StringRef module,
                              bool transposed) {
  const AttentionConfig &a = kind.attention;
  weights.push_back(
      {.name = (names.latentUp + suffix + ".weight").str(),
       .shape = {a.heads * rows, a.latent->rank},
       .source = TensorPart{.tensor = (module + ".weight").str(), .transposed = transposed},
       .joined = a.heads});
}

/// The three input projections, a filter per channel, and the output projection.
void LayerLister::conv(const ShortConvConfig &conv) {
  int64_t first = 0;
  for (const char *part : {"_b", "_c", "_x"}) {
    linear(names.convIn + part, hidden, hidden, conv.bias,
           Rows{names.convIn, first, first + hidden, 3 * hidden});
    first += hidden;
  }
  filters(hidden, conv.taps, conv.bias);
  linear(names.convOut, hidden, hidden, conv.bias);
}

void LayerLister::filters(int64_t channels, int64_t taps, bool bias) {
  weights.push_back({(names.conv + ".weight").str(), {channels, taps}});
  if (bias)
    weights.push_back({(names.conv + ".bias").str(), {channels}});
}

/// The three input projections, a filter per channel, three numbers per head, the norm, and the
/// output projection.
void LayerLister::mamba(const MambaConfig &mamba) {
  int64_t first = 0, all = mamba.inner() + mamba.channels() + mamba.heads;
  for (auto [part, rows] :
       {std::pair("_gate", mamba.inner()), {"_xbc", mamba.channels()}, {"_dt", mamba.heads}}) {
    linear(names.mambaIn + part, rows, hidden, mamba.bias,
           Rows{names.mambaIn, first, first + rows, all});
    first += rows;
  }
  filters(mamba.channels(), mamba.taps, mamba.convBias);
  for (llvm::StringRef name : {names.dtBias, names.aLog, names.skip})
    weights.push_back({name.str(), {mamba.heads}});
  if (mamba.hasNorm)
    weights.push_back(
        {(names.mambaNorm + ".weight").str(), {mamba.groups, mamba.inner() / mamba.groups}});
  linear(names.mambaOut, hidden, mamba.inner(), mamba.outBias);
}

/// The four input projections, a filter per channel, two numbers per head, the norm, and the output
/// projection.
void LayerLister::deltaNet(const DeltaNetConfig &delta) {
  bool grouped = !names.deltaQkvz.empty(), groupedSteps = !names.deltaBa.empty();
  int64_t perKeyHead = delta.valueHeads / delta.keyHeads, k = delta.keyDim,
          v = perKeyHead * delta.valueDim;
  // Rows per key head: a query, a key, values and their gates; beta and time steps.
  auto qkvz = [&](int64_t first, int64_t last) {
    return grouped ? std::optional(Rows{names.deltaQkvz, first, last, 2 * (k + v)}) : std::nullopt;
  };
  auto ba = [&](int64_t index) {
    return groupedSteps ? std::optional(Rows{names.deltaBa, index * perKeyHead,
                                             (index + 1) * perKeyHead, 2 * perKeyHead})
                        : std::nullopt;
  };
  linear(names.deltaQkv, delta.channels(), hidden, false, qkvz(0, k));
  if (grouped)
    for (auto [first, last] : {std::pair(k, 2 * k), {2 * k, 2 * k + v}})
      weights.back().more.push_back(
          *sourceOf(names.deltaQkv, ".weight", qkvz(first, last), names.transposed));
  linear(names.deltaGate, delta.values(), hidden, false, qkvz(2 * k + v, 2 * (k + v)));
  linear(names.deltaBeta, delta.valueHeads, hidden, false, ba(0));
  linear(names.deltaAlpha, delta.valueHeads, hidden, false, ba(1));
  filters(delta.channels(), delta.taps, false);
  for (llvm::StringRef name : {names.dtBias, names.aLog})
    weights.push_back({name.str(), {delta.valueHeads}});
  weights.push_back({(names.deltaNorm + ".weight").str(), {delta.valueDim}});
  linear(names.deltaOut, hidden, delta.values(), false);
}

void LayerLister::attention() {
  const AttentionConfig &a = kind.attention;
  blockNorms(names.attentionNorm, names.postAttentionNorm, [&] {
    std::visit(llvm::makeVisitor([](std::monostate) {},
                                 [&](const ShortConvConfig &config) { conv(config); },
                                 [&](const MambaConfig &config) { mamba(config); },
                                 [&](const DeltaNetConfig &config) { deltaNet(config); }),
               kind.stateMixer);
    if (!kind.hasAttention())
      return;
    if (a.latent) {
      latent();
    } else {
      projections();
      qkNorms();
    }
    if (a.sinks)
      weights.push_back({names.sinks.str(), {a.heads}});
    linear(names.out, hidden, a.heads * a.valueDim, a.outBias);
  });
}

/// The rows of `index`, gate or up, in the tensor of both; none if they are separate tensors.
std::optional<LayerLister::Rows> LayerLister::rowsOfGateUp(int64_t index,
                                                           const DenseConfig &config) {
  if (names.gateUp.empty())
    return std::nullopt;
  return Rows{names.gateUp, index * config.inner, (index + 1) * config.inner, 2 * config.inner};
}

void LayerLister::dense(const DenseConfig &dense) {
  if (dense.gated)
    linear(names.gate, dense.inner, hidden, dense.bias, rowsOfGateUp(0, dense));
  linear(names.up, dense.inner, hidden, dense.bias, rowsOfGateUp(1, dense));
  linear(names.down, hidden, dense.inner, dense.bias);
}

/// Routed experts without gate have up in its place as well.
void LayerLister::expert(const llvm::Twine &prefix, int64_t width, const DenseConfig &config,
                         bool isShared) {
  auto rows = [&](int64_t index) { return isShared ? rowsOfGateUp(index, config) : std::nullopt; };
  if (config.gated || !isShared)
    linear(prefix + "." + names.expertGate, config.inner, width, config.bias, rows(0));
  if (!config.gated && !isShared)
    weights.back().source = TensorPart{(prefix + "." + names.expertUp + ".weight").str()};
  linear(prefix + "." + names.expertUp, config.inner, width, config.bias, rows(1));
  linear(prefix + "." + names.expertDown, width, config.inner, config.bias);
}

/// Matrices that are one tensor for all experts, or half of the rows of one.
void LayerLister::stackedExperts(const SparseConfig &sparse) {
  int64_t experts = sparse.experts, inner = sparse.expert.inner;
  auto add = [&](const llvm::Twine &name, llvm::SmallVector<int64_t, 3> shape,
                 const llvm::Twine &tensor, bool transposed, TensorPart part) {
    part.tensor = (names.expert + "." + tensor).str();
    part.transposed = transposed;
    weights.push_back(
        {(names.expert + "." + name).str(), std::move(shape), experts, std::move(part)});
  };
  auto product = [&](llvm::StringRef name, llvm::StringRef tensor, int64_t rows, int64_t columns,
                     const TensorPart &part) {
    add(name + ".weight", {experts, rows, columns}, tensor + names.stackedSuffix,
        names.stackedTransposed, part);
    if (sparse.expert.bias)
      add(name + ".bias", {experts, rows}, tensor + "_bias", /*transposed=*/false, part);
  };
  int64_t run = names.gateUpInterleaved ? 1 : inner;
  TensorPart gate{.first = 0, .last = run, .period = 2 * run},
      up{.first = run, .last = 2 * run, .period = 2 * run};
  product(names.expertGate, names.stackedGateUp, inner, hidden, gate);
  product(names.expertUp, names.stackedGateUp, inner, hidden, up);
  product(names.expertDown, names.stackedDown, hidden, inner, {});
}

void LayerLister::sparse(const SparseConfig &sparse) {
  linear(names.router, sparse.experts, hidden, sparse.routerBias);
  if (sparse.correctionBias)
    weights.push_back({names.correctionBias.str(), {sparse.experts}});
  size_t first = weights.size();
  if (!names.stackedGateUp.empty())
    stackedExperts(sparse);
  else
    expert(names.expert, sparse.latent ? sparse.latent : hidden, sparse.expert, /*isShared=*/false);
  for (LayerWeight &weight : llvm::MutableArrayRef(weights).drop_front(first)) {
    if (weight.stacked)
      continue;
    weight.stacked = sparse.experts;
    weight.shape.insert(weight.shape.begin(), sparse.experts);
  }
  for (int64_t i = 0; i < sparse.sharedExperts; ++i)
    expert(sharedExpertName(names, i), hidden, sparse.shared, /*isShared=*/true);
  if (sparse.sharedGate)
    linear(names.sharedExpertGate, 1, hidden, false);
  if (sparse.dense) {
    dense(*sparse.dense);
    for (llvm::StringRef module : {names.expertsNorm, names.postDenseNorm, names.postExpertsNorm})
      norm(module, hidden, model.norm);
    weights.push_back({names.routerNorm.str(), {hidden}});
    weights.push_back({names.expertScales.str(), {sparse.experts}});
  }
  if (sparse.latent == 0)
    return;
  linear(names.expertsIn, sparse.latent, hidden, sparse.shared.bias);
  linear(names.expertsOut, hidden, sparse.latent, sparse.shared.bias);
}

void LayerLister::perLayer(const PerLayerConfig &perLayer) {
  linear(names.perLayerGate, perLayer.dim, hidden, false);
  linear(names.perLayerOut, hidden, perLayer.dim, false);
  norm(names.postPerLayerNorm, hidden, model.norm);
}

PlannedWeight plan(const llvm::Twine &prefix, const LayerWeight &weight) {
  PlannedWeight planned;
  planned.shape.assign(weight.shape);
  auto [before, after] = llvm::StringRef(weight.name).split("*.");
  planned.symbol = (prefix + before + after).str();
  planned.stacked = weight.stacked != 0;
  int64_t count = std::max(weight.stacked, weight.joined);
  TensorPart source = weight.source.value_or(TensorPart{weight.name});
  auto [first, last] = llvm::StringRef(source.tensor).split('*');
  bool hasStar = first.size() < source.tensor.size();
  for (int64_t i = 0; i < std::max<int64_t>(count, 1); ++i) {
    TensorPart &part = planned.sources.emplace_back(source);
    std::string index = hasStar ? std::to_string(i) : "";
    part.tensor = (prefix + first + index + last).str();
    if (count > 0 && !hasStar)
      part.entry = i;
  }
  for (const TensorPart &more : weight.more) {
    planned.sources.push_back(more);
    planned.sources.back().tensor = (prefix + more.tensor).str();
  }
  return planned;
}

} // namespace

llvm::SmallVector<int64_t, 3> PlannedWeight::shapeOf(const TensorPart &source) const {
  if (stacked)
    return llvm::SmallVector<int64_t, 3>(llvm::drop_begin(shape));
  // Parts of one tensor contribute the rows that they have of each period, other sources an equal
  // number.
  auto shareOf = [](const TensorPart &part) {
    return part.period == 0 ? 1 : part.last - part.first;
  };
  int64_t all = 0;
  for (const TensorPart &part : sources)
    all += shareOf(part);
  llvm::SmallVector<int64_t, 3> part(shape);
  part.front() = part.front() / all * shareOf(source);
  return part;
}

llvm::SmallVector<PlannedWeight *> allWeights(WeightPlan &plan) {
  llvm::SmallVector<PlannedWeight *> all = {&plan.embedding, &plan.finalNorm};
  for (std::optional<PlannedWeight> *weight :
       {&plan.finalNormBias, &plan.positions, &plan.embeddingNorm, &plan.embeddingNormBias,
        &plan.head})
    if (*weight)
      all.push_back(&**weight);
  if (plan.perLayer)
    all.append({&plan.perLayer->table, &plan.perLayer->projection, &plan.perLayer->norm});
  for (std::vector<PlannedWeight> &layer : plan.layers)
    for (PlannedWeight &weight : layer)
      all.push_back(&weight);
  if (plan.mtp)
    llvm::append_range(all, allWeightsOfHead(*plan.mtp));
  return all;
}

std::string sharedExpertName(const NamingTable &names, int64_t index) {
  auto [before, after] = llvm::StringRef(names.sharedExpert).split('*');
  return before == names.sharedExpert ? before.str() : (before + llvm::Twine(index) + after).str();
}

std::vector<LayerWeight> layerWeights(const ModelConfig &model, const LayerType &kind) {
  return LayerLister(model, kind).list();
}

const LayerType *mtpLayerType(const ModelConfig &model) {
  if (!model.names->mtp)
    return nullptr;
  for (unsigned kind : llvm::reverse(model.layers))
    if (model.layerTypes[kind].hasAttention() && !model.layerTypes[kind].hasStateMixer())
      return &model.layerTypes[kind];
  return nullptr;
}

/// The matrix is [C, 2 C]; its columns for the embedding are the first ones.
static MtpWeights planMtp(const ModelConfig &model) {
  int64_t hidden = model.hidden;
  const MtpModules &names = *model.names->mtp;
  auto norm = [&](llvm::StringRef module) { return plan(module, {".weight", {hidden}}); };
  auto half = [&](llvm::StringRef name, int64_t first) {
    LayerWeight weight{(name + ".weight").str(), {hidden, hidden}};
    weight.source = TensorPart{.tensor = (names.combine + ".weight").str(),
                               .transposed = true,
                               .first = first,
                               .last = first + hidden,
                               .period = 2 * hidden,
                               .asColumns = true};
    return plan("", weight);
  };
  MtpWeights result{.embeddingNorm = norm(names.embeddingNorm),
                    .hiddenNorm = norm(names.hiddenNorm),
                    .ofEmbedding = half((names.combine + "_embedding").str(), 0),
                    .ofHidden = half((names.combine + "_hidden").str(), hidden),
                    .layer = {},
                    .finalNorm = norm(names.finalNorm)};
  ModelConfig head = model;
  head.names = &*model.mtpNames;
  for (const LayerWeight &weight : layerWeights(head, *mtpLayerType(model)))
    result.layer.push_back(plan(names.layers + ".0.", weight));
  return result;
}

WeightPlan planWeights(const ModelConfig &model, MtpHead mtp) {
  const NamingTable &names = *model.names;
  WeightPlan result;
  result.embedding = plan(names.embedding, {".weight", {model.vocab, model.hidden}});
  result.finalNorm = plan(names.finalNorm, {".weight", {model.hidden}});
  if (model.norm.bias)
    result.finalNormBias = plan(names.finalNorm, {".bias", {model.hidden}});
  if (model.embeddingNorm)
    result.embeddingNorm = plan(names.embeddingNorm, {".weight", {model.hidden}});
  if (model.embeddingNorm && model.norm.bias)
    result.embeddingNormBias = plan(names.embeddingNorm, {".bias", {model.hidden}});
  if (model.positions)
    result.positions = plan(names.positions, {".weight", {model.positions->rows, model.hidden}});
  if (const std::optional<PerLayerConfig> &perLayer = model.layerTypes.front().perLayer) {
    int64_t columns = static_cast<int64_t>(model.layers.size()) * perLayer->dim;
    result.perLayer = {
        .table = plan(names.perLayerTable, {".weight", {model.perLayerVocab, columns}}),
        .projection = plan(names.perLayerProjection, {".weight", {columns, model.hidden}}),
        .norm = plan(names.perLayerNorm, {".weight", {perLayer->dim}})};
  }
  if (!model.tiedHead)
    result.head = plan(names.head, {".weight", {model.vocab, model.hidden}});
  for (auto [index, kind] : llvm::enumerate(model.layers)) {
    std::vector<PlannedWeight> &layer = result.layers.emplace_back();
    std::string prefix = (names.layers + "." + llvm::Twine(index) + ".").str();
    for (const LayerWeight &weight : layerWeights(model, model.layerTypes[kind]))
      layer.push_back(plan(prefix, weight));
  }
  if (mtp == MtpHead::Kept)
    result.mtp = planMtp(model);
  return result;
}

} // namespace mica
