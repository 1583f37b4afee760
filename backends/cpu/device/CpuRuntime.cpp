#include "backends/cpu/device/CpuRuntime.h"
#include "backends/runtime/support/Report.h"

namespace mica::rt {

/// The functions listed in RuntimeCalls.def.
struct CpuRuntime::Calls {
  static CpuRuntime &of(void *runtime) { return *static_cast<CpuRuntime *>(runtime); }

  static void parallelFor(void *runtime, WorkPool::Body body, void *context, int64_t tasks) {
    if (CallObserver *profile = of(runtime).profile()) [[unlikely]]
      return profile->launch(body, context, tasks);
    of(runtime).workers.parallelFor(body, context, tasks);
  }

  static void matmul(void *runtime, const void *a, const void *w, void *c, int64_t m, int64_t n,
                     int64_t k, int64_t lda, int64_t ldc, int32_t format, int32_t accumulate) {
    MatmulShape shape{m, n, k, lda, ldc, static_cast<MatmulFormat>(format), accumulate != 0};
    Matmul &matmul = of(runtime).matmul();
    CallObserver *profile = of(runtime).profile();
    Status done = profile ? profile->product(shape, [&] { return matmul.run(shape, a, w, c); })
                          : matmul.run(shape, a, w, c);
    if (!done)
      reportFatal(done.error().message);
  }

  static void probe(void *runtime, const char *name, int64_t nameBytes, int64_t layer,
                    const void *x, int64_t rows, int64_t columns, int64_t stride, int32_t numbers) {
    if (ProbeObserver *probes = of(runtime).probes())
      probes->add({name, static_cast<size_t>(nameBytes)}, layer,
                  {x, rows, columns, stride, static_cast<ProbeNumbers>(numbers)});
  }
};

CpuRuntime::CpuRuntime(unsigned threads)
    : calls{
          sizeof(RuntimeTable),
          this,
#define MICA_RUNTIME_CALL(name, ...) Calls::name,
#include "backends/runtime/abi/RuntimeCalls.def"
#undef MICA_RUNTIME_CALL
      },
      workers(threads) {
}

Result<std::unique_ptr<Runtime>> CpuRuntime::create(unsigned threads) {
  std::unique_ptr<CpuRuntime> runtime(new CpuRuntime(threads));
  unsigned started = runtime->workers.threads();
  if (started == threads)
    return std::unique_ptr<Runtime>(std::move(runtime));
  return Error{"only " + std::to_string(started) + " of " + std::to_string(threads) +
               " threads could be started; use --threads " + std::to_string(started) +
               ", or raise the limits of processes (ulimit -u) and memory (ulimit -v)"};
}

Matmul &CpuRuntime::matmul() {
  std::call_once(multiplies, [this] { products = std::make_unique<Matmul>(workers); });
  return *products;
}

} // namespace mica::rt
