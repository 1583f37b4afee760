// mica-benchmarks: kernels compiled as for a program on this machine, compared with its roofline.
//
// Each line shows the share of the roofline that a kernel reaches. The label names the bound,
// memory or compute, whichever is lower for the kernel. Both are measured just before the kernel,
// by the loops of a program's `bench --profile`.
#include "tests/bench/UkernelBenchmarks.h"

#include "backends/cpu/device/CpuRuntime.h"
#include "backends/cpu/device/Peaks.h"
#include "backends/runtime/support/Report.h"
#include "backends/runtime/support/Threads.h"

#include <CLI/CLI.hpp>
#include <benchmark/benchmark.h>

using namespace mica;
using namespace mica::bench;

namespace {

/// The module of a benchmark; only one is kept, because modules are large.
class Compiled {
public:
  static llvm::Expected<Compiled *> of(const KernelBenchmark &kernel, const rt::Runtime &runtime) {
    static std::unique_ptr<Compiled> last;
    if (last && last->name == kernel.name)
      return last.get();
    last.reset();
    llvm::Expected<cpu::TargetDescription> target = cpu::describeTarget("native");
    if (!target)
      return target.takeError();
    auto module = test::KernelModule::compile(kernel.text, *target, runtime.table());
    if (!module)
      return module.takeError();
    last.reset(new Compiled{kernel.name, std::move(*target), std::move(*module)});
    return last.get();
  }

  std::vector<test::KernelCall> calls(const KernelBenchmark &kernel, int64_t rows) const {
    std::vector<test::KernelCall> made;
    for (int64_t number = 0; number < kernel.functions; ++number) {
      std::string name = "f" + std::to_string(number);
      auto arguments = kernel.arguments(module->getFunction(name), rows);
      for (int64_t call = 0, calls = kernel.calls(rows); call < calls; ++call)
        made.push_back(module->prepare(name, arguments));
    }
    return made;
  }

  std::string name;
  cpu::TargetDescription target;
  std::unique_ptr<test::KernelModule> module;
};

void report(benchmark::State &state, const Work &work, const rt::Peaks &peaks) {
  using benchmark::Counter;
  constexpr auto perSecond = Counter::kIsIterationInvariantRate;
  double reading = work.bytes / peaks.bytesPerSecond, computing = work.flops / peaks.flopsPerSecond;
  state.counters["GB/s"] = Counter(work.bytes * 1e-9, perSecond);
  state.counters["GFLOP/s"] = Counter(work.flops * 1e-9, perSecond);
  state.counters["roofline"] = Counter(std::max(reading, computing), perSecond);
  char limit[64];
  std::snprintf(limit, sizeof limit, reading >= computing ? "read %.1f GB/s" : "%.0f GFLOP/s",
                (reading >= computing ? peaks.bytesPerSecond : peaks.flopsPerSecond) * 1e-9);
  state.SetLabel(limit);
}

/// Measures the calls in turn, and the machine's limits for programs with such matmuls on this
/// target.
template <typename Call>
void measure(benchmark::State &state, rt::Runtime &runtime, const std::vector<Call> &calls,
             const std::string &format, const cpu::TargetDescription &target, const Work &work) {
  for (const Call &call : calls)
    call();
  rt::Manifest manifest;
  // For block formats, the limit is that of f32.
  manifest.weights = precisionNamed(format).value_or(Precision::F32);
  manifest.features = target.features;
  rt::Peaks peaks = rt::measurePeaks(runtime.pool(), manifest);
  if (peaks.bytesPerSecond <= 0) {
    state.SkipWithError("no memory for the measurement of bandwidth");
    return;
  }
  size_t next = 0;
  for (auto _ : state) {
    calls[next]();
    next = next + 1 == calls.size() ? 0 : next + 1;
  }
  report(state, work, peaks);
}

void run(benchmark::State &state, rt::Runtime &runtime, const KernelBenchmark &kernel) {
  int64_t rows = state.range(0);
  llvm::Expected<Compiled *> compiled = Compiled::of(kernel, runtime);
  if (!compiled) {
    state.SkipWithError(llvm::toString(compiled.takeError()).c_str());
    return;
  }
  std::vector<test::KernelCall> calls = (*compiled)->calls(kernel, rows);
  double weightBytes = double((*compiled)->module->getWeightBytes()) / double(kernel.functions);
  measure(state, runtime, calls, kernel.format, (*compiled)->target,
          kernel.work(weightBytes, rows));
}

void runUkernel(benchmark::State &state, rt::Runtime &runtime, const UkernelBenchmark &ukernel) {
  int64_t rows = state.range(0);
  try {
    measure(state, runtime, ukernel.calls(rows), ukernel.format,
            llvm::cantFail(cpu::describeTarget("native")), ukernel.work(rows));
  } catch (const std::exception &error) {
    state.SkipWithError(error.what());
  }
}

} // namespace

int main(int argc, char **argv) {
  unsigned threads = rt::defaultThreads();
  CLI::App app("Measures kernels against the machine's limits. All other options are Google "
               "Benchmark's, such as --benchmark_filter=linear/generated/bf16 or "
               "--benchmark_list_tests");
  app.add_option("--threads", threads, "Threads to compute with")
      ->capture_default_str()
      ->check(CLI::Range(1u, 1024u));
  double megabytes = farAboveCaches / (1 << 20);
  app.add_option("--megabytes", megabytes,
                 "What the calls of a benchmark read together; with less caches hold it, and "
                 "figures mean nothing")
      ->capture_default_str()
      ->check(CLI::Range(1.0, 65536.0));
  app.allow_extras();
  CLI11_PARSE(app, argc, argv);
  std::vector<std::string> rest = app.remaining();
  std::vector<char *> words = {argv[0]};
  for (std::string &word : rest)
    words.push_back(word.data());
  int count = static_cast<int>(words.size());
  benchmark::Initialize(&count, words.data());
  if (benchmark::ReportUnrecognizedArguments(count, words.data()))
    return 2;

  farAboveCaches = megabytes * (1 << 20);
  auto runtime = rt::CpuRuntime::create(threads);
  if (!runtime) {
    rt::reportError(runtime.error().message);
    return 1;
  }
  auto add = [&](const auto &made, auto measured) {
    auto *added =
        benchmark::RegisterBenchmark(made.name.c_str(), [&, measured](benchmark::State &state) {
          measured(state, **runtime, made);
        });
    added->ArgName("rows")->UseRealTime()->Unit(benchmark::kMicrosecond);
    for (int64_t rows : made.rows)
      added->Arg(rows);
  };
  std::vector<KernelBenchmark> kernels = kernelBenchmarks();
  for (const KernelBenchmark &kernel : kernels)
    add(kernel, run);
  std::vector<UkernelBenchmark> ukernels = ukernelBenchmarks((*runtime)->pool());
  for (const UkernelBenchmark &ukernel : ukernels)
    add(ukernel, runUkernel);
  benchmark::RunSpecifiedBenchmarks();
}
