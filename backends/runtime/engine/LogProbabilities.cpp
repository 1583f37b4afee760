#include "backends/runtime/engine/LogProbabilities.h"
#include "backends/runtime/engine/ExpOfNegative.h"
#include "backends/runtime/engine/HeapOfFirst.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <ranges>

namespace mica::rt {

/// The tokens with the `count` largest logits, sorted; of equal logits, lower ids come first.
static std::vector<int32_t> mostLikely(std::span<const float> logits, size_t count) {
  auto precedes = [&](int32_t a, int32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  };
  auto tokens = std::views::iota(0, static_cast<int32_t>(logits.size()));
  std::vector<int32_t> found = heapOfFirst(tokens, count, precedes);
  std::sort_heap(found.begin(), found.end(), precedes);
  return found;
}

/// The logarithm of the sum of all exponentials.
static double logSumExp(std::span<const float> logits) {
  float largest = *std::max_element(logits.begin(), logits.end());
  std::array<double, 16> sums{}; // independent ones, for vector instructions
  size_t whole = logits.size() / sums.size() * sums.size();
  for (size_t i = 0; i < whole; i += sums.size())
    for (size_t j = 0; j < sums.size(); ++j)
      sums[j] += expOfNegative(largest - logits[i + j]);
  for (size_t i = whole; i < logits.size(); ++i)
    sums[0] += expOfNegative(largest - logits[i]);
  return largest + std::log(std::accumulate(sums.begin(), sums.end(), 0.0));
}

LogProbabilities logProbabilities(std::span<const float> logits, int32_t token, size_t count) {
  double normalizer = logSumExp(logits);
  LogProbabilities out{double(logits[token]) - normalizer, {}};
  for (int32_t other : mostLikely(logits, count))
    out.top.emplace_back(other, double(logits[other]) - normalizer);
  return out;
}

} // namespace mica::rt
