// How the server divides the memory that is available when it starts.
#ifndef MICA_BACKENDS_RUNTIME_SERVE_MEMORYSHARES_H
#define MICA_BACKENDS_RUNTIME_SERVE_MEMORYSHARES_H

#include <algorithm>
#include <cstdint>

namespace mica::rt::serve {

/// The maximum bytes that requests take together, apart from caches and checkpoints.
struct MemoryShares {
  uint64_t requests; ///< headers and bodies as they arrive, later what is kept of them
  uint64_t reading;  ///< a large body while it is parsed, one at a time; see maxReadingBytes
  uint64_t answers;  ///< in memory; see kAnswerFactor
  uint64_t streams;  ///< unread events
};

/// The memory of a complete answer is at most this multiple of Completion::answerBytes.
inline constexpr uint64_t kAnswerFactor = 3;

/// Divides the memory besides weights that caches, checkpoints and buffers of the model, which have
/// been chosen before, leave. An eighth of it is for what is not counted: buffers of connections
/// and of small requests, and what malloc keeps. If nearly nothing is left, because weights are
/// larger than the memory or --cache-bytes takes it, weights are evicted for a sixteenth of all
/// that is `available`.
inline MemoryShares memoryShares(uint64_t available, uint64_t besidesWeights, uint64_t taken) {
  uint64_t rest = std::max(besidesWeights - std::min(besidesWeights, taken), available / 16);
  return {.requests = rest / 4, .reading = rest / 4, .answers = rest / 4, .streams = rest / 8};
}

} // namespace mica::rt::serve

#endif // MICA_BACKENDS_RUNTIME_SERVE_MEMORYSHARES_H
