#include "backends/runtime/engine/LogProbabilities.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace mica::rt {

LogProbabilities logProbabilities(std::span<const float> logits, int32_t token, size_t count) {
  double largest = *std::max_element(logits.begin(), logits.end()), total = 0;
  for (float logit : logits)
    total += std::exp(double(logit) - largest);
  double normalizer = largest + std::log(total);
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  auto end = order.begin() + static_cast<std::ptrdiff_t>(std::min(count, order.size()));
  std::partial_sort(order.begin(), end, order.end(), [&](int32_t a, int32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  });
  LogProbabilities out{double(logits[token]) - normalizer, {}};
  for (auto at = order.begin(); at != end; ++at)
    out.top.emplace_back(*at, double(logits[*at]) - normalizer);
  return out;
}

} // namespace mica::rt
