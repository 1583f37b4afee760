#include "frontend/families/Qwen3Next.h"

#include "frontend/families/Families.h"
#include "frontend/families/QwenExperts.h"

namespace mica {

using H = Hyperparameters;

static constexpr NamingTable names = changed(transformersNames, [](NamingTable &names) {
  nameSharedExpert(names);
  nameDeltaNet(names);
  names.deltaQkvz = "linear_attn.in_proj_qkvz";
  names.deltaBa = "linear_attn.in_proj_ba";
});

// Gated delta nets in most layers, attention with an output gate in the others, and experts with a
// gated shared one.
llvm::Expected<const Family *> chooseQwen3Next(const FamilyEvidence &) {
  static constexpr llvm::StringLiteral architectures[] = {"Qwen3NextForCausalLM"};
  static constexpr KeyRule own[] = {
      {"num_key_value_heads", &H::kvHeads, ranges::heads, int64_t(2), Null::Allowed},
      {"num_experts", &H::experts, ranges::maybeExperts, int64_t(512)},
      {"num_experts_per_tok", &H::expertsPerToken, ranges::experts, int64_t(10)},
      {"moe_intermediate_size", &H::expertInner, ranges::width, int64_t(512)},
      {"shared_expert_intermediate_size", &H::sharedInner, ranges::width, int64_t(512)},
      {"norm_topk_prob", &H::normalizeGate, {}, true},
      {"decoder_sparse_step", &H::sparseStep, ranges::layers, int64_t(1)},
      optionalKey("mlp_only_layers", &H::denseLayers, {0, 4095}),
  };
  static constexpr FixedKey fixed[] = {{"hidden_act", R"(["silu", "swish"])"},
                                       {"use_sliding_window", "[false]"}};
  static const llvm::ArrayRef<KeyRule> keys[] = {own, deltaNetKeys, commonKeys()};
  static const Family family = {
      .name = "qwen3_next",
      .architectures = architectures,
      .keys = keys,
      .fixed = fixed,
      .traits = deltaNetTraits,
      .names = &names,
      .derive = [](Hyperparameters &h) { h.sparse = true; },
  };
  return &family;
}

static llvm::Error readGgufValueDim(const GgufKeys &keys, Hyperparameters &h) {
  constexpr llvm::StringLiteral key = "ssm.inner_size";
  const llvm::json::Value *value = keys.find(key);
  if (!value)
    return keys.missingKey(key, "which gated delta nets need");
  auto inner = readInteger(keys.path(), keys.named(key), *value, ranges::width);
  if (!inner)
    return inner.takeError();
  if (*inner % *h.deltaValueHeads != 0)
    return keys.wrongValue(key, "a multiple of its " + llvm::Twine(*h.deltaValueHeads) + " heads");
  h.deltaValueDim = *inner / *h.deltaValueHeads;
  return llvm::Error::success();
}

/// Newer files have a list, one entry for each layer, older ones the interval. Layers that predict
/// additional tokens count as layers in both.
static llvm::Error readGgufLayers(const GgufKeys &keys, Hyperparameters &h) {
  constexpr llvm::StringLiteral key = "attention.recurrent_layers";
  int64_t all = *h.layers;
  if (llvm::Error error = subtractGgufNextnLayers(keys, h))
    return error;
  const llvm::json::Value *value = keys.find(key);
  if (!value)
    return llvm::Error::success();
  const llvm::json::Array *list = value->getAsArray();
  std::optional<bool> alike = value->getAsBoolean();
  auto isBoolean = [](const llvm::json::Value &item) { return item.getAsBoolean().has_value(); };
  if (!alike &&
      (!list || static_cast<int64_t>(list->size()) != all || !llvm::all_of(*list, isBoolean)))
    return keys.wrongValue(key, "true or false for each of " + llvm::Twine(all) + " layers");
  for (int64_t layer = 0; layer < *h.layers; ++layer) {
    bool isRecurrent = alike ? *alike : (*list)[layer] == llvm::json::Value(true);
    h.kvHeadsOfLayers.push_back(isRecurrent ? 0 : h.kvHeads.value_or(*h.heads));
  }
  h.attentionInterval.reset();
  return llvm::Error::success();
}

/// How many pairs rotate by each position of an image: in turn by the first three, which are the
/// same in text. llama.cpp does not rotate what is left over.
static llvm::Error checkGgufSections(const GgufKeys &keys, const Hyperparameters &h) {
  constexpr llvm::StringLiteral key = "rope.dimension_sections";
  const llvm::json::Value *value = keys.find(key);
  if (!value)
    return llvm::Error::success();
  auto sections = readIntegers(keys.path(), keys.named(key), *value, {0, ranges::headDim.max});
  if (!sections)
    return sections.takeError();
  sections->resize(4, sections->size() == 1 ? sections->front() : 0);
  int64_t all = 0;
  for (int64_t size : *sections)
    all += size;
  for (int64_t pair = 0; pair < std::min(all, *h.rotatedDim / 2); ++pair)
    if (pair >= 3 * (*sections)[pair % 3])
      return keys.wrongValue(key, "sections that every pair of a head is in", hints::otherModel);
  return llvm::Error::success();
}

llvm::Error deriveGgufDeltaNet(const GgufKeys &keys, Hyperparameters &h) {
  if (llvm::Error error = readGgufValueDim(keys, h))
    return error;
  if (llvm::Error error = readGgufLayers(keys, h))
    return error;
  return checkGgufSections(keys, h);
}

llvm::Error deriveGgufDeltaNetExperts(const GgufKeys &keys, Hyperparameters &h) {
  h.normalizeGate = true;
  if (!h.inner && !(h.expertInner && h.sharedInner))
    return keys.missingKey("feed_forward_length", "which determines the sizes of its experts");
  h.sharedInner = h.sharedInner.has_value() ? h.sharedInner : h.inner;
  if (!h.expertInner)
    if (llvm::Error error = deriveGgufExperts(keys, h))
      return error;
  return deriveGgufDeltaNet(keys, h);
}

static constexpr llvm::ArrayRef<KeyRule> ggufKeys[] = {ggufSharedExpertKeys, gguf::expertKeys,
                                                       gguf::deltaNetKeys,   gguf::sizeKeys,
                                                       gguf::decoderKeys,    gguf::rmsNormKeys};

/// Newer files have queries, keys and values as one tensor, and the gates as another.
static const NamingTable *ggufNames(const GgufModel &model) {
  static constexpr NamingTable parted =
      changed(names, [](NamingTable &names) { names.deltaQkvz = ""; });
  bool isJoined = llvm::any_of(model.tensors(), [](const GgufTensor &tensor) {
    return llvm::StringRef(tensor.name).ends_with(".ssm_in.weight");
  });
  return isJoined ? &names : &parted;
}

constexpr GgufArchitecture ggufQwen3Next = {
    .name = "qwen3next",
    .keys = ggufKeys,
    .fixed = ggufDeltaNetFixedKeys,
    .ignoredKeys = ggufDeltaNetUsedKeys,
    .modules = ggufDeltaNetModules,
    .addedToNormWeights = true,
    .names = ggufNames,
    .derive = deriveGgufDeltaNetExperts,
};

} // namespace mica
