//===- Hyperparameters.h - hyperparameters of a model -----------*- C++ -*-===//
#ifndef MICA_FRONTEND_FAMILIES_HYPERPARAMETERS_H
#define MICA_FRONTEND_FAMILIES_HYPERPARAMETERS_H

#include "frontend/families/KeySource.h"

#include "llvm/Support/JSON.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mica {

/// The keys of all families, with one member per meaning, for all file formats. Absent if neither
/// the file nor the family has a value; required keys were checked when the file was read.
struct Hyperparameters {
  std::optional<int64_t> hidden, layers, heads, kvHeads, headDim, vocab, inner, maxPositions;
  std::optional<int64_t> globalKvHeads, globalHeadDim; ///< of layers without a window, if they have
                                                       ///< others
  std::optional<bool> valuesAreKeys;   ///< in layers without a window, values are projected as keys
  std::optional<int64_t> sharedLayers; ///< number of last layers that read caches of earlier ones
  std::optional<bool> doublesInner;    ///< whether those have an inner size twice as large
  std::optional<int64_t> perLayerDim, perLayerVocab; ///< of embeddings that every layer adds
  std::optional<int64_t> innerMultiple;  ///< the inner size is rounded up to a multiple of it
  std::optional<double> innerMultiplier; ///< factor of the inner size, applied before rounding
  std::optional<bool> adjustsInner;      ///< whether the inner size is two thirds of the value in
                                         ///< the config
  std::optional<int64_t> convTaps;       ///< of short convolutions
  std::optional<bool> convBias;
  std::optional<int64_t> mambaHeads, mambaHeadDim, mambaGroups, stateDim;
  std::optional<int64_t> deltaKeyHeads, deltaKeyDim, deltaValueHeads, deltaValueDim;
  std::optional<int64_t> attentionInterval; ///< one of so many layers has attention
  std::optional<double> mambaMultiple;      ///< the size of all heads of Mamba over the hidden size
  std::optional<int64_t> mambaInner;        ///< if not a multiple of the hidden size
  std::optional<bool> mambaBias, mambaOutBias;
  std::optional<bool> mambaNorm, mambaNormFirst; ///< whether there is a norm; whether it precedes
                                                 ///< the gate
  const llvm::json::Array *mambaMultipliers = nullptr, *mlpMultipliers = nullptr;
  std::optional<double> mambaInMultiplier, mambaOutMultiplier;
  std::optional<double> attentionInMultiplier, attentionOutMultiplier, keyMultiplier;
  std::optional<std::string> positionEmbedding; ///< of hybrids: "rope" or none
  std::optional<bool> usesRope;                 ///< if determined by the config
  std::optional<bool> correctsChoice;           ///< whether experts are selected with a correction
                                                ///< bias
  std::optional<int64_t> experts, expertsPerToken, expertInner, sharedExperts;
  std::optional<int64_t> expertWidth; ///< of the latents that routed experts read, if any
  std::optional<int64_t> sparseStep;  ///< one of so many layers has experts
  std::optional<int64_t> sharedInner; ///< of all shared experts together
  std::optional<int64_t> queryRank, latentRank, qkNopeHeadDim, qkRopeHeadDim, valueDim;
  std::optional<int64_t> firstDense; ///< number of layers without experts at the beginning
  std::optional<int64_t> groups, topkGroup;
  std::optional<int64_t> numNextnPredictLayers; ///< layers after the last one, which are not
                                                ///< computed
  std::optional<double> routedMultiplier;
  std::optional<std::string> choice;        ///< selection method of experts
  std::optional<int64_t> originalPositions; ///< before longrope
  std::optional<int64_t> window;
  std::optional<int64_t> windowPattern; ///< one of so many layers has no window
  std::optional<int64_t> windowLayers;  ///< number of layers without, or with, a window
  std::optional<double> eps, theta;
  std::optional<double> localTheta;              ///< of layers with a window
  std::optional<double> partialRotary;           ///< fraction of a head that is rotated
  std::optional<int64_t> rotatedDim;             ///< the same, as a number of elements
  std::optional<double> scoreScale, scoreScalar; ///< of attention: s, or 1 / sqrt(s)
  std::optional<bool> scalesScores;              ///< false: scores are not scaled
  std::optional<bool> scalesByLayer; ///< scores are divided by the index of the layer, from 1 on
  std::optional<double> embeddingMultiplier, residualMultiplier;
  std::optional<double> logitMultiplier, logitDivisor;
  std::optional<double> scoreSoftcap, logitSoftcap;
  std::optional<double> gateAlpha, gateLimit; ///< of clamped experts
  std::optional<bool> tiedHead, attentionBias, mlpBias, sparse, normalizeGate, yarnFlag;
  std::optional<bool> outBias; ///< if it differs from attentionBias
  std::optional<bool> useWindow, qkNorm, parallelResidual, interleaved, scalesEmbedding;
  std::optional<std::string> type, activation;
  std::vector<int64_t> kvHeadsOfLayers; ///< 0 for layers with a convolution; a single value for all
                                        ///< layers
  std::vector<int64_t> innerOfLayers;   ///< a single value for all layers
  std::vector<bool> windowOfLayers;     ///< which layers have a window, if a file lists them
  std::vector<int64_t> denseLayers;     ///< layers without experts, in addition to those given by
                                        ///< sparseStep
  std::vector<int64_t> eos;
  std::optional<int64_t> bos;
  std::optional<int64_t> padding;                     ///< if results depend on it
  const llvm::json::Object *ropeScaling = nullptr;    ///< transformers 4's name
  const llvm::json::Object *ropeParameters = nullptr; ///< transformers 5's name
  const KeySource *ropeKeys = nullptr;                ///< instead of both, for GGUF files
  const llvm::json::Array *layerTypes = nullptr;
  std::optional<std::string> layerPattern;            ///< the same, with a letter for each type
  const llvm::json::Array *attentionLayers = nullptr; ///< indices; without layerTypes
  const llvm::json::Object *quantization = nullptr;   ///< how weights are stored
  const llvm::json::Object *layerOverrides = nullptr; ///< keys of single layers, by their indices
};

} // namespace mica

#endif // MICA_FRONTEND_FAMILIES_HYPERPARAMETERS_H
