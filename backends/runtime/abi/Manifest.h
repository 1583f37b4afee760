// The description of a program's model: JSON that the compiler stores next to the code.
#ifndef MICA_BACKENDS_RUNTIME_ABI_MANIFEST_H
#define MICA_BACKENDS_RUNTIME_ABI_MANIFEST_H

#include "backends/runtime/support/Result.h"
#include "ir/Entry/EntryRoles.h"
#include "ir/Entry/Precision.h"
#include "ir/Entry/SamplingDefaults.h"

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mica::rt {

/// One cache argument of the forward function.
struct CacheSpec {
  std::string name;
  Precision element = Precision::F32; ///< scales of integers are part of the buffer
  std::vector<int64_t>
      shape; ///< Physical; `batchSize` and `blockCount` are placeholders for run-time sizes.
  uint64_t bytesPerToken = 0; ///< Of one sequence.
  /// Bytes that a step reads per position of a sequence: of layers that read the cache of an
  /// earlier one as well.
  uint64_t bytesReadPerPosition = 0;
  int64_t window = 0; ///< Positions up to a row's own that the model reads; 0: all.
  int64_t slots = 0;  ///< positions in the ring buffer of a state of fixed size; 0: see
                      ///< blocksOfCache
  /// Of a recurrent state [layers, sequences, heads, elements] in f32: the number of elements of a
  /// matrix, two of which precede the ring buffer, and the positions between matrices; else 0.
  int64_t matrix = 0, chunk = 0;

  uint64_t elementBytes() const;

  static constexpr int64_t batchSize = -1;  ///< The number of sequences.
  static constexpr int64_t blockCount = -2; ///< See blocksOfCache.
};

struct Manifest {
  std::string name;
  /// Of matrices whose blocks are not preserved; see weightsText and otherWeights for display.
  Precision weights = Precision::F32;
  Precision kv = Precision::F32;
  int64_t vocab = 0;
  int64_t maxSeq = 0;       ///< Positions per sequence.
  int64_t maxPositions = 0; ///< The upper limit of `maxSeq`.
  std::string cpu;
  std::vector<std::string> features; ///< LLVM's names.
  /// The number of the checkpoint's tensors in each block format, and in each type of floats.
  std::map<std::string, int64_t> blockFormats, floatTypes;
  /// Types of the activations multiplied by weights in blocks, by role.
  std::vector<std::pair<std::string, std::string>> rows;
  /// The arguments of the forward function in order; with as many caches as `caches` has.
  std::vector<EntryRole> arguments;
  std::vector<CacheSpec> caches;
  int64_t positionBlock = 64;
  /// The number of positions of a sequence that can be rewound in caches with a window.
  int64_t rewindPositions = 0;
  /// Of scratch memory: per row of a call, per row with logits in addition, and for any call.
  uint64_t scratchBytesPerRow = 0, scratchBytesPerOutput = 0, scratchBytesFixed = 0;
  uint64_t weightBytes = 0; ///< Of one rank; 0: not stated.
  int64_t ranks = 1;        ///< The number of processes that run the program together.
  /// The weights that every rank has, by name with `*` for the numbers of layers, and their bytes
  /// on one rank; empty if there is only one.
  std::map<std::string, uint64_t> replicated;
  uint64_t paddingBytes = 0;   ///< Of the weights of a rank: fills groups of columns.
  uint64_t unshardedBytes = 0; ///< Of the weights of all ranks, each once, without padding.
  uint64_t parameters = 0;     ///< Of the model as published; 0: not stated.
  /// Up to this many rows in a call, a row's results are bit-identical for any other rows and on
  /// any processor.
  int64_t batchInvariantRows = 1;
  /// Prefill and decode use different arithmetic.
  bool dependsOnRole = false;
  /// The width of the rows of a multi-token prediction head; 0 without one.
  int32_t hidden = 0;
  /// If the forward function takes lengths: the
  /// sequence lengths beyond which rope has different frequencies, ascending.
  std::vector<int64_t> ropeLengthThresholds;
  /// Beyond the threshold, the frequencies of a row are those of its exact sequence length.
  bool ropeThetaGrows = false;
  /// Kernels and oneDNN matmuls by the name that profiles use, with the locations in the model of
  /// the ops that run them; empty: unknown.
  std::map<std::string, std::vector<std::string>> kernels;
  std::optional<int32_t> bos;
  std::vector<int32_t> eos;

  SamplingDefaults generation;

  /// The chat template (runtime/text/jinja).
  struct Chat {
    std::string chatTemplate;
    std::vector<std::pair<std::string, std::string>> specialTokens; ///< Variables of the template.
    std::optional<std::string> toolTemplate; ///< For conversations with tools, if different.
  };
  std::optional<Chat> chat;

  /// The end of a hint for an input that is
  /// too long: " or compile with a larger --max-seq" if possible.
  std::string largerContextHint() const;

  bool takesLengths() const;
  /// Whether the code has a multi-token prediction head (RowRole::Draft).
  bool canDraft() const { return hidden > 0; }

  struct Cost {
    double weightBytesPerToken = 0; ///< Bytes of weights read per decoded token.
    /// Floating-point operations of matmuls with weights, and those that the logits of a row add.
    double flopsPerToken = 0, flopsPerLogits = 0;
  } cost;

  std::string json; ///< The whole text, for `info --json`.
};

/// The names of the preserved block formats, the one with most tensors first: "q4_k, q6_k"; the
/// precision of the weights if there are none.
std::string weightsText(const Manifest &manifest);

/// The precision of matrices next to preserved blocks; nullopt if there are no blocks, or no
/// weights of that type.
std::optional<Precision> otherWeights(const Manifest &manifest);

/// The phase in which a row role is computed, for display: "prefill" for `prompt`.
std::string phaseText(std::string_view role);

/// Bytes per position of a sequence in all caches.
uint64_t cacheBytesPerToken(const Manifest &manifest);

/// The number of blocks of positions per sequence in a cache, if a call of the model has at most
/// `rows` rows of a prompt, and at most batchInvariantRows decoded rows of a sequence: enough for
/// the whole context or, with a window, a ring buffer for the positions that rows attend to and
/// those that can be rewound.
int64_t blocksOfCache(const Manifest &manifest, const CacheSpec &cache, int64_t rows);

/// The number of positions per sequence in a cache.
int64_t positionsOfCache(const Manifest &manifest, const CacheSpec &cache, int64_t rows);

/// Bytes per sequence in a state of fixed size; 0 for others.
uint64_t stateBytes(const CacheSpec &cache);
uint64_t stateBytesPerSequence(const Manifest &manifest);

/// Bytes of a checkpoint of a state of fixed size, see StateCheckpoints; 0 for others.
uint64_t checkpointBytes(const CacheSpec &cache);
uint64_t checkpointBytes(const Manifest &manifest);
/// Lengths of sequences at which checkpoints of the state are possible are multiples of this.
int64_t checkpointUnit(const CacheSpec &state);

/// Bytes of the caches of a sequence, without padding; of one or of all of them.
uint64_t cacheBytesPerSequence(const Manifest &manifest, const CacheSpec &cache, int64_t rows);
uint64_t cacheBytesPerSequence(const Manifest &manifest, int64_t rows);

/// Bytes of the scratch memory of a call, of whose rows some have logits.
uint64_t scratchBytes(const Manifest &manifest, int64_t rows, int64_t withLogits);

/// Bytes of a call's buffers: scratch memory, and the logits.
uint64_t bytesOfCall(const Manifest &manifest, int64_t rows, int64_t withLogits);

/// The limit of bytesOfCall, if rows can be split into several calls. A program should need at most
/// 64 MB besides weights and caches, which includes code and sampling from a vocabulary of 128 Ki
/// tokens, and a server as much again as the buffers of a call.
inline constexpr uint64_t kMaxStepBytes = uint64_t(40) << 20;

/// The default maximum number of rows of a prompt per call.
inline constexpr int64_t kMaxPromptRows = 512;

/// The number of rows of a prompt per call: `asked`, else kMaxPromptRows, halved until the buffers,
/// with the logits of every row if `allLogits`, take at most kMaxStepBytes.
int64_t prefillChunkSize(std::optional<int64_t> asked, const Manifest &manifest,
                         bool allLogits = false);

/// Parses a manifest. Errors name the key that is missing, of the wrong type or out of range.
Result<Manifest> parseManifest(std::string_view json);

/// Parses only the part of a manifest that determines the memory of caches. Errors: as
/// parseManifest.
Result<Manifest> parseCaches(const nlohmann::json &json);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_ABI_MANIFEST_H
