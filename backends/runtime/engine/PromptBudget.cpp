#include "backends/runtime/engine/PromptBudget.h"

#include <algorithm>

namespace mica::rt {

int64_t PromptBudget::rows(size_t numDecoding, size_t numPrompts, bool joined) const {
  if (numDecoding == 0)
    return maxRows;
  int64_t min = std::min(maxRows, joined && rowsPerSecond > 0 ? 1 : minRows);
  // Below 1, because times vary.
  constexpr double decodeShare = 0.8, maxFactor = 4;
  double prompts = static_cast<double>(numPrompts) / static_cast<double>(numDecoding);
  double share = decodeShare * std::clamp(prompts, 1.0, maxFactor);
  double affordable = share * decodeSeconds * rowsPerSecond;
  return std::min(maxRows,
                  static_cast<int64_t>(std::clamp<double>(affordable, static_cast<double>(min),
                                                          static_cast<double>(maxRows))));
}

/// The mean of a quantity over recent steps, with `newest` added.
static double smoothed(double mean, double newest) {
  constexpr double weight = 0.25;
  return mean == 0 ? newest : mean + weight * (newest - mean);
}

bool PromptBudget::knowsDecode(size_t numDecoding) const {
  return decodeSeconds > 0 && numMeasured == numDecoding && numJoinedSince < maxJoined;
}

void PromptBudget::addDecode(size_t numDecoding, double seconds) {
  constexpr int64_t first = 4, last = 32;
  bool changed = numMeasured != numDecoding;
  // Interruptions only make calls slower: the first times count as the fastest of them.
  if (!changed && seconds < decodeSeconds && maxJoined < last)
    decodeSeconds = seconds;
  else
    decodeSeconds = smoothed(changed ? 0 : decodeSeconds, seconds);
  maxJoined = changed ? first : std::min(2 * maxJoined, last);
  numMeasured = numDecoding;
  numJoinedSince = 0;
}

void PromptBudget::addPrompt(int64_t rows, double seconds) {
  if (rows > 0 && seconds > 0)
    rowsPerSecond = smoothed(rowsPerSecond, static_cast<double>(rows) / seconds);
}

void PromptBudget::addJoined(int64_t numDecoded, int64_t rows, double seconds) {
  ++numJoinedSince;
  // A row of a prompt takes no more than the average row, to whose time reading the weights is
  // added. The lower bound keeps noise from making rows look free.
  double average = seconds * static_cast<double>(rows) / static_cast<double>(numDecoded + rows);
  addPrompt(rows, std::clamp(seconds - decodeSeconds, average / 4, average));
}

} // namespace mica::rt
