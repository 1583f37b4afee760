// mica-sampler-benchmarks: the time to sample a token, which one thread spends for each sequence.
#include "backends/runtime/engine/Sampler.h"

#include <benchmark/benchmark.h>

#include <cmath>

using namespace mica::rt;

namespace {
/// Logits like those of a trained model: probabilities follow Zipf's law, in random order.
std::vector<float> zipf(int64_t vocab, double exponent) {
  Random random(1);
  std::vector<float> logits;
  for (int64_t rank = 1; rank <= vocab; ++rank)
    logits.push_back(static_cast<float>(-exponent * std::log(static_cast<double>(rank))));
  for (size_t i = logits.size() - 1; i > 0; --i)
    std::swap(logits[i], logits[random.next() % (i + 1)]);
  return logits;
}

void sample(benchmark::State &state, const SamplingOptions &options) {
  std::vector<float> logits = zipf(state.range(0), 2);
  Sampler sampler(options, state.range(0));
  for (auto _ : state)
    benchmark::DoNotOptimize(sampler.sample(logits));
}
} // namespace

int main(int argc, char **argv) {
  const std::pair<const char *, SamplingOptions> cases[] = {
      {"greedy", {.temperature = 0}},    {"default", {}},
      {"top_k_40", {.topK = 40}},        {"min_p", {.topP = 1, .minP = 0.05}},
      {"temperature_only", {.topP = 1}}, {"mirostat_2", {.mirostat = 2}}};
  for (const auto &[name, options] : cases)
    benchmark::RegisterBenchmark(name,
                                 [&options = options](auto &state) { sample(state, options); })
        ->ArgName("vocab")
        ->Arg(32000)
        ->Arg(151936)
        ->Unit(benchmark::kMicrosecond);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
