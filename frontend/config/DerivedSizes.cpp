#include "frontend/config/DerivedSizes.h"

#include "frontend/support/InputError.h"

namespace mica {
namespace {

class SizeDeriver {
public:
  SizeDeriver(Hyperparameters &h, const FamilyTraits &traits, const KeyNames &names)
      : h(h), traits(traits), names(names) {}

  llvm::Error derive();

private:
  llvm::Error deriveKvHeads();
  llvm::Error checkMamba();
  llvm::Error checkDeltaNet() const;
  llvm::Error wrong(const llvm::Twine &what, const llvm::Twine &hint = hints::correct) const {
    return inputError(names.path(), what, hint);
  }

  Hyperparameters &h;
  const FamilyTraits &traits;
  const KeyNames &names;
};

/// Derives the properties of attention layers from those of all layers.
llvm::Error SizeDeriver::deriveKvHeads() {
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

llvm::Error SizeDeriver::checkMamba() {
  using H = Hyperparameters;
  double inner =
      h.mambaInner ? double(*h.mambaInner) : *h.mambaMultiple * static_cast<double>(*h.hidden);
  if (!h.mambaHeadDim)
    h.mambaHeadDim = static_cast<int64_t>(inner) / *h.mambaHeads;
  if (static_cast<int64_t>(inner) != *h.mambaHeads * *h.mambaHeadDim) {
    auto nameOf = [&](Slot slot) { return inQuotes(names.keyOf(slot).value_or("")); };
    std::string source = h.mambaInner ? nameOf(&H::mambaInner)
                                      : nameOf(&H::mambaMultiple) + " times " + nameOf(&H::hidden);
    return wrong("has " + llvm::Twine(*h.mambaHeads) + " Mamba heads of size " +
                     llvm::Twine(*h.mambaHeadDim) + ", expected a size of " +
                     llvm::Twine(static_cast<int64_t>(inner)) + " in all, which is " + source,
                 names.hintToCorrect({&H::mambaHeads, &H::mambaHeadDim,
                                      h.mambaInner ? Slot(&H::mambaInner) : &H::mambaMultiple}));
  }
  if (*h.mambaHeads % *h.mambaGroups == 0)
    return llvm::Error::success();
  return wrong("has " + llvm::Twine(*h.mambaHeads) + " Mamba heads, not a multiple of its " +
                   llvm::Twine(*h.mambaGroups) + " groups",
               names.hintToCorrect({&H::mambaHeads, &H::mambaGroups}));
}

llvm::Error SizeDeriver::checkDeltaNet() const {
  if (*h.deltaValueHeads % *h.deltaKeyHeads == 0)
    return llvm::Error::success();
  return wrong(
      "has " + llvm::Twine(*h.deltaValueHeads) +
          " value heads of linear attention, not a multiple of its " +
          llvm::Twine(*h.deltaKeyHeads) + " key heads",
      names.hintToCorrect({&Hyperparameters::deltaValueHeads, &Hyperparameters::deltaKeyHeads}));
}

llvm::Error SizeDeriver::derive() {
  if (traits.otherMixer == Mixer::Mamba)
    if (llvm::Error error = checkMamba())
      return error;
  if (traits.otherMixer == Mixer::DeltaNet)
    if (llvm::Error error = checkDeltaNet())
      return error;
  if (!h.heads) // no layer has attention
    return llvm::Error::success();
  if (llvm::Error error = deriveKvHeads())
    return error;
  if (!h.kvHeads)
    h.kvHeads = h.heads;
  for (int64_t kvHeads : {*h.kvHeads, h.globalKvHeads.value_or(*h.kvHeads)})
    if (*h.heads % kvHeads != 0)
      return wrong("has " + llvm::Twine(*h.heads) + " attention heads, not a multiple of its " +
                   llvm::Twine(kvHeads) + " key/value heads");
  if (!h.headDim) {
    if (*h.hidden % *h.heads != 0) {
      std::optional<std::string> key = names.keyOf(&Hyperparameters::headDim);
      return wrong("has the hidden size " + llvm::Twine(*h.hidden) + ", not a multiple of its " +
                       llvm::Twine(*h.heads) + " heads" +
                       (key ? ", and no key " + inQuotes(*key) : std::string()),
                   key ? llvm::StringLiteral("add it") : hints::correct);
    }
    h.headDim = *h.hidden / *h.heads;
  }
  for (int64_t headDim : {*h.headDim, h.globalHeadDim.value_or(*h.headDim)})
    if (traits.rope && headDim % 2 != 0)
      return wrong("has the head size " + llvm::Twine(headDim) +
                   ", but rope rotates pairs: it must be even");
  return llvm::Error::success();
}

} // namespace

llvm::Error deriveSizes(Hyperparameters &h, const FamilyTraits &traits, const KeyNames &names) {
  return SizeDeriver(h, traits, names).derive();
}

} // namespace mica
