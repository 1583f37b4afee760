#include "backends/cpu/device/Exports.h"
#include "backends/cpu/device/Matmul.h"
#include "backends/runtime/profile/Probes.h"
#include "backends/runtime/profile/Profile.h"
#include "backends/runtime/support/Report.h"

namespace mica::rt {

// Never destroyed: at exit a thread of the pool may still be on its way to sleep.
static Pool *thePool = nullptr;

Status startRuntime(unsigned threads) {
  thePool = new Pool(threads);
  unsigned started = thePool->threads();
  if (started == threads)
    return {};
  return Error{"of " + std::to_string(threads) + " threads only " + std::to_string(started) +
               " can be started, choose --threads " + std::to_string(started) +
               " or raise the limits of processes (ulimit -u) and memory (ulimit -v)"};
}

Pool &pool() { return *thePool; }

/// Made at the first product: small models never need oneDNN.
static Matmul &matmul() {
  static Matmul *instance = new Matmul(pool());
  return *instance;
}

} // namespace mica::rt

extern "C" __attribute__((visibility("default"))) void
mica_rt_parallel_for(void (*body)(void *, int64_t, int64_t), void *context, int64_t tasks) {
  if (mica::rt::Profile *profile = mica::rt::activeProfile()) [[unlikely]]
    return profile->launch(body, context, tasks);
  mica::rt::pool().parallelFor(body, context, tasks);
}

extern "C" __attribute__((visibility("default"))) void
mica_rt_matmul(const void *a, const void *w, void *c, int64_t m, int64_t n, int64_t k, int64_t lda,
               int64_t ldc, int32_t format, int32_t accumulate) {
  mica::rt::MatmulShape shape{
      m, n, k, lda, ldc, static_cast<mica::rt::MatmulFormat>(format), accumulate != 0};
  mica::rt::Profile *profile = mica::rt::activeProfile();
  mica::rt::Matmul &matmul = mica::rt::matmul();
  mica::rt::Status done = profile
                              ? profile->product(shape, [&] { return matmul.run(shape, a, w, c); })
                              : matmul.run(shape, a, w, c);
  if (!done)
    mica::rt::reportFatal(done.error().message);
}

extern "C" __attribute__((visibility("default"))) void
mica_rt_probe(const char *name, int64_t nameBytes, int64_t layer, const void *x, int64_t rows,
              int64_t columns, int64_t stride, int32_t numbers) {
  if (mica::rt::ProbeListener *probes = mica::rt::activeProbes())
    probes->add({name, static_cast<size_t>(nameBytes)}, {nameBytes, layer, rows, columns}, x,
                stride, static_cast<mica::rt::ProbeNumbers>(numbers));
}
