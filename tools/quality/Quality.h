//===- Quality.h - perplexity and KL divergence of logits -------*- C++ -*-===//
#ifndef MICA_TOOLS_QUALITY_QUALITY_H
#define MICA_TOOLS_QUALITY_QUALITY_H

#include "llvm/ADT/ArrayRef.h"

#include <cmath>
#include <cstdint>
#include <vector>

namespace mica::tool {

/// A piece of a text that is computed on its own: ids [begin, begin + length). The logits at its
/// positions [first, length - 1) are scored, each by the id that follows.
struct EvalWindow {
  size_t begin, length, first;
  size_t scored() const { return length - 1 - first; }
};

/// Windows of `context` ids (at least two) that do not overlap, at most `most`; a shorter rest is
/// left out, and a text shorter than one window is one window. Scored are the positions with at
/// least half a window before them, as llama.cpp's `perplexity` made it common. Empty for fewer
/// than two ids.
std::vector<EvalWindow> planWindows(size_t ids, size_t context, size_t most);

/// Mean of values and how sure it is.
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
  /// The logits at one position, and the id that follows in the text. False where a logit is not
  /// finite.
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
  /// The KL divergence below which a share `fraction` of all positions lies, computed from all of
  /// them: between two positions in order of divergence, linear in the rank (n - 1) * fraction.
  /// 0 without positions.
  double divergencePercentile(double fraction) const;
  double maxDivergence() const { return maxKl; }
  /// The position of the maximum, counted in the order of `add`.
  size_t maxDivergenceAt() const { return maxKlAt; }
  /// The share of positions at which both have the same most likely id.
  double sameTop() const {
    return positions() ? static_cast<double>(sameTops) / static_cast<double>(positions()) : 0;
  }
  /// sqrt(mean (p - q)^2) over all positions, p and q the probabilities that program and reference
  /// give to the id that follows.
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
