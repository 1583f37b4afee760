//===- LayerTypeReader.h - which mixer and window each layer has *- C++ -*-===//
#ifndef MICA_FRONTEND_CONFIG_LAYERTYPEREADER_H
#define MICA_FRONTEND_CONFIG_LAYERTYPEREADER_H

#include "frontend/config/KeyReader.h"
#include "frontend/support/InputError.h"

namespace mica {

/// Reads which layers have attention, a window, another mixer, or only a feed-forward network.
class LayerTypeReader {
public:
  /// The layers of `h`, which the functions complete: their number, and those that are dense.
  LayerTypeReader(Hyperparameters &h, const FamilyTraits &traits, const KeyNames &names)
      : h(h), traits(traits), names(names) {}

  /// Reads the types of layers that are either a mixer or a feed-forward network: a list of types
  /// or, in older files, a letter per layer. The number of layers is the length of the list.
  llvm::Error readPattern();
  /// Reads all layers: transformers 5 writes a type per layer; older files have a rule, which must
  /// not contradict the types if a file has both.
  llvm::Error readLayers();

  Mixer mixerOf(int64_t layer) const { return mixers[layer]; }
  bool usesSlidingWindow(int64_t layer) const { return windows[layer]; }
  /// Whether the layer reads the caches of an earlier one.
  bool sharesCache(int64_t layer) const { return layer >= *h.layers - h.sharedLayers.value_or(0); }

private:
  llvm::Error readAttentionLayers();
  llvm::Error checkRules(llvm::ArrayRef<Mixer> mixersByRule) const;
  llvm::Error contradiction(size_t layer, Slot other) const;
  /// The name of a list or pattern of types in messages.
  std::string nameOf(Slot slot) const { return inQuotes(names.keyOf(slot).value_or("")); }
  llvm::Error wrong(const llvm::Twine &what, const llvm::Twine &hint = hints::correct) const {
    return inputError(names.path(), what, hint);
  }

  Hyperparameters &h;
  const FamilyTraits &traits;
  const KeyNames &names;
  std::vector<Mixer> mixers;      ///< per layer
  std::vector<bool> windows;      ///< per layer
  llvm::json::Array patternTypes; ///< of the letters of a pattern, even if there is a list
};

} // namespace mica

#endif // MICA_FRONTEND_CONFIG_LAYERTYPEREADER_H
