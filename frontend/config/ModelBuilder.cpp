#include "frontend/config/ModelBuilder.h"

#include "frontend/config/DerivedSizes.h"
#include "frontend/config/ExpertReader.h"
#include "frontend/config/LayerTypeReader.h"
#include "frontend/config/Quantization.h"
#include "frontend/config/RopeReader.h"
#include "frontend/support/InputError.h"
#include "frontend/support/Json.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <cmath>
#include <map>

namespace mica {
namespace {

class ModelBuilder {
public:
  ModelBuilder(Hyperparameters h, const Family &family, const KeyNames &names)
      : h(std::move(h)), family(family), keyNames(names), path(names.path()) {}

  llvm::Expected<ModelConfig> build();

private:
  llvm::Error applyFamily();
  llvm::Error readType(ModelConfig &model) const;
  llvm::Error checkQuantization() const;
  NormConfig norm() const;
  BlockConfig block() const;
  double scoreScale() const;
  llvm::Expected<AttentionConfig> attention(int64_t layer) const;
  llvm::Error readMultipliers(const llvm::json::Array *list, llvm::StringRef key,
                              llvm::MutableArrayRef<double> numbers) const;
  MambaConfig mamba() const;
  DeltaNetConfig deltaNet() const;
  llvm::Expected<LayerType> buildLayerType(int64_t layer) const;
  llvm::Error addLayers(ModelConfig &model) const;
  bool isSparse(int64_t layer) const;
  int64_t innerOf(int64_t layer) const {
    return *h.inner * (h.doublesInner.value_or(false) && layers.sharesCache(layer) ? 2 : 1);
  }
  /// An additional divisor of the layer's attention scores, besides the scale of all layers.
  int64_t scoreDivisor(int64_t layer) const {
    return h.scalesByLayer.value_or(false) ? layer + 1 : 1;
  }
  llvm::Error readActivation();
  DenseConfig dense(int64_t inner, bool bias) const {
    return {inner, activation, bias, family.traits.gated, mlpMultipliers[0], mlpMultipliers[1]};
  }
  llvm::Error wrong(const llvm::Twine &what, const llvm::Twine &hint = hints::correct) const {
    return inputError(path, what, hint);
  }

  Hyperparameters h;
  const Family &family;
  const KeyNames &keyNames;
  llvm::StringRef path;
  LayerTypeReader layers{h, family.traits, keyNames};
  Activation activation = Activation::Silu;
  std::array<double, 5> mambaMultipliers = {1, 1, 1, 1, 1};
  std::array<double, 2> mlpMultipliers = {1, 1};
};

/// transformers has several names for some functions that differ only in rounding; "gelu" is the
/// exact one.
llvm::Error ModelBuilder::readActivation() {
  constexpr std::pair<llvm::StringLiteral, Activation> names[] = {
      {"silu", Activation::Silu},
      {"swish", Activation::Silu},
      {"gelu", Activation::Gelu},
      {"gelu_python", Activation::Gelu},
      {"gelu_pytorch_tanh", Activation::GeluTanh},
      {"gelu_python_tanh", Activation::GeluTanh},
      {"gelu_new", Activation::GeluTanh},
      {"gelu_fast", Activation::GeluTanh},
      {"gelu_accurate", Activation::GeluTanh},
      {"quick_gelu", Activation::QuickGelu},
      {"relu", Activation::Relu},
      {"relu2", Activation::Relu2},
  };
  activation = family.traits.activation;
  if (!h.activation)
    return llvm::Error::success();
  for (auto [name, known] : names)
    if (name == *h.activation) {
      activation = known;
      return llvm::Error::success();
    }
  auto computed = llvm::map_range(names, [](const auto &row) { return row.first.str(); });
  return wrong("has the activation " + inQuotes(*h.activation) + ", only " +
                   llvm::join(computed, ", ") + " are supported",
               hints::otherModel);
}

/// Reads a list with as many elements as `numbers`; null: unchanged.
llvm::Error ModelBuilder::readMultipliers(const llvm::json::Array *list, llvm::StringRef key,
                                          llvm::MutableArrayRef<double> numbers) const {
  if (!list)
    return llvm::Error::success();
  if (list->size() != numbers.size())
    return wrong("has " + llvm::Twine(list->size()) + " numbers in " + inQuotes(key) +
                 ", expected " + llvm::Twine(numbers.size()));
  for (auto [number, item] : llvm::zip(numbers, *list)) {
    auto read = readNumber(path, key, item, ranges::multiplier);
    if (!read)
      return read.takeError();
    number = *read;
  }
  return llvm::Error::success();
}

llvm::Error ModelBuilder::applyFamily() {
  if (family.check)
    if (llvm::Error error = family.check(h, path))
      return error;
  if (family.derive)
    family.derive(h);
  if (llvm::Error error = readMultipliers(h.mambaMultipliers, "ssm_multipliers", mambaMultipliers))
    return error;
  return readMultipliers(h.mlpMultipliers, "mlp_multipliers", mlpMultipliers);
}

llvm::Error ModelBuilder::readType(ModelConfig &model) const {
  if (!h.type)
    return llvm::Error::success();
  constexpr std::pair<llvm::StringLiteral, StoredType> types[] = {
      {"float32", StoredType::F32}, {"bfloat16", StoredType::BF16}, {"float16", StoredType::F16}};
  llvm::StringRef name = *h.type;
  name.consume_front("torch.");
  for (auto [known, type] : types)
    if (known == name)
      model.type = type;
  if (!model.type)
    return wrong("has the weight type " + inQuotes(*h.type) +
                     ", only float32, bfloat16 and float16 are supported",
                 "convert the weights to one of them");
  return llvm::Error::success();
}

llvm::Error ModelBuilder::checkQuantization() const {
  if (!h.quantization)
    return llvm::Error::success();
  return mica::checkQuantization(path, "quantization_config",
                                 llvm::json::Value(llvm::json::Object(*h.quantization)),
                                 family.name, /*supported=*/"mxfp4");
}

NormConfig ModelBuilder::norm() const {
  const FamilyTraits &traits = family.traits;
  return {traits.norm, *h.eps, traits.normRounding, traits.weightOffset, traits.normBias};
}

BlockConfig ModelBuilder::block() const {
  const FamilyTraits &traits = family.traits;
  BlockConfig block{traits.preNorms, traits.postNorms, traits.parallel};
  if (!h.parallelResidual.value_or(true))
    block.parallel = Parallel::No;
  block.residualMultiplier = h.residualMultiplier.value_or(1);
  block.layerScalar = traits.layerScalar;
  return block;
}

/// Powers of a base that depends on the number of heads; if that is not a power of two, every other
/// power for the next power of two follows.
static std::vector<double> alibiSlopes(int64_t heads) {
  auto whole = int64_t(1) << static_cast<int64_t>(std::floor(std::log2(double(heads))));
  auto baseOf = [](int64_t count) {
    return std::pow(2, -std::pow(2, 3 - std::log2(double(count))));
  };
  std::vector<double> slopes;
  for (int64_t i = 1; i <= whole; ++i)
    slopes.push_back(std::pow(baseOf(whole), double(i)));
  for (int64_t i = 1; static_cast<int64_t>(slopes.size()) < heads; i += 2)
    slopes.push_back(std::pow(baseOf(2 * whole), double(i)));
  return slopes;
}

double ModelBuilder::scoreScale() const {
  return h.scoreScale.value_or(1 / std::sqrt(h.scoreScalar.value_or(double(*h.headDim))));
}

llvm::Expected<AttentionConfig> ModelBuilder::attention(int64_t layer) const {
  const FamilyTraits &traits = family.traits;
  bool isGlobal = !layers.usesSlidingWindow(layer);
  AttentionConfig attention;
  attention.heads = *h.heads;
  attention.kvHeads = isGlobal ? h.globalKvHeads.value_or(*h.kvHeads) : *h.kvHeads;
  attention.headDim = isGlobal ? h.globalHeadDim.value_or(*h.headDim) : *h.headDim;
  attention.valueDim = h.valueDim.value_or(attention.headDim);
  attention.valuesAreKeys = isGlobal && h.valuesAreKeys.value_or(false);
  attention.sharesCache = layers.sharesCache(layer);
  if (traits.valueNorm)
    attention.valueEps = *h.eps;
  if (h.latentRank)
    attention.latent = LatentConfig{h.queryRank.value_or(0), *h.latentRank, *h.qkNopeHeadDim,
                                    *h.qkRopeHeadDim, h.attentionBias.value_or(false)};
  // A multiplier of keys multiplies the scores.
  attention.scale = scoreScale() / double(scoreDivisor(layer)) * h.keyMultiplier.value_or(1);
  attention.inMultiplier = h.attentionInMultiplier.value_or(1);
  attention.outMultiplier = h.attentionOutMultiplier.value_or(1);
  attention.sinks = traits.sinks;
  attention.outputGate = traits.outputGate;
  if (traits.alibi)
    attention.slopes = alibiSlopes(*h.heads);
  attention.qkvBias = h.attentionBias.value_or(false);
  attention.outBias = h.outBias.value_or(attention.qkvBias);
  attention.qkNorm = h.qkNorm.value_or(true) ? traits.qkNorm : QkNorm::None;
  attention.norm = norm();
  // Head norms never have a bias, even if the others do.
  attention.norm.bias = false;
  attention.softcap = h.scoreSoftcap;
  if (layers.usesSlidingWindow(layer))
    attention.window = h.window;
  if (!traits.rope || !h.usesRope.value_or(true))
    return attention;
  auto rope = readRope(h, traits, h.qkRopeHeadDim.value_or(attention.headDim),
                       layers.usesSlidingWindow(layer), keyNames);
  if (!rope)
    return rope.takeError();
  attention.rope = *rope;
  attention.scale *= rope->scoreMultiplier;
  return attention;
}

MambaConfig ModelBuilder::mamba() const {
  return {.heads = *h.mambaHeads,
          .headDim = *h.mambaHeadDim,
          .groups = *h.mambaGroups,
          .stateDim = *h.stateDim,
          .taps = *h.convTaps,
          .bias = h.mambaBias.value_or(false),
          .outBias = h.mambaOutBias.value_or(h.mambaBias.value_or(false)),
          .convBias = h.convBias.value_or(false),
          .eps = *h.eps,
          .hasNorm = h.mambaNorm.value_or(true),
          .gatesFirst = !h.mambaNormFirst.value_or(false),
          .parallelToAttention = family.traits.parallelToAttention,
          .inMultiplier = h.mambaInMultiplier.value_or(1),
          .outMultiplier = h.mambaOutMultiplier.value_or(1),
          .multipliers = mambaMultipliers};
}

DeltaNetConfig ModelBuilder::deltaNet() const {
  return {.keyHeads = *h.deltaKeyHeads,
          .keyDim = *h.deltaKeyDim,
          .valueHeads = *h.deltaValueHeads,
          .valueDim = *h.deltaValueDim,
          .taps = *h.convTaps,
          .eps = *h.eps};
}

bool ModelBuilder::isSparse(int64_t layer) const {
  if (family.traits.isOneBlock && layers.mixerOf(layer) != Mixer::None)
    return false;
  return h.sparse.value_or(false) && *h.experts != 0 && layer >= h.firstDense.value_or(0) &&
         (layer + 1) % h.sparseStep.value_or(1) == 0 && !llvm::is_contained(h.denseLayers, layer);
}

llvm::Expected<LayerType> ModelBuilder::buildLayerType(int64_t layer) const {
  LayerType kind;
  if (h.heads) {
    auto attention = this->attention(layer);
    if (!attention)
      return attention.takeError();
    kind.attention = std::move(*attention);
  }
  kind.ffn = std::monostate();
  kind.mixes = layers.mixerOf(layer) != Mixer::None;
  if (family.traits.isOneBlock && kind.mixes) {
    if (layers.mixerOf(layer) == Mixer::Attention)
      kind.name = "attention";
  } else if (isSparse(layer)) {
    auto experts = readExperts(h, family.traits, keyNames,
                               [&](int64_t inner, bool bias) { return dense(inner, bias); });
    if (!experts)
      return experts.takeError();
    kind.ffn = *experts;
    kind.name = "sparse";
    if (family.traits.denseBesideExperts)
      std::get<SparseConfig>(kind.ffn).dense = dense(innerOf(layer), h.mlpBias.value_or(false));
  } else if (h.inner) {
    kind.ffn = dense(innerOf(layer), h.mlpBias.value_or(false));
    kind.name = "dense";
  }
  if (h.perLayerDim.value_or(0) != 0)
    kind.perLayer = PerLayerConfig{*h.perLayerDim, activation};
  llvm::StringRef separator = kind.name.empty() ? "" : "_";
  if (layers.usesSlidingWindow(layer))
    kind.name += "_sliding";
  if (layers.mixerOf(layer) == Mixer::ShortConv) {
    kind.stateMixer = ShortConvConfig{*h.convTaps, h.convBias.value_or(false)};
    kind.name += "_conv";
  }
  if (layers.mixerOf(layer) == Mixer::Mamba) {
    kind.stateMixer = mamba();
    kind.name += (separator + "mamba").str();
  }
  if (layers.mixerOf(layer) == Mixer::DeltaNet) {
    kind.stateMixer = deltaNet();
    kind.name += (separator + "delta").str();
  }
  if (layers.sharesCache(layer))
    kind.name += "_shared";
  if (h.scalesByLayer.value_or(false))
    kind.name += "_" + std::to_string(layer);
  return kind;
}

llvm::Error ModelBuilder::addLayers(ModelConfig &model) const {
  std::map<std::tuple<bool, bool, bool, Mixer, int64_t>, unsigned> layerTypes;
  for (int64_t layer = 0; layer < *h.layers; ++layer) {
    auto [entry, isNew] = layerTypes.try_emplace({isSparse(layer), layers.usesSlidingWindow(layer),
                                                  layers.sharesCache(layer), layers.mixerOf(layer),
                                                  scoreDivisor(layer)},
                                                 model.layerTypes.size());
    if (isNew) {
      auto kind = buildLayerType(layer);
      if (!kind)
        return kind.takeError();
      model.layerTypes.push_back(std::move(*kind));
    }
    model.layers.push_back(entry->second);
  }
  return llvm::Error::success();
}

llvm::Expected<ModelConfig> ModelBuilder::build() {
  if (llvm::Error error = layers.readPattern())
    return std::move(error);
  if (llvm::Error error = applyFamily())
    return std::move(error);
  if (llvm::Error error = deriveSizes(h, family.traits, keyNames))
    return std::move(error);
  if (llvm::Error error = readActivation())
    return std::move(error);
  if (llvm::Error error = layers.readLayers())
    return std::move(error);
  if (llvm::Error error = checkQuantization())
    return std::move(error);
  ModelConfig model;
  model.family = family.name;
  model.path = path.str();
  model.vocab = *h.vocab;
  model.hidden = *h.hidden;
  model.maxPositions = *h.maxPositions;
  model.tiedHead = h.tiedHead.value_or(false);
  model.norm = norm();
  model.block = block();
  model.embeddingMultiplier = h.embeddingMultiplier.value_or(
      h.scalesEmbedding.value_or(family.traits.scalesEmbedding) ? std::sqrt(double(*h.hidden))
                                                                : 1.0);
  model.logitMultiplier = h.logitMultiplier.value_or(1) / h.logitDivisor.value_or(1);
  model.logitSoftcap = h.logitSoftcap;
  if (family.traits.learnedPositions)
    model.positions = LearnedPositions{*h.maxPositions};
  model.sinusoidOffset = family.traits.sinusoidOffset;
  // Rows before the offset are not positions.
  if (model.sinusoidOffset && h.padding.value_or(0) >= *model.sinusoidOffset)
    model.paddingIdx = h.padding;
  model.embeddingNorm = family.traits.embeddingNorm;
  model.perLayerVocab = h.perLayerVocab.value_or(0);
  model.numNextnPredictLayers = h.numNextnPredictLayers.value_or(0);
  model.generation.bos = h.bos;
  model.generation.eos = h.eos;
  model.names = family.names;
  if (llvm::Error error = readType(model))
    return std::move(error);
  if (llvm::Error error = addLayers(model))
    return std::move(error);
  return model;
}

} // namespace

llvm::Expected<ModelConfig> buildModelConfig(Hyperparameters h, const Family &family,
                                             const KeyNames &names) {
  return ModelBuilder(std::move(h), family, names).build();
}

static llvm::Error checkTokens(const ModelConfig &model, llvm::StringRef path) {
  std::vector<int64_t> ids = model.generation.eos;
  if (model.generation.bos)
    ids.push_back(*model.generation.bos);
  for (int64_t id : ids)
    if (id >= model.vocab)
      return inputError(path,
                        "names the token " + llvm::Twine(id) +
                            " as BOS or EOS, but the vocabulary has " + llvm::Twine(model.vocab),
                        "use an id of the vocabulary");
  return llvm::Error::success();
}

llvm::Error finishModelConfig(ModelConfig &model, llvm::StringRef path) {
  llvm::sort(model.generation.eos);
  model.generation.eos.erase(llvm::unique(model.generation.eos), model.generation.eos.end());
  llvm::sort(model.ignored, [](const IgnoredKey &a, const IgnoredKey &b) {
    return std::tie(a.file, a.key) < std::tie(b.file, b.key);
  });
  return checkTokens(model, path);
}

} // namespace mica
