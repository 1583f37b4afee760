#include "frontend/config/ModelBuilder.h"

#include "frontend/config/RopeReader.h"
#include "frontend/support/InputError.h"
#include "frontend/support/Json.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <cmath>
#include <map>

namespace mica {
namespace {

constexpr int64_t maxExpertsInAll = 1 << 18;

class ModelBuilder {
public:
  ModelBuilder(Hyperparameters h, const Family &family, const KeyNames &names)
      : h(std::move(h)), family(family), keyNames(names), path(names.path()) {}

  llvm::Expected<ModelConfig> build();

private:
  llvm::Error deriveSizes();
  llvm::Error deriveKvHeads();
  llvm::Error checkMamba();
  llvm::Error checkDeltaNet() const;
  llvm::Error readAttentionLayers();
  llvm::Error readLayerTypes();
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
  llvm::Expected<SparseConfig> sparse() const;
  llvm::Expected<LayerKind> layerKind(int64_t layer) const;
  llvm::Error addLayers(ModelConfig &model) const;
  bool isSparse(int64_t layer) const;
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
  Activation activation = Activation::Silu;
  std::vector<bool> usesSlidingWindow; ///< per layer
  std::vector<Mixer> mixers;           ///< per layer
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

/// Derives the properties of attention layers from those of all layers.
llvm::Error ModelBuilder::deriveKvHeads() {
  if (h.kvHeadsOfLayers.size() == 1)
    h.kvHeadsOfLayers.assign(*h.layers, h.kvHeadsOfLayers.front());
  if (h.kvHeadsOfLayers.empty())
    return llvm::Error::success();
  if (static_cast<int64_t>(h.kvHeadsOfLayers.size()) != *h.layers)
    return wrong("has " + llvm::Twine(h.kvHeadsOfLayers.size()) +
                 " numbers of key/value heads for " + llvm::Twine(*h.layers) + " layers");
  for (int64_t heads : h.kvHeadsOfLayers) {
    if (heads == 0)
      continue;
    if (h.kvHeads.value_or(heads) != heads)
      return wrong("has layers with " + llvm::Twine(*h.kvHeads) + " and with " +
                       llvm::Twine(heads) + " key/value heads, only one number is supported",
                   hints::otherModel);
    h.kvHeads = heads;
  }
  return llvm::Error::success();
}

/// A list of as many numbers; null: they stay as they are.
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

llvm::Error ModelBuilder::checkMamba() {
  double inner =
      h.mambaInner ? double(*h.mambaInner) : *h.mambaMultiple * static_cast<double>(*h.hidden);
  if (!h.mambaHeadDim)
    h.mambaHeadDim = static_cast<int64_t>(inner) / *h.mambaHeads;
  if (static_cast<int64_t>(inner) != *h.mambaHeads * *h.mambaHeadDim)
    return wrong("has " + llvm::Twine(*h.mambaHeads) + " Mamba heads of size " +
                 llvm::Twine(*h.mambaHeadDim) + ", expected a size of " +
                 llvm::Twine(static_cast<int64_t>(inner)) + " in all");
  if (*h.mambaHeads % *h.mambaGroups == 0)
    return llvm::Error::success();
  return wrong("has " + llvm::Twine(*h.mambaHeads) + " Mamba heads, not a multiple of its " +
               llvm::Twine(*h.mambaGroups) + " groups");
}

llvm::Error ModelBuilder::checkDeltaNet() const {
  if (*h.deltaValueHeads % *h.deltaKeyHeads == 0)
    return llvm::Error::success();
  return wrong("has " + llvm::Twine(*h.deltaValueHeads) +
               " value heads of linear attention, not a multiple of its " +
               llvm::Twine(*h.deltaKeyHeads) + " key heads");
}

llvm::Error ModelBuilder::deriveSizes() {
  if (family.check)
    if (llvm::Error error = family.check(h, path))
      return error;
  if (family.derive)
    family.derive(h);
  if (llvm::Error error = readMultipliers(h.mambaMultipliers, "ssm_multipliers", mambaMultipliers))
    return error;
  if (llvm::Error error = readMultipliers(h.mlpMultipliers, "mlp_multipliers", mlpMultipliers))
    return error;
  if (family.traits.otherMixer == Mixer::Mamba)
    if (llvm::Error error = checkMamba())
      return error;
  if (family.traits.otherMixer == Mixer::DeltaNet)
    if (llvm::Error error = checkDeltaNet())
      return error;
  if (!h.heads) // no layer has attention
    return llvm::Error::success();
  if (llvm::Error error = deriveKvHeads())
    return error;
  if (!h.kvHeads)
    h.kvHeads = h.heads;
  if (*h.heads % *h.kvHeads != 0)
    return wrong("has " + llvm::Twine(*h.heads) + " attention heads, not a multiple of its " +
                 llvm::Twine(*h.kvHeads) + " key/value heads");
  if (!h.headDim) {
    if (*h.hidden % *h.heads != 0) {
      std::optional<std::string> key = keyNames.keyOf(&Hyperparameters::headDim);
      return wrong("has the hidden size " + llvm::Twine(*h.hidden) + ", not a multiple of its " +
                       llvm::Twine(*h.heads) + " heads" +
                       (key ? ", and no key " + inQuotes(*key) : std::string()),
                   key ? llvm::StringLiteral("add it") : hints::correct);
    }
    h.headDim = *h.hidden / *h.heads;
  }
  if (family.traits.rope && *h.headDim % 2 != 0)
    return wrong("has the head size " + llvm::Twine(*h.headDim) +
                 ", but rope rotates pairs: it must be even");
  return llvm::Error::success();
}

/// Finds the attention layers by their indices, their key/value heads or an interval. Without any,
/// all layers are Mamba layers if the family has them, or attention layers if it has convolutions.
llvm::Error ModelBuilder::readAttentionLayers() {
  Mixer other = family.traits.otherMixer;
  bool needsRule = other == Mixer::ShortConv && !h.attentionLayers;
  mixers.assign(*h.layers, needsRule ? Mixer::Attention : other);
  for (auto [layer, heads] : llvm::enumerate(h.kvHeadsOfLayers))
    mixers[layer] = heads == 0 ? other : Mixer::Attention;
  for (int64_t layer = 0; h.attentionInterval && layer < *h.layers; ++layer)
    if ((layer + 1) % *h.attentionInterval == 0)
      mixers[layer] = Mixer::Attention;
  if (!h.attentionLayers)
    return llvm::Error::success();
  for (const llvm::json::Value &index : *h.attentionLayers) {
    std::optional<int64_t> layer = index.getAsInteger();
    if (!layer || *layer < 0 || *layer >= *h.layers)
      return wrong("has " + shown(index) +
                   " among the layers with attention, expected indices of " +
                   llvm::Twine(*h.layers) + " layers");
    mixers[*layer] = Mixer::Attention;
  }
  return llvm::Error::success();
}

/// The names of layer types in transformers 5 and older versions.
static llvm::ArrayRef<std::pair<llvm::StringLiteral, Mixer>> layerTypesOf(Mixer otherMixer) {
  using Row = std::pair<llvm::StringLiteral, Mixer>;
  static constexpr Row full[] = {{"full_attention", Mixer::Attention}};
  static constexpr Row conv[] = {{"full_attention", Mixer::Attention}, {"conv", Mixer::ShortConv}};
  static constexpr Row mamba[] = {{"full_attention", Mixer::Attention},
                                  {"attention", Mixer::Attention},
                                  {"linear_attention", Mixer::Mamba},
                                  {"mamba", Mixer::Mamba}};
  static constexpr Row delta[] = {{"full_attention", Mixer::Attention},
                                  {"linear_attention", Mixer::DeltaNet}};
  switch (otherMixer) {
  case Mixer::Attention:
    return full;
  case Mixer::ShortConv:
    return conv;
  case Mixer::Mamba:
    return mamba;
  case Mixer::DeltaNet:
    return delta;
  }
  llvm_unreachable("all mixers are handled above");
}

/// For messages: "A is", "A and B are", "A, B and C are".
static std::string listOf(llvm::ArrayRef<std::pair<llvm::StringLiteral, Mixer>> rows,
                          bool hasWindow) {
  llvm::SmallVector<llvm::StringRef> names;
  for (const auto &[name, mixer] : rows)
    names.push_back(name);
  if (hasWindow)
    names.push_back("sliding_attention");
  llvm::StringRef last = names.pop_back_val();
  return names.empty() ? (last + " is").str()
                       : (llvm::join(names, ", ") + " and " + last + " are").str();
}

/// transformers 5 writes a type per layer; older files have a rule.
llvm::Error ModelBuilder::readLayerTypes() {
  if (llvm::Error error = readAttentionLayers())
    return error;
  bool hasWindow =
      h.window.value_or(0) > 0 && h.useWindow.value_or(true) && family.traits.usesSlidingWindow;
  usesSlidingWindow.resize(*h.layers);
  for (int64_t layer = 0; layer < *h.layers; ++layer)
    usesSlidingWindow[layer] = hasWindow && family.traits.usesSlidingWindow(h, layer);
  if (!h.layerTypes)
    return llvm::Error::success();
  if (static_cast<int64_t>(h.layerTypes->size()) != *h.layers)
    return wrong("has " + llvm::Twine(h.layerTypes->size()) + " \"layer_types\" for " +
                     llvm::Twine(*h.layers) + " layers",
                 "name one for each layer");
  auto names = layerTypesOf(family.traits.otherMixer);
  for (auto [layer, type] : llvm::enumerate(*h.layerTypes)) {
    usesSlidingWindow[layer] = type == llvm::json::Value("sliding_attention") && hasWindow;
    const auto *known =
        llvm::find_if(names, [&](const auto &row) { return type == llvm::json::Value(row.first); });
    if (known != names.end())
      mixers[layer] = known->second;
    else if (usesSlidingWindow[layer])
      mixers[layer] = Mixer::Attention;
    else
      return wrong("has the layer type " + shown(type) + " in \"layer_types\", only " +
                       listOf(names, hasWindow) + " supported",
                   hints::otherModel);
  }
  return llvm::Error::success();
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
  const llvm::json::Value *method = h.quantization ? h.quantization->get("quant_method") : nullptr;
  if (!h.quantization || (method && *method == llvm::json::Value("mxfp4")))
    return llvm::Error::success();
  return wrong("has the method " + (method ? shown(*method) : "of no name") +
                   " in \"quantization_config\", only \"mxfp4\" is supported",
               hints::otherModel);
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
  AttentionConfig attention;
  attention.heads = *h.heads;
  attention.kvHeads = *h.kvHeads;
  attention.headDim = *h.headDim;
  attention.valueDim = h.valueDim.value_or(*h.headDim);
  if (h.latentRank)
    attention.latent = LatentConfig{h.queryRank.value_or(0), *h.latentRank, *h.qkNopeHeadDim,
                                    *h.qkRopeHeadDim, h.attentionBias.value_or(false)};
  // Keys are multiplied by what their scores are.
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
  if (usesSlidingWindow[layer])
    attention.window = h.window;
  if (!traits.rope || !h.usesRope.value_or(true))
    return attention;
  auto rope =
      readRope(h, traits, h.qkRopeHeadDim.value_or(*h.headDim), usesSlidingWindow[layer], keyNames);
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
          .besideAttention = family.traits.besideAttention,
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

llvm::Expected<SparseConfig> ModelBuilder::sparse() const {
  if (*h.expertsPerToken == 0 || *h.expertsPerToken > *h.experts)
    return wrong("chooses " + llvm::Twine(*h.expertsPerToken) + " experts per token of " +
                 llvm::Twine(*h.experts));
  // Every expert is a named tensor: published models have about ten thousand.
  if (*h.experts * *h.layers > maxExpertsInAll)
    return wrong("has " + llvm::Twine(*h.experts) + " experts in each of " +
                     llvm::Twine(*h.layers) + " layers, at most " + llvm::Twine(maxExpertsInAll) +
                     " in total are supported",
                 hints::otherModel);
  SparseConfig sparse;
  sparse.experts = *h.experts;
  sparse.expertsPerToken = *h.expertsPerToken;
  sparse.normalize = h.normalizeGate.value_or(false) &&
                     (sparse.expertsPerToken > 1 || family.traits.normalizesSingleExpert);
  sparse.expert = dense(*h.expertInner, family.traits.expertBias);
  if (h.gateLimit)
    sparse.expert.clamp = {*h.gateAlpha, *h.gateLimit};
  sparse.sharedExperts = h.sharedExperts.value_or(0);
  sparse.shared = dense(*h.expertInner, h.mlpBias.value_or(false));
  if (h.sharedInner) {
    sparse.sharedExperts = 1;
    sparse.shared.inner = *h.sharedInner;
  }
  sparse.sharedGate = family.traits.sharedGate;
  sparse.scoring = family.traits.scoring;
  sparse.routerBias = family.traits.routerBias;
  sparse.correctionBias = h.correctsChoice.value_or(family.traits.correctionBias);
  sparse.multiplier = h.routedMultiplier.value_or(1);
  if (h.groups) {
    sparse.groups = *h.groups;
    sparse.topkGroup = h.topkGroup.value_or(*h.groups);
    sparse.groupScoring = family.traits.groupScoring;
    if (*h.experts % *h.groups != 0 || sparse.topkGroup > *h.groups)
      return wrong("keeps " + llvm::Twine(sparse.topkGroup) + " of " + llvm::Twine(*h.groups) +
                   " groups of " + llvm::Twine(*h.experts) + " experts");
  }
  return sparse;
}

bool ModelBuilder::isSparse(int64_t layer) const {
  return h.sparse.value_or(false) && *h.experts != 0 && layer >= h.firstDense.value_or(0) &&
         (layer + 1) % h.sparseStep.value_or(1) == 0 && !llvm::is_contained(h.denseLayers, layer);
}

llvm::Expected<LayerKind> ModelBuilder::layerKind(int64_t layer) const {
  LayerKind kind;
  if (h.heads) {
    auto attention = this->attention(layer);
    if (!attention)
      return attention.takeError();
    kind.attention = std::move(*attention);
  }
  kind.ffn = std::monostate();
  if (isSparse(layer)) {
    auto experts = sparse();
    if (!experts)
      return experts.takeError();
    kind.ffn = *experts;
    kind.name = "sparse";
  } else if (h.inner) {
    kind.ffn = dense(*h.inner, h.mlpBias.value_or(false));
    kind.name = "dense";
  }
  llvm::StringRef separator = kind.name.empty() ? "" : "_";
  if (usesSlidingWindow[layer])
    kind.name += "_sliding";
  if (mixers[layer] == Mixer::ShortConv) {
    kind.conv = ShortConvConfig{*h.convTaps, h.convBias.value_or(false)};
    kind.name += "_conv";
  }
  if (mixers[layer] == Mixer::Mamba) {
    kind.mamba = mamba();
    kind.name += (separator + "mamba").str();
  }
  if (mixers[layer] == Mixer::DeltaNet) {
    kind.delta = deltaNet();
    kind.name += (separator + "delta").str();
  }
  if (h.scalesByLayer.value_or(false))
    kind.name += "_" + std::to_string(layer);
  return kind;
}

llvm::Error ModelBuilder::addLayers(ModelConfig &model) const {
  std::map<std::tuple<bool, bool, Mixer, int64_t>, unsigned> kinds;
  for (int64_t layer = 0; layer < *h.layers; ++layer) {
    auto [entry, isNew] = kinds.try_emplace(
        {isSparse(layer), usesSlidingWindow[layer], mixers[layer], scoreDivisor(layer)},
        model.kinds.size());
    if (isNew) {
      auto kind = layerKind(layer);
      if (!kind)
        return kind.takeError();
      model.kinds.push_back(std::move(*kind));
    }
    model.layers.push_back(entry->second);
  }
  return llvm::Error::success();
}

llvm::Expected<ModelConfig> ModelBuilder::build() {
  if (llvm::Error error = deriveSizes())
    return std::move(error);
  if (llvm::Error error = readActivation())
    return std::move(error);
  if (llvm::Error error = readLayerTypes())
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
                        "name one of the vocabulary");
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
