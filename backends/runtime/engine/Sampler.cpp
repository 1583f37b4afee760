#include "backends/runtime/engine/Sampler.h"

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
    : options(options), random(Random(options.seed ^ Random(stream).next()).next()), vocab(vocab) {}

void Sampler::observe(int32_t token) {
  if (token >= 0 && token < vocab)
    seen.insert(token);
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
        "the model computed logits that are not finite, compile it with --weights f32 or check the "
        "checkpoint"};
  return static_cast<int32_t>(index);
}

std::span<const float> Sampler::penalised(std::span<const float> logits) {
  bool repetition = options.repetitionPenalty != 1 && !seen.empty();
  bool counts =
      (options.presencePenalty != 0 || options.frequencyPenalty != 0) && !generated.empty();
  if (!repetition && !counts && options.logitBias.empty())
    return logits;
  // One for all sequences of a thread: of each it lasts no longer than a choice.
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
  return scratch;
}

Result<int32_t> Sampler::best(std::span<const float> given, std::span<const float> logits) {
  Result<int32_t> largest = argmax(logits);
  if (largest)
    return *largest;
  auto isBanned = [](float logit) { return logit == -std::numeric_limits<float>::infinity(); };
  if (argmax(given) && std::all_of(logits.begin(), logits.end(), isBanned))
    return Error{"--logit-bias bans every token that the model may say, leave one"};
  return largest.error();
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

/// Those whose information is nearest to the entropy of them all, until their mass reaches `mass`;
/// ties with the last stay, and so does the order.
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

Result<Candidates> Sampler::candidates(std::span<const float> given) {
  std::span<const float> logits = penalised(given);
  Result<int32_t> likeliest = best(given, logits);
  if (!likeliest)
    return likeliest.error();
  if (options.temperature == 0)
    return Candidates{{*likeliest, 1.0}};
  float top = logits[*likeliest];
  std::vector<std::pair<float, int32_t>> scores;
  scores.reserve(logits.size());
  for (size_t i = 0; i < logits.size(); ++i)
    if (logits[i] > -std::numeric_limits<float>::infinity())
      scores.emplace_back(logits[i], static_cast<int32_t>(i));
  keepTopK(scores, options.topK);
  Candidates all;
  all.reserve(scores.size());
  for (auto [logit, token] : scores)
    all.push_back({token, std::exp((double(logit) - double(top)) / options.temperature)});
  if (options.topP < 1 || options.minP > 0)
    all = keepLikely(std::move(all), options.topP, options.minP);
  return options.typicalP < 1 ? keepTypical(std::move(all), options.typicalP) : std::move(all);
}

Result<int32_t> Sampler::sample(std::span<const float> logits) {
  if (options.temperature == 0)
    return best(logits, penalised(logits));
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
