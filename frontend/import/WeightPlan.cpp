#include "frontend/import/WeightPlan.h"

#include "llvm/ADT/StringExtras.h"

namespace mica {
namespace {

/// Lists the weights of one kind of layer.
class LayerLister {
public:
  LayerLister(const ModelConfig &model, const LayerKind &kind)
      : names(*model.names), hidden(model.hidden), kind(kind) {}

  std::vector<LayerWeight> list() {
    attention();
    norm(names.ffnNorm, hidden);
    if (auto *dense = std::get_if<DenseConfig>(&kind.ffn))
      this->dense(*dense);
    else
      sparse(std::get<SparseConfig>(kind.ffn));
    return std::move(weights);
  }

private:
  void norm(llvm::StringRef module, int64_t size) {
    weights.push_back({(module + ".weight").str(), {size}});
  }
  void linear(const llvm::Twine &module, int64_t rows, int64_t columns, bool bias) {
    weights.push_back({(module + ".weight").str(), {rows, columns}});
    if (bias)
      weights.push_back({(module + ".bias").str(), {rows}});
  }
  void attention();
  void dense(const DenseConfig &dense);
  void sparse(const SparseConfig &sparse);
  void expert(const llvm::Twine &prefix, int64_t inner);

  const NamingTable &names;
  int64_t hidden;
  const LayerKind &kind;
  std::vector<LayerWeight> weights;
};

void LayerLister::attention() {
  const AttentionConfig &a = kind.attention;
  norm(names.attentionNorm, hidden);
  linear(names.query, a.heads * a.headDim, hidden, a.qkvBias);
  linear(names.key, a.kvHeads * a.headDim, hidden, a.qkvBias);
  linear(names.value, a.kvHeads * a.headDim, hidden, a.qkvBias);
  if (a.qkNorm == QkNorm::PerHead) {
    norm(names.queryNorm, a.headDim);
    norm(names.keyNorm, a.headDim);
  }
  linear(names.out, hidden, a.heads * a.headDim, a.outBias);
}

void LayerLister::dense(const DenseConfig &dense) {
  linear(names.gate, dense.inner, hidden, dense.bias);
  linear(names.up, dense.inner, hidden, dense.bias);
  linear(names.down, hidden, dense.inner, dense.bias);
}

void LayerLister::expert(const llvm::Twine &prefix, int64_t inner) {
  linear(prefix + "." + names.expertGate, inner, hidden, false);
  linear(prefix + "." + names.expertUp, inner, hidden, false);
  linear(prefix + "." + names.expertDown, hidden, inner, false);
}

void LayerLister::sparse(const SparseConfig &sparse) {
  linear(names.router, sparse.experts, hidden, false);
  size_t first = weights.size();
  expert(names.expert, sparse.expert.inner);
  for (LayerWeight &weight : llvm::MutableArrayRef(weights).drop_front(first)) {
    weight.stacked = sparse.experts;
    weight.shape.insert(weight.shape.begin(), sparse.experts);
  }
  for (int64_t i = 0; i < sparse.sharedExperts; ++i)
    expert(sharedExpertName(names, i), sparse.shared.inner);
}

PlannedWeight plan(const llvm::Twine &prefix, const LayerWeight &weight) {
  PlannedWeight planned;
  planned.shape.assign(weight.shape);
  if (weight.stacked == 0) {
    planned.symbol = (prefix + weight.name).str();
    planned.sources = {planned.symbol};
    return planned;
  }
  planned.stacked = true;
  auto [before, after] = llvm::StringRef(weight.name).split("*.");
  planned.symbol = (prefix + before + after).str();
  for (int64_t i = 0; i < weight.stacked; ++i)
    planned.sources.push_back((prefix + before + llvm::Twine(i) + "." + after).str());
  return planned;
}

} // namespace

std::string sharedExpertName(const NamingTable &names, int64_t index) {
  auto [before, after] = llvm::StringRef(names.sharedExpert).split('*');
  return before == names.sharedExpert ? before.str() : (before + llvm::Twine(index) + after).str();
}

std::vector<LayerWeight> layerWeights(const ModelConfig &model, const LayerKind &kind) {
  return LayerLister(model, kind).list();
}

WeightPlan planWeights(const ModelConfig &model) {
  const NamingTable &names = *model.names;
  WeightPlan result;
  result.embedding = plan(names.embedding, {".weight", {model.vocab, model.hidden}});
  result.finalNorm = plan(names.finalNorm, {".weight", {model.hidden}});
  if (!model.tiedHead)
    result.head = plan(names.head, {".weight", {model.vocab, model.hidden}});
  for (auto [index, kind] : llvm::enumerate(model.layers)) {
    std::vector<PlannedWeight> &layer = result.layers.emplace_back();
    std::string prefix = (names.layers + "." + llvm::Twine(index) + ".").str();
    for (const LayerWeight &weight : layerWeights(model, model.kinds[kind]))
      layer.push_back(plan(prefix, weight));
  }
  return result;
}

} // namespace mica
