#include "backends/runtime/engine/PromptBudget.h"

#include <algorithm>

namespace mica::rt {

int64_t PromptBudget::rows(size_t numDecoding, size_t numPrompts) const {
  if (numDecoding == 0)
    return maxRows;
  // Below 1, because times vary.
  constexpr double decodeShare = 0.8, maxFactor = 4;
  double prompts = static_cast<double>(numPrompts) / static_cast<double>(numDecoding);
  double share = decodeShare * std::clamp(prompts, 1.0, maxFactor);
  double affordable = share * decodeSeconds * rowsPerSecond;
  return std::min(maxRows,
                  static_cast<int64_t>(std::clamp<double>(affordable, static_cast<double>(minRows),
                                                          static_cast<double>(maxRows))));
}

/// The mean of a quantity over recent steps, with `newest` added.
static double smoothed(double mean, double newest) {
  constexpr double weight = 0.25;
  return mean == 0 ? newest : mean + weight * (newest - mean);
}

void PromptBudget::addDecode(double seconds) { decodeSeconds = smoothed(decodeSeconds, seconds); }

void PromptBudget::addPrompt(int64_t rows, double seconds) {
  if (rows > 0 && seconds > 0)
    rowsPerSecond = smoothed(rowsPerSecond, static_cast<double>(rows) / seconds);
}

} // namespace mica::rt
