//===- ModelConfig.h - a decoder, described in general terms ----*- C++ -*-===//
//
// What a config.json or a GGUF file says, typed and checked, in the dialect's own words (Pairing,
// NormRounding, Activation, Scoring). No field names a model family: the importer builds from this
// alone. Letters as in the formulas: C hidden size, H query heads, G key/value heads, D head size,
// I inner size, E experts.
//
//===----------------------------------------------------------------------------------------------===//
#ifndef MICA_FRONTEND_FAMILIES_MODELCONFIG_H
#define MICA_FRONTEND_FAMILIES_MODELCONFIG_H

#include "frontend/families/NamingTable.h"
#include "frontend/formats/tensors/TensorInfo.h"
#include "ir/Mica/Mica.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace mica {

struct GgufArchitecture;

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

/// Factors for each pair: short ones up to the original context, long ones for longer texts.
struct LongRopeScaling {
  std::vector<double> shortFactors, longFactors;
  double attentionFactor;
  int64_t original;
};

/// theta grows with a text that is longer than the original context.
struct DynamicScaling {
  double factor;
  int64_t original;
};

using RopeScaling = std::variant<std::monostate, LinearScaling, YarnScaling, Llama3Scaling,
                                 LongRopeScaling, DynamicScaling>;

struct RopeConfig {
  double theta = 10000;
  int64_t dimensions = 0; ///< how many elements of a head are rotated: D, or fewer; 0 for no rope
  Pairing pairing = Pairing::Half;
  RopeScaling scaling;
  double scoreMultiplier = 1; ///< of attention's scale

  /// Whether frequencies follow the length of a text.
  bool followsLength() const {
    return std::holds_alternative<LongRopeScaling>(scaling) ||
           std::holds_alternative<DynamicScaling>(scaling);
  }
};

/// Keys and values made of a latent, and a part of the keys, for all heads one, that rope rotates.
struct LatentConfig {
  int64_t queryRank = 0; ///< of the queries' own latent; 0 where they have none
  int64_t rank = 0;      ///< of keys and values
  int64_t qkNopeHeadDim = 0, qkRopeHeadDim = 0; ///< of a head of queries and keys
  bool bias = false;                            ///< of the products that make latents
};

enum class NormKind { Rms, Layer };

struct NormConfig {
  NormKind kind = NormKind::Rms;
  double eps = 0;
  NormRounding rounding = NormRounding::BeforeGain; ///< of Rms
  double weightOffset = 0;                          ///< of Rms: the gain is w + offset
  bool bias = false;                                ///< of Layer
};

/// What queries and keys are normalized over: each head with one gain for all, each head with a
/// gain of its own, or all heads together.
enum class QkNorm { None, PerHead, OwnPerHead, AllHeads };

/// Whether attention and the feed-forward network read the same stream, and through which norms.
enum class Parallel { No, SharedNorm, OwnNorms };

/// What is around attention and the feed-forward network of a layer.
struct BlockConfig {
  bool preNorms = true;   ///< of what enters
  bool postNorms = false; ///< of what is added to the stream
  Parallel parallel = Parallel::No;
  double residualMultiplier = 1; ///< of what is added to the stream
};

struct AttentionConfig {
  int64_t heads = 0;    ///< H
  int64_t kvHeads = 0;  ///< G, divides H
  int64_t headDim = 0;  ///< D; H * D need not be C
  int64_t valueDim = 0; ///< of a head of values: mostly D
  double scale = 0;     ///< of the scores, 1/sqrt(D) unless the family says otherwise
  bool qkvBias = false;
  bool outBias = false;
  QkNorm qkNorm = QkNorm::None;
  NormConfig norm; ///< of queries and keys, where they are normalized
  RopeConfig rope;
  std::optional<int64_t> window; ///< positions that are seen, the own one included
  std::optional<double> softcap; ///< of the scores
  std::vector<double> slopes;    ///< of ALiBi, one per query head; empty without it
  bool sinks = false;
  double inMultiplier = 1, outMultiplier = 1; ///< of what enters and of the result
  bool outputGate = false; ///< results are multiplied by the sigmoid of a gate per element
  std::optional<LatentConfig> latent;
};

/// A gated causal convolution in place of attention: out(c * conv(b * x)) with b, c and x made of
/// the stream.
struct ShortConvConfig {
  int64_t taps = 0;  ///< positions that a filter covers, the own one included
  bool bias = false; ///< of the filters and of the products
};

/// Mamba 2 in place of attention: linear attention over what a causal convolution makes of x, B and
/// C, with a time step per row and head that sets the decay.
struct MambaConfig {
  int64_t heads = 0, headDim = 0; ///< of x
  int64_t groups = 0;             ///< of B and C, and of the norm; divides the heads
  int64_t stateDim = 0;           ///< of a group of B and C
  int64_t taps = 0;               ///< positions that a filter covers, the own one included
  bool bias = false;              ///< of the products of what enters
  bool outBias = false;           ///< of the product that makes the result
  bool convBias = false;
  double eps = 0;               ///< of the norm
  bool hasNorm = true;          ///< whether there is one
  bool gatesFirst = true;       ///< whether the norm is of what the gate lets through
  bool besideAttention = false; ///< whether the layer has attention as well; results are added
  double inMultiplier = 1, outMultiplier = 1; ///< of what enters and of the result
  /// Of the gate, of x, B and C, and of the time steps.
  std::array<double, 5> multipliers = {1, 1, 1, 1, 1};

  int64_t inner() const { return heads * headDim; }
  /// Of x, B and C.
  int64_t channels() const { return inner() + 2 * groups * stateDim; }
};

/// A gated delta net in place of attention: linear attention by the gated delta rule over what a
/// causal convolution makes of queries, keys and values, with a time step per row and head that
/// sets the decay, a share beta, a norm per head and a gate.
struct DeltaNetConfig {
  int64_t keyHeads = 0, keyDim = 0;     ///< of queries and keys
  int64_t valueHeads = 0, valueDim = 0; ///< a multiple of the key heads
  int64_t taps = 0;                     ///< positions that a filter covers, the own one included
  double eps = 0;                       ///< of the norm
  double l2Eps = 1e-6;                  ///< of the lengths of queries and keys

  int64_t keys() const { return keyHeads * keyDim; }
  int64_t values() const { return valueHeads * valueDim; }
  /// Of queries, keys and values.
  int64_t channels() const { return 2 * keys() + values(); }
};

/// Bounds of what passes a gate, see mica.moe_experts.
struct ClampConfig {
  double alpha, limit;
};

/// down(activation(gate(x)) * up(x)), or down(activation(up(x))) where it is not gated.
struct DenseConfig {
  int64_t inner = 0; ///< I
  Activation activation = Activation::Silu;
  bool bias = false;
  bool gated = true;
  double gateMultiplier = 1, downMultiplier = 1;   ///< of what these make
  std::optional<ClampConfig> clamp = std::nullopt; ///< of experts only
};

struct SparseConfig {
  int64_t experts = 0;         ///< E
  int64_t expertsPerToken = 0; ///< k <= E
  Scoring scoring = Scoring::Softmax;
  bool routerBias = false, correctionBias = false;
  int64_t groups = 0, topkGroup = 0; ///< 0: experts are in no groups
  GroupScoring groupScoring = GroupScoring::Best;
  double multiplier = 1;     ///< of the chosen weights
  bool normalize = false;    ///< divide the chosen weights by their sum; already false where the
                             ///< family skips it at k = 1
  DenseConfig expert;        ///< each routed expert
  int64_t sharedExperts = 0; ///< always on
  bool sharedGate = false;   ///< whether a sigmoid gate weights the shared expert
  DenseConfig shared;        ///< each shared expert
};

/// Structure that layers share. Layers of one kind differ in their weights only.
struct LayerKind {
  std::string name;          ///< "dense", "sparse_sliding", ...: the layer function's name
  AttentionConfig attention; ///< of a kind without, that of the other layers
  std::variant<DenseConfig, SparseConfig, std::monostate> ffn; ///< none: monostate
  std::optional<ShortConvConfig> conv = std::nullopt;          ///< in place of attention
  std::optional<MambaConfig> mamba = std::nullopt;             ///< in place or beside
  std::optional<DeltaNetConfig> delta = std::nullopt;          ///< in place of attention

  bool hasAttention() const { return !conv && !delta && (!mamba || mamba->besideAttention); }
};

/// A table of positions that is added to the embeddings.
struct LearnedPositions {
  int64_t rows = 0;
};

/// What a model proposes for sampling; absent where it proposes nothing.
struct GenerationDefaults {
  std::optional<double> temperature, topP, minP, typicalP, repetitionPenalty;
  std::optional<int64_t> topK;
  std::optional<bool> doSample;
  std::optional<int64_t> bos;
  std::vector<int64_t> eos; ///< sorted, without repetitions
};

/// A key that was read and has no influence, and why.
struct IgnoredKey {
  std::string file, key, reason;
  bool missed = false; ///< The model's makers wanted something by it that a program does not do.
};

struct ModelConfig {
  std::string family;                     ///< for people: "llama", "minimind (generation 3)"
  std::string path;                       ///< the config.json or GGUF file it came from
  const GgufArchitecture *gguf = nullptr; ///< of a GGUF file
  int64_t vocab = 0;
  int64_t hidden = 0;       ///< C
  int64_t maxPositions = 0; ///< the model's own context length
  bool tiedHead = false;    ///< the output projection is the embedding
  double embeddingMultiplier = 1;
  double logitMultiplier = 1;
  std::optional<double> logitSoftcap;
  std::optional<LearnedPositions> positions;
  std::optional<int64_t> sinusoidOffset; ///< sines of position + offset are added to the embeddings
  std::optional<int64_t> paddingIdx;     ///< the position + offset that has none
  bool embeddingNorm = false;
  NormConfig norm; ///< of layers and before the head
  BlockConfig block;
  std::vector<LayerKind> kinds;      ///< in the order of their first layer
  std::vector<unsigned> layers;      ///< per layer, its kind
  int64_t numNextnPredictLayers = 0; ///< that the files have after these, and that are not computed
  std::optional<StoredType>
      type; ///< what the file calls its weights' type; the weights themselves decide
  GenerationDefaults generation;
  const NamingTable *names = nullptr;
  std::vector<IgnoredKey> ignored; ///< sorted by file and key
};

} // namespace mica

#endif // MICA_FRONTEND_FAMILIES_MODELCONFIG_H
