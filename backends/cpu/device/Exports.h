// The functions that generated code calls, and the one pool behind them.
#pragma once

#include "backends/cpu/device/Pool.h"
#include "backends/runtime/support/Result.h"

#include <cstdint>

namespace mica::rt {

/// Starts the process' pool. Must be called once, before any forward function runs. Error: fewer
/// threads can be started.
Status startRuntime(unsigned threads);
Pool &pool();

} // namespace mica::rt

extern "C" {
/// Pool::parallelFor on the process' pool.
void mica_rt_parallel_for(void (*body)(void *context, int64_t begin, int64_t end), void *context,
                          int64_t tasks);
/// Matmul::run on the process' pool: C[m, n] = A[m, k] W (+= where `accumulate`), `format` a
/// MatmulFormat. Ends the process with an error line where oneDNN cannot compute this on this CPU.
void mica_rt_matmul(const void *a, const void *w, void *c, int64_t m, int64_t n, int64_t k,
                    int64_t lda, int64_t ldc, int32_t format, int32_t accumulate);
}
