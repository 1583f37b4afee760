//===- Quality.cpp - perplexity and KL divergence of logits ---------------===//

#include "tools/quality/Quality.h"

#include <algorithm>
#include <cassert>
#include <cmath>

using namespace llvm;

namespace mica::tool {

std::vector<EvalWindow> planWindows(size_t ids, size_t context, size_t maxWindows) {
  size_t length = std::min(ids, context);
  std::vector<EvalWindow> windows;
  if (length < 2)
    return windows;
  // With two ids, only the logits of the first one exist.
  size_t first = std::min(length / 2, length - 2);
  for (size_t begin = 0; begin + length <= ids && windows.size() < maxWindows; begin += length)
    windows.push_back({begin, length, first});
  return windows;
}

void Mean::add(double value) {
  ++number;
  double before = value - average;
  average += before / static_cast<double>(number);
  squares += before * (value - average);
}

double Mean::error() const {
  if (number < 2)
    return 0;
  double n = static_cast<double>(number);
  return std::sqrt(squares / (n - 1) / n);
}

double Quality::perplexityOf(const Mean &loss) { return std::exp(loss.mean()); }

namespace {
/// The largest logit, where it occurs first, and whether all are finite.
struct Top {
  float value;
  size_t index;
  bool finite;

  explicit Top(ArrayRef<float> logits) : value(logits[0]), index(0), finite(true) {
    for (size_t i = 0; i < logits.size(); ++i) {
      finite &= std::isfinite(logits[i]);
      if (logits[i] > value) {
        value = logits[i];
        index = i;
      }
    }
  }
};
} // namespace

bool Quality::add(ArrayRef<float> logits, int32_t next) {
  Top top(logits);
  if (!top.finite)
    return false;
  double sum = 0;
  for (float logit : logits)
    sum += std::exp(double(logit) - double(top.value));
  loss.add(std::log(sum) + double(top.value) - double(logits[next]));
  return true;
}

/// With probabilities p = exp(x - X) and q = exp(y - Y), X and Y the logarithms of the sums of
/// exponentials: KL(q || p) = sum q (log q - log p) = sum q (y - x) + X - Y.
bool Quality::add(ArrayRef<float> logits, ArrayRef<float> reference, int32_t next) {
  assert(logits.size() == reference.size() && "programs of one vocabulary");
  Top top(logits), referenceTop(reference);
  if (!top.finite || !referenceTop.finite)
    return false;
  double sum = 0, referenceSum = 0, weighted = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    double x = double(logits[i]) - double(top.value);
    double y = double(reference[i]) - double(referenceTop.value);
    double q = std::exp(y);
    sum += std::exp(x);
    referenceSum += q;
    weighted += q * (y - x);
  }
  double logSum = std::log(sum), logReferenceSum = std::log(referenceSum);
  // Rounding may make the divergence of equal logits slightly negative.
  double divergence = std::max(0.0, weighted / referenceSum + logSum - logReferenceSum);
  if (divergence > maxKl) {
    maxKl = divergence;
    maxKlAt = positions();
  }
  kl.add(divergence);
  divergences.push_back(divergence);
  sameTops += top.index == referenceTop.index;
  double lost = logSum + double(top.value) - double(logits[next]);
  double referenceLost = logReferenceSum + double(referenceTop.value) - double(reference[next]);
  double deltaP = std::exp(-lost) - std::exp(-referenceLost);
  squaredDeltaP.add(deltaP * deltaP);
  loss.add(lost);
  referenceLoss.add(referenceLost);
  return true;
}

double Quality::divergencePercentile(double fraction) const {
  if (divergences.empty())
    return 0;
  std::vector<double> sorted = divergences;
  double rank = fraction * static_cast<double>(sorted.size() - 1);
  auto lower = sorted.begin() + static_cast<ptrdiff_t>(rank);
  std::nth_element(sorted.begin(), lower, sorted.end());
  double share = rank - std::floor(rank);
  if (share == 0)
    return *lower;
  return *lower + share * (*std::min_element(lower + 1, sorted.end()) - *lower);
}

} // namespace mica::tool
