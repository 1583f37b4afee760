#include "backends/runtime/engine/Sampler.h"
#include "backends/runtime/engine/ExpOfNegative.h"
#include "backends/runtime/engine/HeapOfFirst.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>

namespace mica::rt {

static constexpr float kBanned = -std::numeric_limits<float>::infinity();

uint64_t Random::next() {
  uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

Sampler::Sampler(const SamplingOptions &options, int64_t vocab, uint64_t stream)
    : options(options), random(Random(options.seed ^ Random(stream).next()).next()), vocab(vocab),
      mu(2 * options.mirostatTau) {}

void Sampler::observe(int32_t token) {
  if (token >= 0 && token < vocab)
    seen.insert(token);
  if (options.dryMultiplier > 0)
    history.push_back(token);
}

void Sampler::append(int32_t token) {
  observe(token);
  ++generated[token];
}

Result<int32_t> argmax(std::span<const float> logits) {
  float best = -std::numeric_limits<float>::infinity();
  size_t index = logits.size();
  bool nan = false;
  for (size_t i = 0; i < logits.size(); ++i) {
    nan |= logits[i] != logits[i];
    if (logits[i] > best) {
      best = logits[i];
      index = i;
    }
  }
  if (nan || index == logits.size() || best == std::numeric_limits<float>::infinity())
    return Error{
        "the model computed logits that are not finite; compile it with --weights f32 or check the "
        "checkpoint"};
  return static_cast<int32_t>(index);
}

/// The maximum length of a repetition at the end of the history: it begins after the last sequence
/// breaker within the last `window` tokens.
size_t Sampler::dryReach(size_t window) const {
  for (size_t distance = 0; distance < window; ++distance) {
    size_t begin = history.size() - 1 - distance;
    std::optional<size_t> longest; // longest breaker that begins here
    for (const Tokens &breaker : options.dryBreakers)
      if (!breaker.empty() && breaker.size() <= distance + 1 &&
          std::equal(breaker.begin(), breaker.end(), history.begin() + begin))
        longest = std::max(longest.value_or(0), breaker.size());
    if (longest)
      return distance + 1 - *longest;
  }
  return window;
}

/// The tokens that would continue a repetition, with the length of the longest one for each.
std::map<int32_t, size_t> Sampler::repetitions() const {
  auto allowed = static_cast<size_t>(options.dryAllowedLength);
  size_t window = history.size();
  if (options.dryPenaltyLastN >= 0)
    window = std::min(window, static_cast<size_t>(options.dryPenaltyLastN));
  if (window <= allowed)
    return {};
  size_t reach = dryReach(window);
  if (reach < allowed)
    return {};
  // The Z function of the reversed window: common[i] is the length of the longest common suffix of
  // the window and of the window without its last i tokens.
  auto at = [&](size_t i) { return history[history.size() - 1 - i]; };
  std::vector<size_t> common(window);
  std::map<int32_t, size_t> longest;
  for (size_t i = 1, left = 0, right = 0; i < window; ++i) {
    size_t length = i < right ? std::min(right - i, common[i - left]) : 0;
    while (i + length < window && at(length) == at(i + length))
      ++length;
    common[i] = length;
    if (i + length > right) {
      left = i;
      right = i + length;
    }
    if (std::min(length, reach) >= allowed) {
      size_t &known = longest[at(i - 1)];
      known = std::max(known, std::min(length, reach));
    }
  }
  return longest;
}

void Sampler::applyDry(std::span<float> logits) const {
  auto breaks = [&](int32_t token) {
    return std::find(options.dryBreakers.begin(), options.dryBreakers.end(), Tokens{token}) !=
           options.dryBreakers.end();
  };
  for (auto [token, length] : repetitions()) {
    if (token < 0 || static_cast<size_t>(token) >= logits.size() || breaks(token))
      continue;
    auto exponent = static_cast<double>(length) - static_cast<double>(options.dryAllowedLength);
    // Bounded, so that the penalty is finite in f32.
    double penalty = std::min(options.dryMultiplier * std::pow(options.dryBase, exponent), 1e30);
    logits[token] -= static_cast<float>(penalty);
  }
}

std::span<const float> Sampler::penalized(std::span<const float> logits) {
  bool repetition = options.repetitionPenalty != 1 && !seen.empty();
  bool counts =
      (options.presencePenalty != 0 || options.frequencyPenalty != 0) && !generated.empty();
  if (!repetition && !counts && options.logitBias.empty() && history.empty())
    return logits;
  // Shared by all samplers of a thread, because it is only used within this call.
  static thread_local std::vector<float> scratch;
  scratch.assign(logits.begin(), logits.end());
  auto at = [&](int32_t token) -> float * {
    return static_cast<size_t>(token) < scratch.size() ? &scratch[token] : nullptr;
  };
  for (auto [token, bias] : options.logitBias)
    if (float *logit = at(token))
      *logit += bias;
  auto penalty = static_cast<float>(options.repetitionPenalty);
  if (repetition)
    for (int32_t token : seen)
      if (float *logit = at(token))
        *logit = *logit < 0 ? *logit * penalty : *logit / penalty;
  if (counts)
    for (auto [token, count] : generated)
      if (float *logit = at(token))
        *logit -= static_cast<float>(options.frequencyPenalty * static_cast<double>(count) +
                                     options.presencePenalty);
  if (!history.empty())
    applyDry(scratch);
  return scratch;
}

Result<Sampler::Adjusted> Sampler::adjusted(std::span<const float> given) {
  std::span<const float> logits = penalized(given);
  Result<int32_t> likeliest = argmax(logits);
  if (likeliest)
    return Adjusted{logits, *likeliest};
  auto isBanned = [](float logit) { return logit == kBanned; };
  if (argmax(given) && std::all_of(logits.begin(), logits.end(), isBanned))
    return Error{"the logit bias bans every token; leave at least one"};
  return likeliest.error();
}

using Candidates = std::vector<Sampler::Candidate>;

static bool lessLikely(const Sampler::Candidate &a, const Sampler::Candidate &b) {
  return a.weight != b.weight ? a.weight < b.weight : a.token > b.token;
}

static double sumOf(std::span<const float> values) {
  std::array<double, 16> sums{}; // independent ones, for vector instructions
  size_t whole = values.size() / sums.size() * sums.size();
  for (size_t i = 0; i < whole; i += sums.size())
    for (size_t j = 0; j < sums.size(); ++j)
      sums[j] += values[i + j];
  return std::accumulate(values.begin() + static_cast<std::ptrdiff_t>(whole), values.end(),
                         std::accumulate(sums.begin(), sums.end(), 0.0));
}

namespace {
/// The weights of tokens that may be sampled: all that are not banned, or with top-k those whose
/// logits are at least the k-th largest one.
class Weights {
public:
  /// `likeliest` is the token with the largest of `all`; `topK`: 0 for all.
  Weights(std::span<const float> all, int32_t likeliest, double temperature, int64_t topK)
      : logits(all), largest(all[likeliest]), temperature(temperature),
        scale(static_cast<float>(std::min(1 / temperature, 1e30))) {
    if (topK > 0 && static_cast<size_t>(topK) < all.size()) {
      float cutoff = heapOfFirst(all, static_cast<size_t>(topK), std::greater<>()).front();
      for (size_t i = 0; i < all.size(); ++i)
        if (all[i] >= cutoff) {
          tokens.push_back(static_cast<int32_t>(i));
          logitsOfTokens.push_back(all[i]);
        }
      logits = logitsOfTokens;
    }
    // Shared by all samplers of a thread, because it is only used within one call.
    static thread_local std::vector<float> scratch;
    scratch.resize(logits.size());
    weights = scratch;
    for (size_t i = 0; i < weights.size(); ++i)
      weights[i] = weightOf((largest - logits[i]) * this->scale);
  }
  Weights(const Weights &) = delete;
  Weights &operator=(const Weights &) = delete;

  /// In the order of tokens.
  Candidates all() const {
    Candidates found;
    found.reserve(logits.size());
    each([&](int32_t token, float, float weight) { found.push_back({token, weight}); });
    return found;
  }

  /// The token at which the weights, in the order of tokens, add up to more than `share` of their
  /// total.
  int32_t at(double share) const {
    std::vector<double> sums;
    for (size_t begin = 0; begin < weights.size(); begin += kTogether)
      sums.push_back(sumOf(block(begin)));
    double target = share * std::accumulate(sums.begin(), sums.end(), 0.0);
    // Due to rounding, the target may exceed all sums: then it is the last token with a weight.
    size_t chosen = 0;
    double before = 0, beforeChosen = 0; // the weights of earlier blocks
    for (size_t i = 0; i < sums.size() && before <= target; before += sums[i++])
      if (sums[i] > 0) {
        chosen = i;
        beforeChosen = before;
      }
    target -= beforeChosen;
    size_t last = 0, begin = chosen * kTogether;
    for (float weight : block(begin)) {
      if (weight > 0) {
        last = begin;
        target -= weight;
        if (target < 0)
          break;
      }
      ++begin;
    }
    return tokenAt(last);
  }

  /// The most likely candidates: one is kept if all that are more likely have a total weight below
  /// `topP` of all, and its weight is at least `minP` (that of the most likely one is 1).
  Candidates likely(double topP, double minP) const {
    // A histogram of the weights shows where the total is reached: only the candidates of that
    // bucket have to be sorted.
    std::array<double, numBuckets> masses = histogram();
    double total = std::accumulate(masses.begin(), masses.end(), 0.0);
    int32_t last = 0;
    double mass = 0; // of the buckets before the last one
    int32_t end = numBuckets - 1;
    if (minP > 0) // another bucket, because the logit is rounded
      end = std::min(end, bucketOf(static_cast<float>(largest + temperature * std::log(minP))) + 1);
    while (last < end && mass + masses[last] < topP * total)
      mass += masses[last++];
    Candidates kept, ofLast;
    each([&](int32_t token, float logit, float weight) {
      int32_t bucket = bucketOf(logit);
      if (bucket > last)
        return;
      if (weight >= minP)
        (bucket < last ? kept : ofLast).push_back({token, weight});
    });
    std::sort(ofLast.begin(), ofLast.end(),
              [](const auto &a, const auto &b) { return lessLikely(b, a); });
    for (const Sampler::Candidate &candidate : ofLast) {
      if (!kept.empty() && mass >= topP * total)
        break;
      kept.push_back(candidate);
      mass += candidate.weight;
    }
    return kept;
  }

private:
  static constexpr int32_t numBuckets = 256;
  static constexpr float bucketsPerNat = 8;
  static constexpr size_t kTogether = 1024;

  std::span<const float> block(size_t begin) const {
    return weights.subspan(begin, std::min(kTogether, weights.size() - begin));
  }

  /// The total weight of the tokens in each bucket.
  std::array<double, numBuckets> histogram() const {
    std::array<double, numBuckets> masses{};
    std::array<int32_t, kTogether> buckets;
    for (size_t begin = 0; begin < logits.size(); begin += kTogether) {
      std::span<const float> some = block(begin);
      for (size_t i = 0; i < some.size(); ++i)
        buckets[i] = bucketOf(logits[begin + i]);
      for (size_t i = 0; i < some.size(); ++i)
        masses[buckets[i]] += some[i];
    }
    return masses;
  }

  /// Calls `take(token, logit, weight)`.
  template <typename Take> void each(Take take) const {
    for (size_t i = 0; i < logits.size(); ++i)
      if (logits[i] > kBanned)
        take(tokenAt(i), logits[i], weights[i]);
  }
  /// 0 if the token is banned or its weight would be too small for a normal f32.
  static float weightOf(float difference) {
    return difference < 87 ? expOfNegative(difference) : 0;
  }
  int32_t tokenAt(size_t i) const { return tokens.empty() ? static_cast<int32_t>(i) : tokens[i]; }
  int32_t bucketOf(float logit) const {
    return static_cast<int32_t>(
        std::min((largest - logit) * scale * bucketsPerNat, static_cast<float>(numBuckets - 1)));
  }

  std::span<const float> logits;
  std::span<float> weights;    ///< of the same tokens; 0 if banned
  std::vector<int32_t> tokens; ///< with top-k, those of `logits`
  std::vector<float> logitsOfTokens;
  float largest;
  double temperature;
  float scale; ///< about 1 / temperature, finite
};
} // namespace

/// Keeps the candidates whose information is closest to the entropy, until their weight reaches
/// `mass`; ties with the last one are kept. Preserves the order.
static Candidates keepTypical(Candidates all, double mass) {
  double total = 0, entropy = 0;
  for (const Sampler::Candidate &candidate : all)
    total += candidate.weight;
  auto information = [&](const Sampler::Candidate &candidate) {
    return -std::log(candidate.weight / total);
  };
  for (const Sampler::Candidate &candidate : all)
    if (candidate.weight > 0)
      entropy += candidate.weight / total * information(candidate);
  std::vector<std::pair<double, double>> distances; // and weights
  for (const Sampler::Candidate &candidate : all)
    distances.emplace_back(std::abs(information(candidate) - entropy), candidate.weight);
  std::vector<std::pair<double, double>> sorted = distances;
  std::sort(sorted.begin(), sorted.end());
  double reached = 0;
  size_t last = 0;
  for (; last + 1 < sorted.size(); ++last) {
    reached += sorted[last].second;
    if (reached >= mass * total)
      break;
  }
  size_t kept = 0;
  for (size_t i = 0; i < all.size(); ++i)
    if (distances[i].first <= sorted[last].first)
      all[kept++] = all[i];
  all.resize(kept);
  return all;
}

static double totalOf(const Candidates &all) {
  double total = 0;
  for (const Sampler::Candidate &candidate : all)
    total += candidate.weight;
  return total;
}

void Sampler::applyXtc(Candidates &all) {
  if (options.xtcProbability <= 0 || options.xtcThreshold > 0.5 || all.size() < 2 ||
      random.uniform() > options.xtcProbability)
    return;
  double total = 0; // total weight at temperature 1
  auto weight = [&](const Candidate &candidate) {
    return std::pow(candidate.weight, options.temperature);
  };
  for (const Candidate &candidate : all)
    total += weight(candidate);
  auto isTop = [&](const Candidate &candidate) {
    return weight(candidate) >= options.xtcThreshold * total;
  };
  std::optional<Candidate> last;
  for (const Candidate &candidate : all)
    if (isTop(candidate) && (!last || lessLikely(candidate, *last)))
      last = candidate;
  std::erase_if(all, [&](const Candidate &candidate) {
    return isTop(candidate) && candidate.token != last->token;
  });
}

/// The number of tokens that Mirostat 1 keeps of a vocabulary of `vocab`: fits Zipf's law to the
/// sorted `likeliest` ones, and returns the rank whose information is `mu` bits.
static size_t mirostatRank(const Candidates &likeliest, int64_t vocab, double mu) {
  double products = 0, squares = 0;
  for (size_t i = 0; i + 1 < likeliest.size(); ++i) {
    if (likeliest[i + 1].weight <= 0)
      break;
    auto rank = static_cast<double>(i);
    double t = std::log((rank + 2) / (rank + 1));
    products += t * std::log(likeliest[i].weight / likeliest[i + 1].weight);
    squares += t * t;
  }
  double exponent = products / squares, excess = exponent - 1;
  double rank = std::pow(
      excess * std::exp2(mu) / (1 - std::pow(static_cast<double>(vocab), -excess)), 1 / exponent);
  if (!(rank < static_cast<double>(vocab))) // also true for NaN, if all weights are equal
    return static_cast<size_t>(vocab);
  return std::max<size_t>(static_cast<size_t>(rank), 1);
}

void Sampler::applyMirostat(Candidates &all) const {
  auto moreLikely = [](const Candidate &a, const Candidate &b) { return lessLikely(b, a); };
  if (options.mirostat == 1) {
    constexpr size_t fitted = 100;
    auto head = all.begin() + static_cast<std::ptrdiff_t>(std::min(fitted, all.size()));
    std::partial_sort(all.begin(), head, all.end(), moreLikely);
    size_t kept = mirostatRank(Candidates(all.begin(), head), vocab, mu);
    if (kept < all.size()) {
      std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(kept), all.end(),
                       moreLikely);
      all.resize(kept);
    }
    return;
  }
  double cutoff = std::exp2(-mu) * totalOf(all);
  Candidate first = *std::min_element(all.begin(), all.end(), moreLikely);
  std::erase_if(all, [&](const Candidate &candidate) {
    return candidate.weight < cutoff && candidate.token != first.token;
  });
}

Result<Candidates> Sampler::candidates(std::span<const float> given) {
  Result<Adjusted> known = adjusted(given);
  if (!known)
    return known.error();
  if (options.temperature == 0)
    return Candidates{{known->likeliest, 1.0}};
  return candidatesOf(*known);
}

Candidates Sampler::candidatesOf(const Adjusted &known) {
  Weights weights(known.logits, known.likeliest, options.temperature,
                  options.mirostat == 0 ? options.topK : 0);
  if (options.mirostat != 0) {
    Candidates all = weights.all();
    applyMirostat(all);
    return all;
  }
  Candidates all = cutsTail() ? weights.likely(options.topP, options.minP) : weights.all();
  if (options.typicalP < 1)
    all = keepTypical(std::move(all), options.typicalP);
  applyXtc(all);
  return all;
}

bool Sampler::cutsTail() const { return options.topP < 1 || options.minP > 0; }

Result<int32_t> Sampler::sample(std::span<const float> given) {
  Result<Adjusted> known = adjusted(given);
  if (!known)
    return known.error();
  if (options.temperature == 0)
    return known->likeliest;
  if (options.mirostat == 0 && !cutsTail() && options.typicalP >= 1 &&
      options.xtcProbability <= 0) // without a list of the whole vocabulary
    return Weights(known->logits, known->likeliest, options.temperature, options.topK)
        .at(random.uniform());
  Candidates choices = candidatesOf(*known);
  double total = totalOf(choices), target = random.uniform() * total;
  // Due to rounding, the random number may exceed the sum of all weights.
  Candidate chosen = choices.back();
  for (const Candidate &candidate : choices) {
    target -= candidate.weight;
    if (target < 0) {
      chosen = candidate;
      break;
    }
  }
  if (options.mirostat != 0)
    mu -= options.mirostatEta * (-std::log2(chosen.weight / total) - options.mirostatTau);
  return chosen.token;
}

} // namespace mica::rt
