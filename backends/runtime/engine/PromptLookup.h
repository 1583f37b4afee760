// Drafts the continuation of a text from its earlier occurrences.
#ifndef MICA_BACKENDS_RUNTIME_ENGINE_PROMPTLOOKUP_H
#define MICA_BACKENDS_RUNTIME_ENGINE_PROMPTLOOKUP_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace mica::rt {

/// Prompt lookup decoding (Saxena 2023): if the end of the text has occurred before, the tokens
/// that followed that occurrence are drafted. From then on the text is aligned with the earlier
/// occurrence: a token that differs, such as a name in a list, is skipped on both sides, and the
/// next token that both have in common shows where they continue together. A draft costs rows of
/// the model, so its length depends on the acceptance rate of similar drafts. Short and long
/// matches are counted separately; in a text without repetitions only rare trials remain, and in a
/// template the draft ends where the text varies. Drafts depend on the text alone, not on timing.
class PromptLookup {
public:
  using Tokens = std::vector<int32_t>;

  /// A row is drafted if its probability of acceptance is at least this.
  explicit PromptLookup(double minAcceptance);
  /// For a model with weights of that size. An additional row costs 0.01 to 0.05 of a single row if
  /// weights are read from memory, up to 0.3 for a small model in the caches.
  static double defaultMinAcceptance(uint64_t weightBytes);

  /// Appends a token to the text.
  void observe(int32_t token);
  /// Drafts at most `maxTokens` tokens; empty if no draft is likely to pay off.
  Tokens draft(int64_t maxTokens);
  /// Reports how many tokens of the last draft were accepted.
  void learn(int64_t drafted, int64_t accepted);

private:
  struct Match {
    int64_t last = -1;  ///< the last position of the matching text
    int64_t length = 0; ///< at most maxMatch
  };
  /// The sources of drafts: matches by their length, or the aligned text, after differing tokens
  /// and after an equal token.
  static constexpr size_t matchRecords = 8, differingRecord = 8, adjacentRecord = 9;
  /// The acceptance of drafts from a source; older results have less weight.
  struct Record {
    double right = 0, wrong = 0;
    int64_t when = 0; ///< the length of the text when it was written
  };

  void followAdjacent(int32_t token);
  Match longestMatch() const;
  double likelihood(size_t record) const;
  static size_t recordOf(int64_t matchLength);

  double minAcceptance;
  Tokens text;
  std::vector<int32_t> before; ///< per position, the previous occurrence of its token, or -1
  std::unordered_map<int32_t, int32_t> newest; ///< per token, its last occurrence
  int64_t aligned = -1;  ///< the position in the aligned text after the last common token; -1: none
  int64_t differing = 0; ///< differing tokens since then
  std::array<Record, adjacentRecord + 1> records;
  size_t used = 0; ///< the record of the last draft's source
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_ENGINE_PROMPTLOOKUP_H
