#include "frontend/config/LayerTypeReader.h"

#include "frontend/support/Json.h"

#include "llvm/ADT/STLExtras.h"

namespace mica {

/// Finds the attention layers by their indices, their key/value heads or an interval. Without any,
/// all layers are Mamba layers if the family has them, or attention layers if it has convolutions.
llvm::Error LayerTypeReader::readAttentionLayers() {
  Mixer other = traits.otherMixer;
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
      return wrong("has " + shown(index) + " in " + nameOf(&Hyperparameters::attentionLayers) +
                   ", expected indices of " + llvm::Twine(*h.layers) + " layers");
    mixers[*layer] = Mixer::Attention;
  }
  return llvm::Error::success();
}

constexpr llvm::StringLiteral denseType = "mlp", sparseType = "moe";

llvm::Error LayerTypeReader::readPattern() {
  if (!traits.isOneBlock)
    return llvm::Error::success();
  constexpr std::pair<char, llvm::StringLiteral> letters[] = {
      {'M', "mamba"}, {'*', "attention"}, {'-', denseType}, {'E', sparseType}};
  std::string list = nameOf(&Hyperparameters::layerTypes),
              pattern = nameOf(&Hyperparameters::layerPattern);
  if (!h.layerTypes && !h.layerPattern)
    return wrong("has neither " + list + " nor " + pattern, "add one");
  for (char letter : h.layerPattern.value_or("")) {
    const auto *found = llvm::find_if(letters, [&](auto row) { return row.first == letter; });
    if (found == std::end(letters))
      return wrong("has " + inQuotes(llvm::StringRef(&letter, 1)) + " in " + pattern +
                       ", but only M, *, - and E are supported",
                   hints::otherModel);
    patternTypes.push_back(found->second);
  }
  if (!h.layerTypes)
    h.layerTypes = &patternTypes;
  auto count = static_cast<int64_t>(h.layerTypes->size());
  if (count == 0 || double(count) > ranges::layers.max)
    return wrong("has " + llvm::Twine(count) + " layers");
  h.layers = h.layers.value_or(count);
  return llvm::Error::success();
}

/// A name of a layer type, and the mixer of such layers.
using Row = std::pair<llvm::StringLiteral, Mixer>;

/// The names of layer types in transformers 5 and older versions.
static llvm::ArrayRef<Row> layerTypesOf(Mixer otherMixer, bool isOneBlock) {
  static constexpr Row full[] = {{"full_attention", Mixer::Attention}};
  static constexpr Row conv[] = {{"full_attention", Mixer::Attention}, {"conv", Mixer::ShortConv}};
  static constexpr Row mamba[] = {{"full_attention", Mixer::Attention},
                                  {"attention", Mixer::Attention},
                                  {"linear_attention", Mixer::Mamba},
                                  {"mamba", Mixer::Mamba}};
  static constexpr Row delta[] = {{"full_attention", Mixer::Attention},
                                  {"linear_attention", Mixer::DeltaNet}};
  static constexpr Row blocks[] = {{"full_attention", Mixer::Attention},
                                   {"attention", Mixer::Attention},
                                   {"linear_attention", Mixer::Mamba},
                                   {"mamba", Mixer::Mamba},
                                   {denseType, Mixer::None},
                                   {sparseType, Mixer::None}};
  if (isOneBlock)
    return blocks;
  switch (otherMixer) {
  case Mixer::None:
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
static std::string listOf(llvm::ArrayRef<Row> rows, bool hasWindow) {
  llvm::SmallVector<llvm::StringRef> names;
  for (const auto &[name, mixer] : rows)
    names.push_back(name);
  if (hasWindow)
    names.push_back("sliding_attention");
  return joinWithAnd(names) + (names.size() == 1 ? " is" : " are");
}

/// The row of a type; null if it is unknown.
static const Row *findType(llvm::ArrayRef<Row> rows, const llvm::json::Value &type) {
  const auto *row =
      llvm::find_if(rows, [&](const Row &row) { return type == llvm::json::Value(row.first); });
  return row == rows.end() ? nullptr : row;
}

/// Several names may mean the same type.
static bool areSame(const Row &first, const Row &second) {
  return first.second == second.second &&
         (first.second != Mixer::None || first.first == second.first);
}

llvm::Error LayerTypeReader::contradiction(size_t layer, Slot other) const {
  return wrong("has the layer type " + shown((*h.layerTypes)[layer]) + " for layer " +
                   llvm::Twine(layer) + " in " + nameOf(&Hyperparameters::layerTypes) +
                   ", which contradicts " + nameOf(other),
               "keep one of them");
}

/// Compares the types of a list with the rules of older files.
llvm::Error LayerTypeReader::checkRules(llvm::ArrayRef<Mixer> mixersByRule) const {
  for (Slot rule :
       {Slot(&Hyperparameters::attentionLayers), Slot(&Hyperparameters::attentionInterval)}) {
    if (!names.presentKeyOf(rule))
      continue;
    for (auto [layer, mixer] : llvm::enumerate(mixersByRule))
      if (mixer != mixers[layer])
        return contradiction(layer, rule);
  }
  if (patternTypes.empty())
    return llvm::Error::success();
  Slot pattern = &Hyperparameters::layerPattern;
  if (patternTypes.size() != h.layerTypes->size())
    return wrong("has " + llvm::Twine(patternTypes.size()) + " letters in " + nameOf(pattern) +
                     " for " + llvm::Twine(*h.layers) + " layers",
                 "list one for each layer");
  auto types = layerTypesOf(traits.otherMixer, traits.isOneBlock);
  for (auto [layer, type] : llvm::enumerate(*h.layerTypes))
    if (!areSame(*findType(types, type), *findType(types, patternTypes[layer])))
      return contradiction(layer, pattern);
  return llvm::Error::success();
}

llvm::Error LayerTypeReader::readLayers() {
  if (llvm::Error error = readAttentionLayers())
    return error;
  bool hasWindow =
      h.window.value_or(0) > 0 && h.useWindow.value_or(true) && traits.usesSlidingWindow;
  windows.resize(*h.layers);
  for (int64_t layer = 0; layer < *h.layers; ++layer)
    windows[layer] = hasWindow && traits.usesSlidingWindow(h, layer);
  if (!h.layerTypes)
    return llvm::Error::success();
  bool hasPattern = h.layerTypes == &patternTypes;
  std::string key = nameOf(hasPattern ? Slot(&Hyperparameters::layerPattern)
                                      : Slot(&Hyperparameters::layerTypes));
  std::vector<Mixer> mixersByRule = mixers;
  if (static_cast<int64_t>(h.layerTypes->size()) != *h.layers)
    return wrong("has " + llvm::Twine(h.layerTypes->size()) + (hasPattern ? " letters in " : " ") +
                     key + " for " + llvm::Twine(*h.layers) + " layers",
                 "list one for each layer");
  auto types = layerTypesOf(traits.otherMixer, traits.isOneBlock);
  for (auto [layer, type] : llvm::enumerate(*h.layerTypes)) {
    windows[layer] = type == llvm::json::Value("sliding_attention") && hasWindow;
    const Row *known = findType(types, type);
    if (known && known->first == denseType)
      h.denseLayers.push_back(static_cast<int64_t>(layer));
    if (known && known->first == sparseType && h.experts.value_or(0) == 0)
      return wrong("has the layer type " + shown(type) + " in " + key + ", but no experts");
    if (known)
      mixers[layer] = known->second;
    else if (windows[layer])
      mixers[layer] = Mixer::Attention;
    else
      return wrong("has the layer type " + shown(type) + " in " + key + ", only " +
                       listOf(types, hasWindow) + " supported",
                   hints::otherModel);
  }
  return hasPattern ? llvm::Error::success() : checkRules(mixersByRule);
}

} // namespace mica
