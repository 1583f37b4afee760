#include "backends/runtime/engine/PromptBudget.h"

#include <algorithm>

namespace mica::rt {

double PromptBudget::seconds(size_t numDecoding, size_t numPrompts) const {
  // Below 1, because times vary.
  constexpr double decodeShare = 0.8, maxFactor = 4;
  double prompts = static_cast<double>(numPrompts) / static_cast<double>(numDecoding);
  double decodeSeconds = numDecoding < decodeTimes.size() ? decodeTimes[numDecoding].seconds : 0;
  return decodeShare * std::clamp(prompts, 1.0, maxFactor) * decodeSeconds;
}

int64_t PromptBudget::rowsIn(double seconds, int64_t min) const {
  return static_cast<int64_t>(std::clamp(seconds * rowsPerSecond,
                                         static_cast<double>(std::min(min, maxRows)),
                                         static_cast<double>(maxRows)));
}

int64_t PromptBudget::rows(size_t numDecoding, size_t numPrompts, bool joined) const {
  if (numDecoding == 0)
    return maxRows;
  return rowsIn(seconds(numDecoding, numPrompts), joined && rowsPerSecond > 0 ? 1 : minRows);
}

int64_t PromptBudget::interruptibleRows() const {
  constexpr double maxSeconds = 0.25;
  int64_t rows = rowsIn(maxSeconds, minInterruptibleRows);
  return rows < minInterruptibleRows ? rows : rows - rows % minInterruptibleRows;
}

/// The mean of a quantity over recent steps, with `newest` added.
static double smoothed(double mean, double newest) {
  constexpr double weight = 0.25;
  return mean == 0 ? newest : mean + weight * (newest - mean);
}

PromptBudget::DecodeTime &PromptBudget::timeOf(size_t numDecoding) {
  if (numDecoding >= decodeTimes.size())
    decodeTimes.resize(numDecoding + 1);
  return decodeTimes[numDecoding];
}

bool PromptBudget::knowsDecode(size_t numDecoding) const {
  if (numDecoding >= decodeTimes.size())
    return false;
  const DecodeTime &time = decodeTimes[numDecoding];
  return time.seconds > 0 && time.numJoinedSince < time.maxJoined;
}

void PromptBudget::addDecode(size_t numDecoding, double seconds) {
  constexpr int64_t first = 4, last = 32;
  DecodeTime &time = timeOf(numDecoding);
  // Interruptions only make calls slower: the first times count as the fastest of them.
  bool isFaster = seconds < time.seconds && time.maxJoined < last;
  time.seconds = isFaster ? seconds : smoothed(time.seconds, seconds);
  time.maxJoined = std::clamp(2 * time.maxJoined, first, last);
  time.numJoinedSince = 0;
}

void PromptBudget::addPrompt(int64_t rows, double seconds) {
  if (rows > 0 && seconds > 0)
    rowsPerSecond = smoothed(rowsPerSecond, static_cast<double>(rows) / seconds);
}

void PromptBudget::addJoined(size_t numDecoding, int64_t numDecoded, int64_t rows, double seconds) {
  DecodeTime &time = timeOf(numDecoding);
  ++time.numJoinedSince;
  // A row of a prompt takes no more than the average row, to whose time reading the weights is
  // added. The lower bound keeps noise from making rows look free.
  double average = seconds * static_cast<double>(rows) / static_cast<double>(numDecoded + rows);
  addPrompt(rows, std::clamp(seconds - time.seconds, average / 4, average));
}

} // namespace mica::rt
