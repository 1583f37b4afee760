#include "backends/cpu/runtime/Sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mica::rt {

uint64_t Random::next() {
  uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

Sampler::Sampler(const SamplingOptions &options, int64_t vocab, uint64_t stream)
    : options(options), random(Random(options.seed ^ Random(stream).next()).next()),
      seen(static_cast<size_t>(vocab)) {}

void Sampler::observe(int32_t token) {
  if (token < 0 || static_cast<size_t>(token) >= seen.size() || seen[token])
    return;
  seen[token] = true;
  seenTokens.push_back(token);
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
        "the model computed logits that are not finite, compile it with --weights f32 or check the "
        "checkpoint"};
  return static_cast<int32_t>(index);
}

std::span<const float> Sampler::penalised(std::span<const float> logits) {
  if (options.repetitionPenalty == 1 || seenTokens.empty())
    return logits;
  scratch.assign(logits.begin(), logits.end());
  auto penalty = static_cast<float>(options.repetitionPenalty);
  for (int32_t token : seenTokens)
    scratch[token] = scratch[token] < 0 ? scratch[token] * penalty : scratch[token] / penalty;
  return scratch;
}

using Candidates = std::vector<Sampler::Candidate>;

/// Drops what lies below the k-th largest logit; ties with it stay.
static void keepTopK(std::vector<std::pair<float, int32_t>> &scores, int64_t k) {
  if (k <= 0 || static_cast<size_t>(k) >= scores.size())
    return;
  auto kth = scores.begin() + (k - 1);
  std::nth_element(scores.begin(), kth, scores.end(),
                   [](auto &a, auto &b) { return a.first > b.first; });
  float least = kth->first;
  std::erase_if(scores, [&](auto &score) { return score.first < least; });
  std::sort(scores.begin(), scores.end(), [](auto &a, auto &b) { return a.second < b.second; });
}

static bool lessLikely(const Sampler::Candidate &a, const Sampler::Candidate &b) {
  return a.weight != b.weight ? a.weight < b.weight : a.token > b.token;
}

/// The likeliest candidates, sorted, as long as those before them have less than `topP` of the mass
/// and they themselves at least `minP` of the first one's weight (1).
static Candidates keepLikely(Candidates all, double topP, double minP) {
  double total = 0;
  for (const Sampler::Candidate &candidate : all)
    total += candidate.weight;
  // A heap, as the nucleus is small and the vocabulary large.
  std::make_heap(all.begin(), all.end(), lessLikely);
  Candidates kept;
  double mass = 0;
  while (!all.empty() && (kept.empty() || (mass < topP * total && all.front().weight >= minP))) {
    std::pop_heap(all.begin(), all.end(), lessLikely);
    kept.push_back(all.back());
    mass += all.back().weight;
    all.pop_back();
  }
  return kept;
}

Result<Candidates> Sampler::candidates(std::span<const float> given) {
  std::span<const float> logits = penalised(given);
  Result<int32_t> best = argmax(logits);
  if (!best)
    return best.error();
  float top = logits[*best];
  if (options.temperature == 0)
    return Candidates{{*best, 1.0}};
  std::vector<std::pair<float, int32_t>> scores;
  scores.reserve(logits.size());
  for (size_t i = 0; i < logits.size(); ++i)
    scores.emplace_back(logits[i], static_cast<int32_t>(i));
  keepTopK(scores, options.topK);
  Candidates all;
  all.reserve(scores.size());
  for (auto [logit, token] : scores)
    all.push_back({token, std::exp((double(logit) - double(top)) / options.temperature)});
  if (options.topP >= 1 && options.minP <= 0)
    return all;
  return keepLikely(std::move(all), options.topP, options.minP);
}

Result<int32_t> Sampler::sample(std::span<const float> logits) {
  if (options.temperature == 0)
    return argmax(penalised(logits));
  Result<Candidates> choices = candidates(logits);
  if (!choices)
    return choices.error();
  double total = 0;
  for (const Candidate &candidate : *choices)
    total += candidate.weight;
  double target = random.uniform() * total;
  for (const Candidate &candidate : *choices) {
    target -= candidate.weight;
    if (target < 0)
      return candidate.token;
  }
  // Rounding can leave a remainder behind the last one.
  return choices->back().token;
}

} // namespace mica::rt
