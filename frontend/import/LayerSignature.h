//===- LayerSignature.h - the arguments of a layer --------------*- C++ -*-===//
#ifndef MICA_FRONTEND_IMPORT_LAYERSIGNATURE_H
#define MICA_FRONTEND_IMPORT_LAYERSIGNATURE_H

#include "frontend/families/ModelConfig.h"

#include "mlir/IR/Types.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

namespace mica {

/// Names of states that a layer may have.
inline constexpr llvm::StringLiteral kKeyCache = "k_cache", kValueCache = "v_cache",
                                     kConvState = "conv_state", kRecurrentState = "recurrent_state";

struct LayerState {
  llvm::StringLiteral name;
  /// Its type if `layers` layers of type `kind` share it, in a model with rows of `hidden` numbers.
  mlir::Type (*type)(mlir::MLIRContext *context, const LayerType &kind, int64_t layers,
                     int64_t hidden);
};

/// The states of a layer: caches of keys and values, inputs of its convolution, and the state of
/// its scan.
llvm::SmallVector<LayerState, 4> layerStates(const LayerType &kind);

/// The name of the argument with the embeddings of all layers, [T, layers, dim].
inline constexpr llvm::StringLiteral kPerLayerInputs = "per_layer_inputs";

/// Whether the rope frequencies of a layer type depend on the sequence length.
bool followsLength(const LayerType &kind);

/// The arguments of a layer function before its weights, in order: x, the states of
/// layerStates(kind), the index of the layer in the model, with `numbered` its index in its states,
/// sequences, positions, lengths if the rope of the layer type depends on them, and the embeddings
/// of all layers if it adds its own.
llvm::SmallVector<llvm::StringRef> layerArguments(const LayerType &kind, bool numbered);

/// The name of the argument with the layer's index in its states: a separate one with `numbered`,
/// else the index in the model.
llvm::StringRef stateLayerName(const LayerType &kind, bool numbered);

} // namespace mica

#endif // MICA_FRONTEND_IMPORT_LAYERSIGNATURE_H
