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
  double chosen;                               ///< of the token that the text continues with
  std::vector<std::pair<int32_t, double>> top; ///< most likely tokens, sorted; ties by token id
};

/// The log probabilities of `token`, which must be in the vocabulary, and of the `count` most
/// likely tokens, from raw `logits`, with an error of up to 1e-6.
LogProbabilities logProbabilities(std::span<const float> logits, int32_t token, size_t count);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_ENGINE_LOGPROBABILITIES_H
