//===- Hyperparameters.h - the facts about a model, by meaning --*- C++ -*-===//
#ifndef MICA_FRONTEND_FAMILIES_HYPERPARAMETERS_H
#define MICA_FRONTEND_FAMILIES_HYPERPARAMETERS_H

#include "frontend/families/KeySource.h"

#include "llvm/Support/JSON.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mica {

/// The keys of all families, under one name per meaning, whichever kind of file has them. Absent
/// where the file has no such key and the family no default; what must be there was checked when
/// the file was read.
struct Hyperparameters {
  std::optional<int64_t> hidden, layers, heads, kvHeads, headDim, vocab, inner, maxPositions;
  std::optional<int64_t> innerMultiple;  ///< the inner size is rounded up to a multiple of it
  std::optional<double> innerMultiplier; ///< what it is multiplied with before
  std::optional<bool> adjustsInner;      ///< whether it is two thirds of what the config says
  std::optional<int64_t> convTaps;       ///< of short convolutions
  std::optional<bool> convBias;
  std::optional<int64_t> mambaHeads, mambaHeadDim, mambaGroups, stateDim;
  std::optional<int64_t> deltaKeyHeads, deltaKeyDim, deltaValueHeads, deltaValueDim;
  std::optional<int64_t> attentionInterval; ///< every how many layers one has attention
  std::optional<double> mambaMultiple;      ///< the size of all heads of Mamba over the hidden size
  std::optional<int64_t> mambaInner;        ///< where it is not a multiple of the hidden size
  std::optional<bool> mambaBias, mambaOutBias;
  std::optional<bool> mambaNorm, mambaNormFirst; ///< whether there is one; before the gate
  const llvm::json::Array *mambaMultipliers = nullptr, *mlpMultipliers = nullptr;
  std::optional<double> mambaInMultiplier, mambaOutMultiplier;
  std::optional<double> attentionInMultiplier, attentionOutMultiplier, keyMultiplier;
  std::optional<std::string> positionEmbedding; ///< of hybrids: "rope" or none
  std::optional<bool> usesRope;                 ///< where the config decides it
  std::optional<bool> correctsChoice;           ///< whether experts are chosen by corrected scores
  std::optional<int64_t> experts, expertsPerToken, expertInner, sharedExperts;
  std::optional<int64_t> sparseStep;  ///< every how many layers one has experts
  std::optional<int64_t> sharedInner; ///< of all shared experts together
  std::optional<int64_t> queryRank, latentRank, qkNopeHeadDim, qkRopeHeadDim, valueDim;
  std::optional<int64_t> firstDense; ///< how many layers at the beginning have no experts
  std::optional<int64_t> groups, topkGroup;
  std::optional<int64_t> numNextnPredictLayers; ///< after the last one, and not computed
  std::optional<double> routedMultiplier;
  std::optional<std::string> choice;        ///< how experts are chosen
  std::optional<int64_t> originalPositions; ///< before longrope
  std::optional<int64_t> window;
  std::optional<int64_t> windowPattern; ///< every how many layers one has no window
  std::optional<int64_t> windowLayers;  ///< how many layers are without window, or with
  std::optional<double> eps, theta;
  std::optional<double> localTheta;              ///< of layers with a window
  std::optional<double> partialRotary;           ///< the share of a head that rope rotates
  std::optional<int64_t> rotatedDim;             ///< the same, as a number of elements
  std::optional<double> scoreScale, scoreScalar; ///< of attention: s, or 1 / sqrt(s)
  std::optional<bool> scalesScores;              ///< false: scores stay as they are
  std::optional<bool> scalesByLayer; ///< scores are divided by the index of the layer, from 1 on
  std::optional<double> embeddingMultiplier, residualMultiplier;
  std::optional<double> logitMultiplier, logitDivisor;
  std::optional<double> scoreSoftcap, logitSoftcap;
  std::optional<double> gateAlpha, gateLimit; ///< of experts with limits
  std::optional<bool> tiedHead, attentionBias, mlpBias, sparse, normalizeGate, yarnFlag;
  std::optional<bool> outBias; ///< where it differs from attentionBias
  std::optional<bool> useWindow, qkNorm, parallelResidual, interleaved, scalesEmbedding;
  std::optional<std::string> type, activation;
  std::vector<int64_t> kvHeadsOfLayers; ///< none where it has a convolution; or one for all
  std::vector<int64_t> denseLayers;     ///< layers without experts, whatever the step says
  std::vector<int64_t> eos;
  std::optional<int64_t> bos;
  std::optional<int64_t> padding;                     ///< where what is computed depends on it
  const llvm::json::Object *ropeScaling = nullptr;    ///< transformers 4's name
  const llvm::json::Object *ropeParameters = nullptr; ///< transformers 5's name
  const KeySource *ropeKeys = nullptr;                ///< in place of both, of a GGUF file
  const llvm::json::Array *layerTypes = nullptr;
  const llvm::json::Array *attentionLayers = nullptr; ///< indices; without layerTypes
  const llvm::json::Object *quantization = nullptr;   ///< how weights are stored
};

} // namespace mica

#endif // MICA_FRONTEND_FAMILIES_HYPERPARAMETERS_H
