// The description of a program's model: JSON that the compiler stores next to the code.
#ifndef MICA_BACKENDS_RUNTIME_ABI_MANIFEST_H
#define MICA_BACKENDS_RUNTIME_ABI_MANIFEST_H

#include "backends/runtime/support/Result.h"
#include "ir/Entry/EntryRoles.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mica::rt {

/// One cache argument of the forward function.
struct CacheSpec {
  std::string name;
  std::string element; ///< "f32", "bf16" or "int8", whose scales are among the elements.
  std::vector<int64_t>
      shape; ///< Physical; `batchSize` and `blockCount` are placeholders for run-time sizes.
  uint64_t bytesPerToken = 0; ///< Of one sequence.
  int64_t window = 0;         ///< The model reads so many positions up to a row's own; 0: all.
  int64_t slots =
      0; ///< Positions that the ring of a state of fixed size holds; 0: see blocksOfCache.

  uint64_t elementBytes() const { return element == "f32" ? 4 : element == "bf16" ? 2 : 1; }

  static constexpr int64_t batchSize = -1;  ///< The number of sequences.
  static constexpr int64_t blockCount = -2; ///< See blocksOfCache.
};

struct Manifest {
  std::string name, weights, kv;
  int64_t vocab = 0;
  int64_t maxSeq = 0;       ///< Positions per sequence.
  int64_t maxPositions = 0; ///< The most that `maxSeq` could be.
  std::string cpu;
  std::vector<std::string> features; ///< LLVM's names.
  /// Formats of preserved blocks with their number of tensors, as text.
  std::vector<std::string> preservedBlocks;
  /// Types of the rows that multiply them, by role.
  std::vector<std::pair<std::string, std::string>> rows;
  /// What the forward function takes, in this order; as many caches as `caches` has.
  std::vector<EntryRole> arguments;
  std::vector<CacheSpec> caches;
  int64_t positionBlock = 64;
  /// Caches with a window keep enough to take back so many positions of a sequence.
  int64_t rewindPositions = 0;
  uint64_t scratchBytesPerRow = 0, scratchBytesFixed = 0;
  uint64_t weightBytes = 0; ///< 0: not stated.
  uint64_t parameters = 0;  ///< Of the model as published; 0: not stated.
  /// Up to this many rows in a call, a row's results are bit-identical whatever the other rows are
  /// and whatever the processor is.
  int64_t batchInvariantRows = 1;
  /// Rows of prompts are computed in different arithmetic than those of decoding.
  bool dependsOnRole = false;
  /// If the forward function takes lengths: the
  /// sequence lengths beyond which rope has different frequencies, ascending.
  std::vector<int64_t> ropeLengthThresholds;
  /// By the names that profiles give them, kernels and products of oneDNN with the places in the
  /// model of what runs them; empty: not stated.
  std::map<std::string, std::vector<std::string>> kernels;
  std::optional<int32_t> bos;
  std::vector<int32_t> eos;

  struct Generation {
    std::optional<double> temperature, topP, minP, typicalP, repetitionPenalty;
    std::optional<int64_t> topK;
    std::optional<bool> doSample;
  } generation;

  /// How a conversation becomes a text (runtime/text/jinja).
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

  struct Cost {
    double weightBytesPerToken = 0; ///< Bytes of weights that one decoded token reads.
    /// Floating-point operations in products with weights, and those that the logits of a row add.
    double flopsPerToken = 0, flopsPerLogits = 0;
    double kvBytesPerPosition =
        0; ///< Bytes of cache that one decoded token reads per position before it.
  } cost;

  std::string json; ///< The whole text, for `info --json`.
};

/// Bytes that a position of a sequence takes in all caches.
uint64_t cacheBytesPerToken(const Manifest &manifest);

/// Blocks of positions of a sequence that a cache has memory for, where a call of the model has at
/// most `rows` rows of a prompt, and of decoding at most batchInvariantRows of a sequence: those of
/// the whole context, or, with a window, a ring of what the rows see and of what may be taken back.
int64_t blocksOfCache(const Manifest &manifest, const CacheSpec &cache, int64_t rows);

/// Positions of a sequence that a cache has memory for.
int64_t positionsOfCache(const Manifest &manifest, const CacheSpec &cache, int64_t rows);

/// Bytes that a sequence of any length takes in a state of fixed size; 0 for others.
uint64_t stateBytes(const CacheSpec &cache);
uint64_t stateBytesPerSequence(const Manifest &manifest);

/// Bytes of the caches of a sequence, without padding.
uint64_t cacheBytesPerSequence(const Manifest &manifest, int64_t rows);

/// Bytes of a call's buffers: scratch memory for all rows and the logits of some.
uint64_t bytesOfCall(const Manifest &manifest, int64_t rows, int64_t withLogits);

/// Their limit, as far as rows can be split into calls: of the 64 MB that
/// a program takes besides weights and caches, code and sampling from 128 Ki tokens need a part.
inline constexpr uint64_t kMaxStepBytes = uint64_t(40) << 20;

/// Rows of a prompt per call, unless more are requested.
inline constexpr int64_t kMaxPromptRows = 512;

/// Rows of a prompt per call: as requested, else kMaxPromptRows, halved until
/// the buffers, with the logits of every row if `allLogits`, take at most kMaxStepBytes.
int64_t prefillChunkSize(std::optional<int64_t> asked, const Manifest &manifest,
                         bool allLogits = false);

/// Errors name the key that is missing, of the wrong type or out of range.
Result<Manifest> parseManifest(std::string_view json);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_ABI_MANIFEST_H
