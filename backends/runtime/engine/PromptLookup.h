// Drafts the continuation of a text from its earlier occurrences.
#ifndef MICA_BACKENDS_RUNTIME_ENGINE_PROMPTLOOKUP_H
#define MICA_BACKENDS_RUNTIME_ENGINE_PROMPTLOOKUP_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace mica::rt {

/// Prompt lookup decoding (Saxena 2023): where the end of the text occurred before, what followed
/// there is drafted. The text runs beside that earlier one from then on: a token that was another
/// there, as the names in a list are, is skipped on both sides, and the next one that both have
/// says where they continue together. A draft costs rows of the model, so its length follows from
/// how often such drafts have been right: short matches and long ones are counted apart, in a text
/// that does not repeat itself only rare trials are left, and in a template what varies ends the
/// draft. The same text gives the same drafts everywhere: no clock is involved.
class PromptLookup {
public:
  using Tokens = std::vector<int32_t>;

  /// A row is drafted if its probability of acceptance is at least this.
  explicit PromptLookup(double minAcceptance);
  /// For a model with weights of that size. One more row costs 0.01 to 0.05 rows of its own where
  /// weights come from memory, up to 0.3 for a small model in the caches.
  static double defaultMinAcceptance(uint64_t weightBytes);

  /// The text grows by a token.
  void observe(int32_t token);
  /// At most `most` tokens that may follow; empty where no draft is likely to pay.
  Tokens draft(int64_t most);
  /// How many tokens at the beginning of the last draft were right.
  void learn(int64_t drafted, int64_t accepted);

private:
  struct Match {
    int64_t last = -1;  ///< where the matching text ends
    int64_t length = 0; ///< at most maxMatch
  };
  /// Where drafts come from: matches by their length, or the text beside which this one runs, after
  /// tokens that differ and after one that is the same.
  static constexpr size_t matchRecords = 8, differingRecord = 8, adjacentRecord = 9;
  /// How drafts after matches of some length have done; old news counts less.
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
  std::vector<int32_t> before; ///< of each token, where the same one occurred last; -1
  std::unordered_map<int32_t, int32_t> newest; ///< of each token, where it occurs last
  int64_t beside = -1; ///< what follows the last token that the text beside has; -1: there is none
  int64_t differing = 0; ///< tokens since then
  std::array<Record, adjacentRecord + 1> records;
  size_t used = 0; ///< the record that the last draft relied on
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_ENGINE_PROMPTLOOKUP_H
