// Samples the next token from logits.
#ifndef MICA_BACKENDS_RUNTIME_ENGINE_SAMPLER_H
#define MICA_BACKENDS_RUNTIME_ENGINE_SAMPLER_H

#include "backends/runtime/abi/Tokens.h"
#include "backends/runtime/support/Result.h"

#include <cstdint>
#include <map>
#include <span>
#include <unordered_set>
#include <vector>

namespace mica::rt {

/// A value added to a token's logit; -inf bans it.
struct LogitBias {
  int32_t token;
  float bias;
};

/// The steps, in this order, which is that of transformers' logits processors: logit bias,
/// repetition penalty, frequency and presence penalty (not in transformers; defined as in OpenAI's
/// API, ordered as in vLLM), DRY, temperature, top-k, top-p, min-p, typical, XTC. With Mirostat,
/// nothing follows the temperature but Mirostat. DRY, XTC and Mirostat are defined as in llama.cpp.
struct SamplingOptions {
  double temperature = 0.8; ///< 0: greedy, lowest index among equal logits.
  int64_t topK = 0;         ///< Keep logits that are at least the k-th largest; 0: all.
  double topP = 0.95;       ///< Keep the most likely tokens until their mass reaches this; 1: all.
  double minP = 0;          ///< Drop tokens less likely than this times the most likely one.
  double repetitionPenalty = 1; ///< For tokens of the text: logit / r if positive, else logit * r.
  uint64_t seed = 0;
  /// Keep the tokens whose information is nearest to the expected one until their mass reaches this
  /// (Meister et al. 2022); 1: all.
  double typicalP = 1;
  double presencePenalty = 0;  ///< Subtracted from the logits of generated tokens.
  double frequencyPenalty = 0; ///< The same, times the number of occurrences.
  std::vector<LogitBias> logitBias = {};
  /// DRY: subtracts multiplier * base ^ (n - allowed length) from the logit of a token that would
  /// continue a repetition of n tokens, where n is at least the allowed length. 0: off.
  double dryMultiplier = 0;
  double dryBase = 1.75;
  int64_t dryAllowedLength = 2;
  int64_t dryPenaltyLastN = -1; ///< The number of tokens to scan, including the prompt; -1: all.
  std::vector<Tokens> dryBreakers = {}; ///< Repetitions do not extend across these sequences.
  /// XTC: with this probability, drop all tokens with at least the threshold's probability (at
  /// temperature 1), except the least likely of them. 0, or a threshold above 0.5: off.
  double xtcProbability = 0;
  double xtcThreshold = 0.1;
  /// Mirostat (Basu et al. 2021), version 1 or 2: cut the tail so that the information of tokens
  /// stays near `mirostatTau` bits. 0: off.
  int64_t mirostat = 0;
  double mirostatTau = 5;   ///< Also called entropy.
  double mirostatEta = 0.1; ///< The learning rate.
};

/// SplitMix64 (Steele, Lea, Flood 2014): the same numbers with every C++ library.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}
  uint64_t next();
  /// A uniform random number in [0, 1), a multiple of 2^-53.
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

private:
  uint64_t state;
};

/// The sampler of one sequence: it records that sequence's tokens and has its own random numbers,
/// so the text does not depend on other sequences.
class Sampler {
public:
  struct Candidate {
    int32_t token;
    double weight; ///< Proportional to its probability; 1 for the most likely token.
  };

  /// `stream` distinguishes sequences with the same seed.
  Sampler(const SamplingOptions &options, int64_t vocab, uint64_t stream = 0);

  /// Records a token of the prompt.
  void observe(int32_t token);
  /// Records a generated token.
  void append(int32_t token);
  /// Samples the next token. Errors: a logit is NaN or +inf, or all are -inf, possibly by biases.
  Result<int32_t> sample(std::span<const float> logits);
  /// The tokens that may be sampled, unordered. Uses a random number if XTC is on.
  Result<std::vector<Candidate>> candidates(std::span<const float> logits);

private:
  std::span<const float> penalized(std::span<const float> logits);
  size_t dryReach(size_t window) const;
  std::map<int32_t, size_t> repetitions() const;
  void applyDry(std::span<float> logits) const;
  /// Whether top-p or min-p exclude unlikely tokens.
  bool cutsTail() const;
  void applyXtc(std::vector<Candidate> &all);
  void applyMirostat(std::vector<Candidate> &all) const;
  /// Logits after biases and penalties, valid until the next call of any sampler in this thread,
  /// and the token with the largest of them.
  struct Adjusted {
    std::span<const float> logits;
    int32_t likeliest;
  };
  /// Errors as for sample.
  Result<Adjusted> adjusted(std::span<const float> given);
  /// `candidates` at a temperature above 0.
  std::vector<Candidate> candidatesOf(const Adjusted &known);

  SamplingOptions options;
  Random random;
  int64_t vocab;
  std::unordered_set<int32_t> seen;
  std::map<int32_t, int64_t> generated; ///< number of occurrences by token
  Tokens history;                       ///< All tokens; empty without DRY.
  double mu; ///< For Mirostat: the maximum information of a token, in bits.
};

/// The lowest index of the largest logit. Errors as Sampler::sample.
Result<int32_t> argmax(std::span<const float> logits);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_ENGINE_SAMPLER_H
