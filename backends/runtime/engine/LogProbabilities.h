// Log probabilities of tokens, from the model's raw logits.
#ifndef MICA_BACKENDS_RUNTIME_ENGINE_LOGPROBABILITIES_H
#define MICA_BACKENDS_RUNTIME_ENGINE_LOGPROBABILITIES_H

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace mica::rt {

/// Natural logarithms of the softmax of logits.
struct LogProbabilities {
  double chosen;                               ///< Of the token that the text continues with.
  std::vector<std::pair<int32_t, double>> top; ///< The likeliest tokens, sorted; ties by number.
};

/// Of the raw `logits`, `count` of them at most. `token` is one of the vocabulary.
LogProbabilities logProbabilities(std::span<const float> logits, int32_t token, size_t count);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_ENGINE_LOGPROBABILITIES_H
