// What a program says about its model: the JSON that the compiler writes beside the code.
#ifndef MICA_BACKENDS_RUNTIME_ABI_MANIFEST_H
#define MICA_BACKENDS_RUNTIME_ABI_MANIFEST_H

#include "backends/runtime/support/Result.h"
#include "ir/Entry/EntryRoles.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mica::rt {

/// One cache argument of the forward function.
struct CacheSpec {
  std::string name;
  std::string element;        ///< "f32", "bf16" or "int8", whose scales are among the elements.
  std::vector<int64_t> shape; ///< Physical; `batchSize` and `blockCount` stand for run-time sizes.
  uint64_t bytesPerToken = 0; ///< Of one sequence.

  uint64_t elementBytes() const { return element == "f32" ? 4 : element == "bf16" ? 2 : 1; }

  static constexpr int64_t batchSize = -1;  ///< The number of sequences.
  static constexpr int64_t blockCount = -2; ///< ceil(maxSeq / positionBlock).
};

struct Manifest {
  std::string name, weights, kv;
  int64_t vocab = 0;
  int64_t maxSeq = 0;       ///< Positions per sequence.
  int64_t maxPositions = 0; ///< The most that `maxSeq` could be.
  std::string cpu;
  std::vector<std::string> features; ///< LLVM's names.
  /// Formats of weights in blocks, with the number of tensors, in words.
  std::vector<std::string> preservedBlocks;
  /// Types of the rows that multiply them, by role.
  std::vector<std::pair<std::string, std::string>> rows;
  /// What the forward function takes, in this order; as many caches as `caches` has.
  std::vector<EntryRole> arguments;
  std::vector<CacheSpec> caches;
  int64_t positionBlock = 64;
  uint64_t scratchBytesPerRow = 0, scratchBytesFixed = 0;
  uint64_t weightBytes = 0; ///< 0: not stated.
  uint64_t parameters = 0;  ///< Of the model as published; 0: not stated.
  /// Up to so many rows in one call, a row's results do not depend, to the bit, on the other rows.
  int64_t batchInvariantRows = 1;
  /// Rows of prompts are computed in another arithmetic than those of decoding.
  bool dependsOnRole = false;
  /// Where the forward function takes lengths: frequencies of a sequence longer than a threshold
  /// are others, for all of its rows. Ascending.
  std::vector<int64_t> ropeLengthThresholds;
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
    std::optional<std::string> toolTemplate; ///< Where one with tools becomes it in another way.
  };
  std::optional<Chat> chat;

  /// For the hint of what is too long: " or compile with a larger --max-seq" where that is
  /// possible.
  std::string largerContextHint() const;

  bool takesLengths() const;

  struct Cost {
    double weightBytesPerToken = 0; ///< Bytes of weights that one decoded token reads.
    /// Multiplications and additions in products with weights, and what logits of a row add.
    double flopsPerToken = 0, flopsPerLogits = 0;
    double kvBytesPerPosition =
        0; ///< Bytes of cache that one decoded token reads per position before it.
  } cost;

  std::string json; ///< The whole text, for `info --json`.
};

/// Bytes that a position of a sequence takes in all caches.
uint64_t cacheBytesPerToken(const Manifest &manifest);

/// Bytes of a call's buffers: scratch memory for all rows and the logits of some.
uint64_t bytesOfCall(const Manifest &manifest, int64_t rows, int64_t withLogits);

/// What they may be, as far as rows can be had in several calls: of the 64 MB that a program takes
/// beside weights and caches, code and the choice among 128 Ki tokens need their part.
inline constexpr uint64_t kMaxStepBytes = uint64_t(40) << 20;

/// Rows of a prompt per call: as many as are asked for, else 512, or by halves fewer where buffers,
/// with the logits of every row if `allLogits`, would take more than kMaxStepBytes.
int64_t prefillChunkSize(std::optional<int64_t> asked, const Manifest &manifest,
                         bool allLogits = false);

/// Errors name the key that is missing, of the wrong type or out of range.
Result<Manifest> parseManifest(std::string_view json);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_ABI_MANIFEST_H
