// How much time prompts get beside the decoding of other requests.
//
// Computing rows of prompts delays the texts that are decoded by the time of those rows. The budget
// gives prompts about the time that decoding takes, so that the time between two tokens at most
// about doubles. If more slots compute prompts than decode, prompts get up to four times that time:
// otherwise most slots would wait for their prompts, and steps that read all weights would decode
// for one or two requests. Requests that wait for a slot have no influence, however many there are:
// more time for prompts then made steps longer, but hardly increased throughput.
//
// A call for prompts that is interrupted to decode can have many rows, and reads the weights once
// for all of them. Calls of several ranks cannot be interrupted: they have as many rows as take the
// time that prompts get.
//
// If prompts join the call that decodes, the time of decoding alone is measured in a call without
// prompts: for each number of decoding requests when it first occurs, soon again, as one time may
// be an outlier, and then from time to time, as texts become longer.
//
// How texts are computed does not depend on it: results do not depend on how prompts are split.
#ifndef MICA_BACKENDS_RUNTIME_ENGINE_PROMPTBUDGET_H
#define MICA_BACKENDS_RUNTIME_ENGINE_PROMPTBUDGET_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mica::rt {

class PromptBudget {
public:
  /// The minimum number of rows beside decoding: with fewer, reading the weights takes most of a
  /// call's time.
  static constexpr int64_t minRows = 8;

  /// The minimum number of rows of a call that is interrupted to decode.
  static constexpr int64_t minInterruptibleRows = 32;

  explicit PromptBudget(int64_t maxRows) : maxRows(maxRows) {}

  /// The time for prompts before the next tokens are decoded for `numDecoding` requests, if the
  /// prompts of `numPrompts` can be computed.
  double seconds(size_t numDecoding, size_t numPrompts) const;

  /// The number of rows of a call that is interrupted to decode, in [1, maxRows]: as many as take
  /// about a quarter of a second without the interruptions, because requests that arrive wait for
  /// its end; but at least minInterruptibleRows, and a multiple of it.
  int64_t interruptibleRows() const;

  /// The number of rows for prompts, in [1, maxRows], if a step decodes for `numDecoding` requests
  /// and can compute the prompts of `numPrompts`. `joined`: in the call that decodes, where few
  /// rows cost little, since the weights are read anyway.
  int64_t rows(size_t numDecoding, size_t numPrompts, bool joined = false) const;

  /// Whether the time to decode for `numDecoding` requests has been measured recently. If it has
  /// not, the next call should only decode.
  bool knowsDecode(size_t numDecoding) const;
  /// A call without prompts, or several, took `seconds` to decode for `numDecoding` requests.
  void addDecode(size_t numDecoding, double seconds);
  /// A step that also decodes took `seconds` for `rows` rows of prompts in calls of their own,
  /// without the time of decoding between their kernels.
  void addPrompt(int64_t rows, double seconds);
  /// A call took `seconds` for `numDecoded` rows of `numDecoding` requests and `rows` rows of
  /// prompts.
  void addJoined(size_t numDecoding, int64_t numDecoded, int64_t rows, double seconds);

private:
  /// The time of decoding for a number of requests.
  struct DecodeTime {
    double seconds = 0;         ///< Of recent steps; 0: unknown.
    int64_t numJoinedSince = 0; ///< Calls with joined prompts since it was measured.
    int64_t maxJoined = 0;      ///< The number of such calls until it is measured again.
  };
  DecodeTime &timeOf(size_t numDecoding);
  /// The number of rows that take `seconds`, in [min, maxRows].
  int64_t rowsIn(double seconds, int64_t min) const;

  int64_t maxRows;
  std::vector<DecodeTime> decodeTimes; ///< By the number of requests.
  double rowsPerSecond = 0;            ///< In recent calls beside decoding; 0: unknown.
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_ENGINE_PROMPTBUDGET_H
