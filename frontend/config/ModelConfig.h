//===- ModelConfig.h - a decoder, described in general terms
//------------------------------------===//
//
// What config.json says, typed and checked, in the dialect's own words (Pairing, NormRounding,
// Activation, Scoring). No field names a model family: the importer builds from this alone. Letters
// as in the formulas: C hidden size, H query heads, G key/value heads, D head size, I inner size, E
// experts.
//
//===----------------------------------------------------------------------------------------------===//
#ifndef MICA_FRONTEND_CONFIG_MODELCONFIG_H
#define MICA_FRONTEND_CONFIG_MODELCONFIG_H

#include "frontend/config/NamingTable.h"
#include "frontend/weights/TensorInfo.h"
#include "ir/Mica/Mica.h"

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace mica {

/// inv_freq / factor.
struct LinearScaling {
  double factor;
};

/// YaRN: interpolates the dimensions between the corrections of `betaFast` and `betaSlow`
/// rotations; cos and sin are multiplied by `attentionFactor`. `original` is the context length
/// before scaling, `highLimit` the largest value of the ramp's upper end (transformers: D - 1,
/// MiniMind: D/2 - 1), `truncate` whether the ramp's ends are rounded outwards to whole dimensions.
struct YarnScaling {
  double factor, betaFast, betaSlow, attentionFactor;
  int64_t original, highLimit;
  bool truncate = true;
};

/// Llama 3: scales by wavelength, with a smooth passage between the two frequency factors.
struct Llama3Scaling {
  double factor, lowFrequency, highFrequency;
  int64_t original;
};

using RopeScaling = std::variant<std::monostate, LinearScaling, YarnScaling, Llama3Scaling>;

struct RopeConfig {
  double theta = 10000;
  int64_t dimensions = 0; ///< how many elements of a head turn: D, or fewer
  Pairing pairing = Pairing::Half;
  RopeScaling scaling;
};

struct NormConfig {
  double eps = 0;
  NormRounding rounding = NormRounding::BeforeGain;
};

enum class QkNorm { None, PerHead };

struct AttentionConfig {
  int64_t heads = 0;   ///< H
  int64_t kvHeads = 0; ///< G, divides H
  int64_t headDim = 0; ///< D; H * D need not be C
  double scale = 0;    ///< of the scores, 1/sqrt(D) unless the family says otherwise
  bool qkvBias = false;
  bool outBias = false;
  QkNorm qkNorm = QkNorm::None;
  RopeConfig rope;
};

/// down(activation(gate(x)) * up(x)).
struct DenseConfig {
  int64_t inner = 0; ///< I
  Activation activation = Activation::Silu;
  bool bias = false;
};

struct SparseConfig {
  int64_t experts = 0;         ///< E
  int64_t expertsPerToken = 0; ///< k <= E
  Scoring scoring = Scoring::Softmax;
  bool normalise = false;    ///< divide the chosen weights by their sum; already false where the
                             ///< family skips it at k = 1
  DenseConfig expert;        ///< each routed expert, no biases
  int64_t sharedExperts = 0; ///< always on and unweighted
  DenseConfig shared;        ///< each shared expert
};

/// Structure that layers share. Layers of one kind differ in their weights only.
struct LayerKind {
  std::string name; ///< "dense" or "sparse", the layer function's name
  AttentionConfig attention;
  std::variant<DenseConfig, SparseConfig> ffn;
};

/// What a model proposes for sampling; absent where it proposes nothing.
struct GenerationDefaults {
  std::optional<double> temperature, topP, minP, repetitionPenalty;
  std::optional<int64_t> topK;
  std::optional<bool> doSample;
  std::optional<int64_t> bos;
  std::vector<int64_t> eos; ///< sorted, without repetitions
};

/// A key that was read and has no influence, and why.
struct IgnoredKey {
  std::string file, key, reason;
};

struct ModelConfig {
  std::string family; ///< for people: "llama", "minimind (generation 3)"
  std::string path;   ///< the config.json it came from
  int64_t vocab = 0;
  int64_t hidden = 0;       ///< C
  int64_t maxPositions = 0; ///< the model's own context length
  bool tiedHead = false;    ///< the output projection is the embedding
  NormConfig norm;
  std::vector<LayerKind> kinds; ///< in the order of their first layer
  std::vector<unsigned> layers; ///< per layer, its kind
  std::optional<StoredType>
      type; ///< what the file calls its weights' type; the weights themselves decide
  GenerationDefaults generation;
  const NamingTable *names = nullptr;
  std::vector<IgnoredKey> ignored; ///< sorted by file and key
};

} // namespace mica

#endif // MICA_FRONTEND_CONFIG_MODELCONFIG_H
