#include "backends/cpu/runtime/Exports.h"
#include "backends/cpu/runtime/Matmul.h"
#include "backends/cpu/runtime/Report.h"

namespace mica::rt {

// Never destroyed: at exit a thread of the pool may still be on its way to sleep.
static Pool *thePool = nullptr;

void startRuntime(unsigned threads) { thePool = new Pool(threads); }

Pool &pool() { return *thePool; }

/// Made at the first product: small models never need oneDNN.
static Matmul &matmul() {
  static Matmul *instance = new Matmul(pool());
  return *instance;
}

} // namespace mica::rt

extern "C" __attribute__((visibility("default"))) void
mica_rt_parallel_for(void (*body)(void *, int64_t, int64_t), void *context, int64_t tasks) {
  mica::rt::pool().parallelFor(body, context, tasks);
}

extern "C" __attribute__((visibility("default"))) void
mica_rt_matmul(const void *a, const void *w, void *c, int64_t m, int64_t n, int64_t k, int64_t lda,
               int64_t ldc, int32_t format, int32_t accumulate) {
  mica::rt::MatmulShape shape{
      m, n, k, lda, ldc, static_cast<mica::rt::MatmulFormat>(format), accumulate != 0};
  if (mica::rt::Status done = mica::rt::matmul().run(shape, a, w, c); !done)
    mica::rt::reportFatal(done.error().message);
}
