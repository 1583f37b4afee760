//===- Quality.h - perplexity and KL divergence of logits -------*- C++ -*-===//
#ifndef MICA_TOOLS_QUALITY_QUALITY_H
#define MICA_TOOLS_QUALITY_QUALITY_H

#include "llvm/ADT/ArrayRef.h"

#include <cmath>
#include <cstdint>
#include <vector>

namespace mica::tool {

/// A part of a text that is computed separately: ids [begin, begin + length). The logits at
/// positions [first, length - 1) are scored, each by the following id.
struct EvalWindow {
  size_t begin, length, first;
  size_t scored() const { return length - 1 - first; }
};

/// At most `maxWindows` non-overlapping windows of `context` ids (at least two); a shorter rest is
/// dropped, and a text shorter than one window is one window. The scored positions are those
/// preceded by at least half a window, as in llama.cpp's `perplexity`. Empty for fewer than two
/// ids.
std::vector<EvalWindow> planWindows(size_t ids, size_t context, size_t maxWindows);

/// A mean and its standard error.
class Mean {
public:
  void add(double value);
  size_t count() const { return number; }
  double mean() const { return average; }
  /// The standard error of the mean; 0 for fewer than two values.
  double error() const;

private:
  size_t number = 0;
  double average = 0, squares = 0; ///< squares: sum of squared differences (Welford)
};

/// Statistics of the logits of one or two programs on a text, position by position.
class Quality {
public:
  /// Adds the logits at a position, and the following id. False if a logit is not finite.
  bool add(llvm::ArrayRef<float> logits, int32_t next);
  /// The same with another program's logits at this position.
  bool add(llvm::ArrayRef<float> logits, llvm::ArrayRef<float> reference, int32_t next);

  size_t positions() const { return loss.count(); }
  /// exp of the mean loss, and its standard error.
  double perplexity() const { return perplexityOf(loss); }
  double perplexityError() const { return perplexityOf(loss) * loss.error(); }
  double referencePerplexity() const { return perplexityOf(referenceLoss); }
  double referencePerplexityError() const {
    return perplexityOf(referenceLoss) * referenceLoss.error();
  }

  /// KL(reference || program) in nats, per position.
  const Mean &divergence() const { return kl; }
  /// The percentile of the KL divergence for `fraction` of all positions: linear between two
  /// positions in order of divergence, at rank (n - 1) * fraction. 0 without positions.
  double divergencePercentile(double fraction) const;
  double maxDivergence() const { return maxKl; }
  /// The position of the maximum, in the order of `add`.
  size_t maxDivergenceAt() const { return maxKlAt; }
  /// The fraction of positions with the same most likely id in both.
  double sameTop() const {
    return positions() ? static_cast<double>(sameTops) / static_cast<double>(positions()) : 0;
  }
  /// sqrt(mean (p - q)^2) over all positions, where p and q are the probabilities of the following
  /// id in program and reference.
  double rmsDeltaP() const { return std::sqrt(squaredDeltaP.mean()); }

private:
  static double perplexityOf(const Mean &loss);

  Mean loss, referenceLoss, kl, squaredDeltaP;
  std::vector<double> divergences; ///< per position
  double maxKl = 0;
  size_t maxKlAt = 0, sameTops = 0;
};

} // namespace mica::tool

#endif // MICA_TOOLS_QUALITY_QUALITY_H
