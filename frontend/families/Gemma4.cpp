#include "frontend/families/Families.h"
#include "frontend/support/InputError.h"
#include "frontend/support/Json.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace mica {

using H = Hyperparameters;

static constexpr llvm::StringLiteral fullType = "full_attention", windowType = "sliding_attention";

template <bool within> static constexpr NamingTable makeNames() {
  NamingTable names = transformersNames;
  names.postAttentionNorm = "post_attention_layernorm";
  names.ffnNorm = "pre_feedforward_layernorm";
  names.postFfnNorm = "post_feedforward_layernorm";
  names.layerScalar = "layer_scalar";
  names.router = "router.proj";
  names.routerNorm = "router.scale";
  names.expertScales = "router.per_expert_scale";
  names.expert = "experts";
  names.stackedGateUp = "gate_up_proj";
  names.stackedDown = "down_proj";
  names.gateUpInterleaved = false;
  names.expertsNorm = "pre_feedforward_layernorm_2";
  names.postDenseNorm = "post_feedforward_layernorm_1";
  names.postExpertsNorm = "post_feedforward_layernorm_2";
  names.perLayerTable = "model.embed_tokens_per_layer";
  names.perLayerProjection = "model.per_layer_model_projection";
  names.perLayerNorm = "model.per_layer_projection_norm";
  names.perLayerGate = "per_layer_input_gate";
  names.perLayerOut = "per_layer_projection";
  names.postPerLayerNorm = "post_per_layer_input_norm";
  if (within) {
    names.embedding = "model.language_model.embed_tokens";
    names.layers = "model.language_model.layers";
    names.finalNorm = "model.language_model.norm";
    names.perLayerTable = "model.language_model.embed_tokens_per_layer";
    names.perLayerProjection = "model.language_model.per_layer_model_projection";
    names.perLayerNorm = "model.language_model.per_layer_projection_norm";
  }
  return names;
}
template <bool within> static constexpr NamingTable names = makeNames<within>();

static constexpr KeyRule own[] = {
    {"head_dim", &H::headDim, ranges::headDim, int64_t(256)},
    {"num_key_value_heads", &H::kvHeads, ranges::heads, int64_t(4)},
    {"global_head_dim", &H::globalHeadDim, ranges::headDim, Unset()},
    optionalKey("num_global_key_value_heads", &H::globalKvHeads, ranges::heads),
    {"per_layer_config", &H::layerOverrides, {}, Unset()},
    {"attention_bias", &H::attentionBias, {}, false},
    {"attention_k_eq_v", &H::valuesAreKeys, {}, false},
    {"num_kv_shared_layers", &H::sharedLayers, {0, ranges::layers.max}, int64_t(0)},
    {"use_double_wide_mlp", &H::doublesInner, {}, false},
    {"hidden_size_per_layer_input", &H::perLayerDim, {0, ranges::width.max}, int64_t(256)},
    {"vocab_size_per_layer_input", &H::perLayerVocab, {0, ranges::vocab.max}, int64_t(262144)},
    {"enable_moe_block", &H::sparse, {}, false},
    optionalKey("num_experts", &H::experts, ranges::experts),
    optionalKey("top_k_experts", &H::expertsPerToken, ranges::experts),
    optionalKey("moe_intermediate_size", &H::expertInner, ranges::width),
    optionalKey("expert_intermediate_size", &H::expertInner, ranges::width), // the older name
    {"sliding_window", &H::window, {1, ranges::window.max}, int64_t(512)},
    {"hidden_activation", &H::activation, {}, Unset()},
    {"tie_word_embeddings", &H::tiedHead, {}, true},
    {"final_logit_softcapping", &H::logitSoftcap, ranges::multiplier, Unset(), Null::Allowed},
};
static constexpr FixedKey fixed[] = {
    {"hidden_act", R"(["gelu_pytorch_tanh"])"},
    // Only images are attended to in both directions.
    {"use_bidirectional_attention", R"([null, "vision"])"},
};

static bool hasWindow(const Hyperparameters &h, int64_t layer) {
  if (!h.windowOfLayers.empty())
    return h.windowOfLayers[layer];
  return (layer + 1) % 6 != 0 && layer + 1 != *h.layers;
}

/// The type of each layer, as transformers completes them. Other types are rejected later.
static std::vector<llvm::StringRef> typesOf(const Hyperparameters &h) {
  std::vector<llvm::StringRef> types;
  for (int64_t layer = 0; layer < *h.layers; ++layer)
    types.push_back(hasWindow(h, layer) ? windowType : fullType);
  if (h.layerTypes && static_cast<int64_t>(h.layerTypes->size()) == *h.layers)
    for (auto [type, value] : llvm::zip_equal(types, *h.layerTypes))
      type = value.getAsString().value_or("");
  return types;
}

/// The rope of transformers if a config has no rope keys.
static const llvm::json::Object &defaultRope() {
  static const llvm::json::Object rope{
      {fullType, llvm::json::Object{{"rope_type", "proportional"},
                                    {"partial_rotary_factor", 0.25},
                                    {"rope_theta", 1e6}}},
      {windowType, llvm::json::Object{{"rope_type", "default"}, {"rope_theta", 1e4}}}};
  return rope;
}

/// Sizes of the heads of layers without a window, if they differ from those of the others.
struct GlobalHeads {
  std::optional<int64_t> headDim, kvHeads;
};

/// Reads per_layer_config, with which transformers replaces the keys of global heads: an object of
/// sizes for every layer without a window, by its index.
static llvm::Expected<GlobalHeads> readOverrides(const Hyperparameters &h, llvm::StringRef path) {
  constexpr llvm::StringLiteral key = "per_layer_config";
  GlobalHeads all;
  bool isFirst = true;
  std::vector<llvm::StringRef> types = typesOf(h);
  std::vector<GlobalHeads> layers(types.size());
  for (const auto &[index, value] : *h.layerOverrides) {
    std::string name = (key + "." + index.str()).str();
    size_t layer;
    const llvm::json::Object *sizes = value.getAsObject();
    if (!sizes || llvm::StringRef(index).getAsInteger(10, layer) || layer >= types.size())
      return inputError(path,
                        "has " + inQuotes(name) + ", expected an object for the index of a layer",
                        hints::correct);
    for (const auto &[what, number] : *sizes) {
      bool isDim = what == "head_dim";
      if (types[layer] == windowType || (!isDim && what != "num_key_value_heads"))
        return inputError(path,
                          "has " + inQuotes(name + "." + what.str()) +
                              ", only head_dim and num_key_value_heads of layers without a window "
                              "are supported",
                          hints::otherModel);
      auto size = readInteger(path, name + "." + what.str(), number,
                              isDim ? ranges::headDim : ranges::heads);
      if (!size)
        return size.takeError();
      (isDim ? layers[layer].headDim : layers[layer].kvHeads) = *size;
    }
  }
  for (auto [type, layer] : llvm::zip_equal(types, layers)) {
    if (type == windowType)
      continue;
    if (!isFirst && (layer.headDim != all.headDim || layer.kvHeads != all.kvHeads))
      return inputError(path,
                        "has different sizes for layers without a window in " + inQuotes(key) +
                            ", only one is supported",
                        hints::otherModel);
    all = layer;
    isFirst = false;
  }
  return all;
}

/// Layers that read the caches of others need one of their own type to read from.
static llvm::Error checkShared(const Hyperparameters &h, llvm::StringRef path) {
  std::vector<llvm::StringRef> types = typesOf(h);
  auto shared = static_cast<size_t>(*h.sharedLayers);
  size_t numOwn = types.size() - std::min(shared, types.size());
  llvm::ArrayRef<llvm::StringRef> withCaches = llvm::ArrayRef(types).take_front(numOwn);
  for (llvm::StringRef type : llvm::ArrayRef(types).drop_front(numOwn))
    if (!llvm::is_contained(withCaches, type))
      return inputError(path,
                        "has \"num_kv_shared_layers\": " + llvm::Twine(*h.sharedLayers) +
                            ", which leaves no layer of the type " + inQuotes(type) +
                            " that computes keys and values",
                        hints::correct);
  return llvm::Error::success();
}

static llvm::Error checkRope(const Hyperparameters &h, llvm::StringRef path) {
  if (!h.ropeParameters)
    return llvm::Error::success();
  std::vector<llvm::StringRef> types = typesOf(h);
  for (llvm::StringRef type : {fullType, windowType})
    if (llvm::is_contained(types, type) && !h.ropeParameters->getObject(type))
      return inputError(path, "has no object " + inQuotes(type) + " in \"rope_parameters\"",
                        "add it");
  return llvm::Error::success();
}

static llvm::Error check(const Hyperparameters &h, llvm::StringRef path) {
  if (h.layerOverrides && (h.globalHeadDim || h.globalKvHeads))
    return inputError(path, "has both \"per_layer_config\" and keys of global heads", "keep one");
  if (h.layerOverrides)
    if (auto sizes = readOverrides(h, path); !sizes)
      return sizes.takeError();
  if (typesOf(h).back() == windowType)
    return inputError(path,
                      "has the layer type " + inQuotes(windowType) +
                          " for its last layer, which is without a window in this family",
                      hints::correct);
  if (*h.sparse && !(h.experts && h.expertsPerToken && h.expertInner))
    return inputError(path,
                      "has \"enable_moe_block\": true, but not all of \"num_experts\", "
                      "\"top_k_experts\" and \"moe_intermediate_size\"",
                      "add them");
  if (*h.perLayerDim != 0 && *h.perLayerVocab < *h.vocab)
    return inputError(path,
                      "has \"vocab_size_per_layer_input\": " + llvm::Twine(*h.perLayerVocab) +
                          ", less than its \"vocab_size\"",
                      hints::correct);
  if (llvm::Error error = checkShared(h, path))
    return error;
  return checkRope(h, path);
}

static void derive(Hyperparameters &h) {
  if (h.layerOverrides) {
    GlobalHeads global = llvm::cantFail(readOverrides(h, ""));
    h.globalHeadDim = global.headDim;
    h.globalKvHeads = global.kvHeads;
  } else {
    h.globalHeadDim = h.globalHeadDim.value_or(512);
    // In config.json, the key has an effect only on keys that are values.
    if (!h.ropeKeys && !*h.valuesAreKeys)
      h.globalKvHeads.reset();
  }
  h.scoreScale = 1;
  h.normalizeGate = true;
  if (!h.ropeParameters && !h.ropeScaling)
    h.ropeParameters = &defaultRope();
}

static Family describe(llvm::StringLiteral name, llvm::ArrayRef<llvm::StringLiteral> architectures,
                       const NamingTable *names, const TextPart *textPart = nullptr) {
  static const llvm::ArrayRef<KeyRule> keys[] = {own, commonKeys()};
  return {
      .name = name,
      .architectures = architectures,
      .keys = keys,
      .fixed = fixed,
      .traits = {.normRounding = NormRounding::AfterWeight,
                 .qkNorm = QkNorm::PerHead,
                 .postNorms = true,
                 .valueNorm = true,
                 .layerScalar = true,
                 .denseBesideExperts = true,
                 .activation = Activation::GeluTanh,
                 .scalesEmbedding = true,
                 .defaultTheta = 1e6,
                 .defaultLocalTheta = 1e4,
                 .proportionalRope = true,
                 .usesSlidingWindow = hasWindow},
      .names = names,
      .derive = derive,
      .check = check,
      .textPart = textPart,
  };
}

// Gemma 3 with norms of values, heads of another size in layers without a window, whose rope
// rotates some pairs of a head, and a factor for each layer; in some models keys that are values as
// well, layers that share caches, embeddings of every layer, and experts beside a dense network.
llvm::Expected<const Family *> chooseGemma4Text(const FamilyEvidence &) {
  static constexpr llvm::StringLiteral architectures[] = {"Gemma4ForCausalLM"};
  static const Family family = describe("gemma4_text", architectures, &names<false>);
  return &family;
}

// The text part of Gemma 4 with encoders of images and sounds, which are omitted.
llvm::Expected<const Family *> chooseGemma4(const FamilyEvidence &) {
  static constexpr KeyRule keysAround[] = {{"tie_word_embeddings", &H::tiedHead, {}, true}};
  static constexpr llvm::StringLiteral ofMedia = "token of an image, a video or a sound";
  static constexpr IgnoredKeyRow ignoredAround[] = {
      {"audio_token_id", ofMedia},
      {"boa_token_id", ofMedia},
      {"boi_token_id", ofMedia},
      {"eoa_token_id", ofMedia},
      {"eoa_token_index", ofMedia},
      {"eoi_token_id", ofMedia},
      {"image_token_id", ofMedia},
      {"video_token_id", ofMedia},
      {"vision_soft_tokens_per_image", "number of tokens of an image"},
  };
  static constexpr IgnoredKeyRow leftOutParts[] = {{"audio_config", reasons::encoder},
                                                   {"vision_config", reasons::encoder}};
  static constexpr TextPart textPart = {"text_config", "gemma4_text", keysAround, ignoredAround,
                                        leftOutParts};
  static constexpr llvm::StringLiteral architectures[] = {"Gemma4ForConditionalGeneration"};
  static const Family family = describe("gemma4", architectures, &names<true>, &textPart);
  return &family;
}

static constexpr KeyRule ggufOwn[] = {
    {"feed_forward_length", &H::innerOfLayers, ranges::width},
    {"attention.head_count_kv", &H::kvHeadsOfLayers, ranges::heads},
    {"attention.key_length", &H::globalHeadDim, ranges::headDim},
    {"attention.key_length_swa", &H::headDim, ranges::headDim},
    {"attention.sliding_window", &H::window, {1, ranges::window.max}},
    {"attention.shared_kv_layers", &H::sharedLayers, {0, ranges::layers.max}, int64_t(0)},
    {"embedding_length_per_layer_input", &H::perLayerDim, {0, ranges::width.max}},
    gguf::thetaKey,
    {"rope.freq_base_swa", &H::localTheta, ranges::theta},
    {"final_logit_softcapping", &H::logitSoftcap, ranges::multiplier, Unset()},
    {"expert_count", &H::experts, ranges::experts, Unset()},
    {"expert_used_count", &H::expertsPerToken, ranges::experts, Unset()},
    {"expert_feed_forward_length", &H::expertInner, ranges::width, Unset()},
};
static constexpr llvm::ArrayRef<KeyRule> ggufKeys[] = {ggufOwn, gguf::sizeKeys, gguf::rmsNormKeys};
static constexpr llvm::StringLiteral ggufPattern = "attention.sliding_window_pattern";
static constexpr IgnoredKeyRow ggufUsedKeys[] = {
    {ggufPattern, reasons::used},
    {"attention.value_length_swa", reasons::used},
    {"rope.dimension_count_swa", reasons::used},
};
static constexpr GgufModule ggufModelModules[] = {
    {"per_layer_token_embd", &NamingTable::perLayerTable},
    {"per_layer_model_proj", &NamingTable::perLayerProjection},
    {"per_layer_proj_norm", &NamingTable::perLayerNorm},
};
static constexpr llvm::StringLiteral weight = ".weight", nothing = "";
static constexpr GgufModule ggufOwnModules[] = {
    {.name = "layer_output_scale", .module = &NamingTable::layerScalar, .part = weight},
    {"inp_gate", &NamingTable::perLayerGate},
    {"proj", &NamingTable::perLayerOut},
    {"post_norm", &NamingTable::postPerLayerNorm},
    {"pre_ffw_norm_2", &NamingTable::expertsNorm},
    {"post_ffw_norm_1", &NamingTable::postDenseNorm},
    {"post_ffw_norm_2", &NamingTable::postExpertsNorm},
    {.name = "ffn_gate_inp.scale", .module = &NamingTable::routerNorm, .part = nothing},
    {.name = "ffn_down_exps.scale", .module = &NamingTable::expertScales, .part = nothing},
    {"ffn_gate_up_exps", &NamingTable::stackedGateUp, GgufOwner::AllExperts, false, weight},
    {"ffn_down_exps", &NamingTable::stackedDown, GgufOwner::AllExperts, false, weight},
};

// Gate and up may be separate tensors.
static constexpr NamingTable ggufSeparateNames = changed(names<false>, [](NamingTable &names) {
  names.expert = "experts.*";
  names.stackedGateUp = "";
  names.stackedDown = "";
});

/// Sets `common` to the one of `numbers`, a number for each layer, that all layers with `isOne`
/// have; to nothing if there are no such layers.
static llvm::Error readCommon(const GgufKeys &keys, llvm::StringRef key,
                              llvm::ArrayRef<int64_t> numbers,
                              llvm::function_ref<bool(size_t)> isOne,
                              std::optional<int64_t> &common) {
  for (auto [layer, number] : llvm::enumerate(numbers)) {
    if (!isOne(layer))
      continue;
    if (common.value_or(number) != number)
      return keys.wrongValue(key, "one number for all layers of a type", hints::otherModel);
    common = number;
  }
  return llvm::Error::success();
}

static llvm::Error readGgufWindows(const GgufKeys &keys, Hyperparameters &h) {
  const llvm::json::Value *pattern = keys.find(ggufPattern);
  if (!pattern)
    return keys.missingKey(ggufPattern, "which layers with a window need");
  const llvm::json::Array *list = pattern->getAsArray();
  // A list of equal elements is one.
  if (auto all = pattern->getAsBoolean())
    h.windowOfLayers.assign(*h.layers, *all);
  else if (list && static_cast<int64_t>(list->size()) == *h.layers)
    for (const llvm::json::Value &flag : *list)
      h.windowOfLayers.push_back(flag.getAsBoolean().value_or(false));
  else
    return keys.wrongValue(ggufPattern,
                           "true or false for each of " + llvm::Twine(*h.layers) + " layers");
  return llvm::Error::success();
}

static llvm::Error deriveGguf(const GgufKeys &keys, Hyperparameters &h) {
  if (llvm::Error error = readGgufWindows(keys, h))
    return error;
  auto layers = static_cast<size_t>(*h.layers);
  size_t numOwn = layers - std::min(layers, static_cast<size_t>(*h.sharedLayers));
  constexpr llvm::StringLiteral headsKey = "attention.head_count_kv",
                                innerKey = "feed_forward_length";
  for (auto [key, numbers] :
       {std::pair(headsKey, &h.kvHeadsOfLayers), {innerKey, &h.innerOfLayers}}) {
    if (numbers->size() == 1)
      numbers->assign(layers, numbers->front());
    if (numbers->size() != layers)
      return keys.wrongValue(key, "a number for each of " + llvm::Twine(layers) + " layers");
  }
  auto isLocal = [&](size_t layer) { return h.windowOfLayers[layer]; };
  auto isGlobal = [&](size_t layer) { return !h.windowOfLayers[layer]; };
  auto isOwn = [&](size_t layer) { return layer < numOwn; };
  auto isShared = [&](size_t layer) { return layer >= numOwn; };
  std::optional<int64_t> shared;
  if (llvm::Error error = readCommon(keys, headsKey, h.kvHeadsOfLayers, isLocal, h.kvHeads))
    return error;
  if (llvm::Error error = readCommon(keys, headsKey, h.kvHeadsOfLayers, isGlobal, h.globalKvHeads))
    return error;
  if (llvm::Error error = readCommon(keys, innerKey, h.innerOfLayers, isOwn, h.inner))
    return error;
  if (llvm::Error error = readCommon(keys, innerKey, h.innerOfLayers, isShared, shared))
    return error;
  h.kvHeadsOfLayers.clear();
  if (!h.kvHeads)
    h.kvHeads = h.globalKvHeads;
  if (!h.inner) // refused later: no layer has caches
    h.inner = shared;
  h.doublesInner = shared && *shared == 2 * *h.inner;
  if (shared && *shared != *h.inner && !*h.doublesInner)
    return keys.wrongValue(innerKey, "the same or twice as much for layers that share caches",
                           hints::otherModel);
  for (llvm::StringLiteral key : {llvm::StringLiteral("attention.value_length_swa"),
                                  llvm::StringLiteral("rope.dimension_count_swa")})
    if (const llvm::json::Value *value = keys.find(key);
        value && *value != llvm::json::Value(*h.headDim))
      return keys.wrongValue(key, llvm::Twine(*h.headDim), hints::otherModel);
  const GgufModel &model = keys.model();
  h.valuesAreKeys = false;
  for (size_t layer = 0; layer < numOwn; ++layer)
    if (isGlobal(layer) &&
        !model.findTensor(("blk." + llvm::Twine(layer) + ".attn_v.weight").str()))
      h.valuesAreKeys = true;
  h.perLayerVocab = 0;
  if (const GgufTensor *table = model.findTensor("per_layer_token_embd.weight");
      table && !table->shape.empty())
    h.perLayerVocab = table->shape.front();
  h.sparse = h.experts.has_value();
  return model.findTensor("rope_freqs.weight")
             ? llvm::Error::success()
             : inputError(keys.path(),
                          "has no tensor \"rope_freqs.weight\", which layers without a window need",
                          hints::fetch);
}

constexpr GgufArchitecture ggufGemma4Text = {
    .name = "gemma4",
    .keys = ggufKeys,
    .ignoredKeys = ggufUsedKeys,
    .modules = ggufOwnModules,
    .modelModules = ggufModelModules,
    .proportionalRope = true,
    .names =
        [](const GgufModel &model) {
          return model.findTensor("blk.0.ffn_gate_exps.weight") ? &ggufSeparateNames
                                                                : &names<false>;
        },
    .derive = deriveGguf,
};

} // namespace mica
