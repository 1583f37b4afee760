//===- ModelConfig.h - a checked description of a decoder -------*- C++ -*-===//
//
// The content of a config.json or a GGUF file, typed and checked, in the terms of the dialect
// (Pairing, NormRounding, Activation, Scoring). No field names a model family: the importer depends
// only on this. Letters as in the formulas: C hidden size, H query heads, G key/value heads, D head
// size, I inner size, E experts.
//
//===----------------------------------------------------------------------===//
#ifndef MICA_FRONTEND_FAMILIES_MODELCONFIG_H
#define MICA_FRONTEND_FAMILIES_MODELCONFIG_H

#include "frontend/families/NamingTable.h"
#include "frontend/families/RopeScaling.h"
#include "frontend/formats/tensors/TensorInfo.h"
#include "ir/Mica/Mica.h"
#include "ir/Mica/ModelDescription.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace mica {

struct GgufArchitecture;

/// Keys and values that are projected from a latent (MLA), and a rotated part of the keys that all
/// heads share.
struct LatentConfig {
  int64_t queryRank = 0;                        ///< of the queries' latent; 0: none
  int64_t rank = 0;                             ///< of keys and values
  int64_t qkNopeHeadDim = 0, qkRopeHeadDim = 0; ///< of a head of queries and keys
  bool bias = false;                            ///< of the projections to latents
};

enum class NormKind { Rms, Layer };

struct NormConfig {
  NormKind kind = NormKind::Rms;
  double eps = 0;
  NormRounding rounding = NormRounding::BeforeWeight; ///< of Rms
  double weightOffset = 0;                            ///< of Rms: weights are w + offset
  bool bias = false;                                  ///< of Layer
};

/// How queries and keys are normalized: per head with a common weight, per head with a weight for
/// each head, or over all heads.
enum class QkNorm { None, PerHead, OwnPerHead, AllHeads };

/// Whether attention and MLP read the same residual stream (parallel residual), and with which
/// norms.
enum class Parallel { No, SharedNorm, OwnNorms };

/// Norms and multipliers of attention and MLP blocks.
struct BlockConfig {
  bool preNorms = true;   ///< of what enters
  bool postNorms = false; ///< of what is added to the stream
  Parallel parallel = Parallel::No;
  double residualMultiplier = 1; ///< of what is added to the stream
  bool layerScalar = false;      ///< layers end with a multiplication by a number of the model
};

struct AttentionConfig {
  int64_t heads = 0;    ///< H
  int64_t kvHeads = 0;  ///< G, divides H
  int64_t headDim = 0;  ///< D; H * D need not be C
  int64_t valueDim = 0; ///< of a head of values; usually D
  double scale = 0;     ///< of the scores, 1/sqrt(D) unless the family says otherwise
  bool qkvBias = false;
  bool outBias = false;
  QkNorm qkNorm = QkNorm::None;
  NormConfig norm; ///< of queries and keys, if they are normalized
  RopeConfig rope;
  std::optional<int64_t> window; ///< number of positions attended to, including its own
  std::optional<double> softcap; ///< of the scores
  std::vector<double> slopes;    ///< of ALiBi, one per query head; empty without it
  bool sinks = false;
  double inMultiplier = 1, outMultiplier = 1; ///< of what enters and of the result
  bool outputGate = false;    ///< results are multiplied by the sigmoid of a gate per element
  bool valuesAreKeys = false; ///< values are the projections to keys, before norm and rope
  bool sharesCache = false;   ///< keys and values are those that an earlier layer has cached
  /// If values are divided by their root mean square, the number added to the mean.
  std::optional<double> valueEps;
  std::optional<LatentConfig> latent;
};

/// A gated causal convolution instead of attention: out(c * conv(b * x)), where b, c and x are
/// projections of the stream.
struct ShortConvConfig {
  int64_t taps = 0;  ///< positions that a filter covers, the own one included
  bool bias = false; ///< of the filters and of the projections
};

/// Mamba 2 instead of attention: linear attention on the output of a causal convolution of x, B and
/// C, with a time step per row and head that determines the decay.
struct MambaConfig {
  int64_t heads = 0, headDim = 0; ///< of x
  int64_t groups = 0;             ///< of B and C, and of the norm; divides the heads
  int64_t stateDim = 0;           ///< of a group of B and C
  int64_t taps = 0;               ///< positions that a filter covers, the own one included
  bool bias = false;              ///< of the input projections
  bool outBias = false;           ///< of the output projection
  bool convBias = false;
  double eps = 0;                   ///< of the norm
  bool hasNorm = true;              ///< whether there is one
  bool gatesFirst = true;           ///< whether the norm is applied after the gate
  bool parallelToAttention = false; ///< whether the layer has attention as well; results are added
  double inMultiplier = 1, outMultiplier = 1; ///< of what enters and of the result
  /// Multipliers of the gate, of x, B and C, and of the time steps.
  std::array<double, 5> multipliers = {1, 1, 1, 1, 1};

  int64_t inner() const { return heads * headDim; }
  /// The number of channels of x, B and C.
  int64_t channels() const { return inner() + 2 * groups * stateDim; }
};

/// A gated delta net instead of attention: linear attention with the gated delta rule on the output
/// of a causal convolution of queries, keys and values, with a time step per row and head that
/// determines the decay, a gate beta, a norm per head and an output gate.
struct DeltaNetConfig {
  int64_t keyHeads = 0, keyDim = 0;     ///< of queries and keys
  int64_t valueHeads = 0, valueDim = 0; ///< a multiple of the key heads
  int64_t taps = 0;                     ///< positions that a filter covers, the own one included
  double eps = 0;                       ///< of the norm
  double l2Eps = 1e-6;                  ///< of the L2 norm of queries and keys
  /// Whether value head i shares key head i mod keyHeads, instead of consecutive value heads one.
  bool headsInterleaved = false;

  int64_t keys() const { return keyHeads * keyDim; }
  int64_t values() const { return valueHeads * valueDim; }
  /// The number of channels of queries, keys and values.
  int64_t channels() const { return 2 * keys() + values(); }
};

/// Parameters of clamped experts; see mica.moe_experts.
struct ClampConfig {
  double alpha, limit;
};

/// down(activation(gate(x)) * up(x)), or down(activation(up(x))) if not gated.
struct DenseConfig {
  int64_t inner = 0; ///< I
  Activation activation = Activation::Silu;
  bool bias = false;
  bool gated = true;
  double gateMultiplier = 1, downMultiplier = 1;   ///< factors of the results of gate and down
  std::optional<ClampConfig> clamp = std::nullopt; ///< of experts only
};

/// A gated embedding of the token that a layer adds: norm(out(activation(gate(x)) * e)), where e is
/// the part of this layer in (norm(projection(embedding)) + table[token]) / sqrt(2), and the rows
/// of projection and table have `dim` numbers for each layer.
struct PerLayerConfig {
  int64_t dim = 0;
  Activation activation = Activation::Silu;
};

struct SparseConfig {
  int64_t experts = 0;         ///< E
  int64_t expertsPerToken = 0; ///< k <= E
  Scoring scoring = Scoring::Softmax;
  bool routerBias = false, correctionBias = false;
  int64_t groups = 0, topkGroup = 0; ///< 0: no groups
  GroupScoring groupScoring = GroupScoring::Best;
  double multiplier = 1;  ///< of the weights of selected experts
  bool normalize = false; ///< divide the chosen weights by their sum; already false where the
                          ///< family skips it at k = 1
  std::optional<double> normalizeEps; ///< is added to that sum; none: negligible
  DenseConfig expert;                 ///< each routed expert
  int64_t latent = 0;        ///< the width of the latents that routed experts read; 0: the stream
  int64_t sharedExperts = 0; ///< number of experts that are always active
  bool sharedGate = false;   ///< whether a sigmoid gate weights the shared expert
  DenseConfig shared;        ///< each shared expert
  /// A dense network beside the experts. What enters the experts, and the results of both, then
  /// have norms of their own; the router reads the stream after a norm with its own weight, divided
  /// by sqrt(C), and has a factor for each expert.
  std::optional<DenseConfig> dense = std::nullopt;
};

/// A layer type. Layers of the same type differ only in their weights.
struct LayerType {
  std::string name;          ///< "dense", "sparse_sliding", ...: the layer function's name
  AttentionConfig attention; ///< for types without attention, that of the other layers
  std::variant<DenseConfig, SparseConfig, std::monostate> ffn; ///< monostate: none
  /// In place of attention, or beside it (MambaConfig::parallelToAttention). monostate: none.
  std::variant<std::monostate, ShortConvConfig, MambaConfig, DeltaNetConfig> stateMixer = {};
  std::optional<PerLayerConfig> perLayer = std::nullopt; ///< after the feed-forward network
  bool mixes = true; ///< false: the layer has a feed-forward network only

  /// Null if the layer has another one or none.
  template <typename Config> const Config *mixer() const {
    return std::get_if<Config>(&stateMixer);
  }
  bool hasStateMixer() const { return !std::holds_alternative<std::monostate>(stateMixer); }
  bool hasAttention() const {
    const auto *mamba = mixer<MambaConfig>();
    return mixes && (!hasStateMixer() || (mamba && mamba->parallelToAttention));
  }
};

/// A table of positions that is added to the embeddings.
struct LearnedPositions {
  int64_t rows = 0;
};

/// The content of generation_config.json: recommended sampling settings, and end tokens.
struct GenerationDefaults : SamplingDefaults {
  std::optional<int64_t> bos;
  std::vector<int64_t> eos; ///< sorted, without repetitions
};

/// A key that has no effect, and the reason.
struct IgnoredKey {
  std::string file, key, reason;
  bool missed = false;    ///< the key requests something that programs do not support
  std::string value = ""; ///< as JSON; only of keys that a family lists
};

struct ModelConfig {
  std::string family;                     ///< for display: "llama", "minimind (generation 3)"
  std::string path;                       ///< path of the config.json or GGUF file
  const GgufArchitecture *gguf = nullptr; ///< of a GGUF file
  int64_t vocab = 0;
  int64_t hidden = 0;       ///< C
  int64_t maxPositions = 0; ///< the model's own context length
  bool tiedHead = false;    ///< the output projection is the embedding
  double embeddingMultiplier = 1;
  double logitMultiplier = 1;
  std::optional<double> logitSoftcap;
  std::optional<LearnedPositions> positions;
  std::optional<int64_t> sinusoidOffset; ///< sinusoids of position + offset are added to the
                                         ///< embeddings
  std::optional<int64_t> paddingIdx;     ///< the position + offset whose sinusoid is zero
  int64_t perLayerVocab = 0; ///< rows of the table of layers' embeddings, if they have any
  bool embeddingNorm = false;
  NormConfig norm; ///< of layers and before the head
  BlockConfig block;
  std::vector<LayerType> layerTypes; ///< in the order of their first layer
  std::vector<unsigned> layers;      ///< index in `layerTypes` by layer
  int64_t numNextnPredictLayers = 0; ///< further layers in the files, which are not computed
  std::optional<StoredType>
      type; ///< type of weights stated by the config; the actual types are those of the tensors
  GenerationDefaults generation;
  const NamingTable *names = nullptr;
  std::optional<NamingTable> mtpNames; ///< of the layer of a multi-token prediction head; absent if
                                       ///< the head is left out
  std::vector<IgnoredKey> ignored;     ///< sorted by file and key
};

} // namespace mica

#endif // MICA_FRONTEND_FAMILIES_MODELCONFIG_H
