#include "backends/cpu/device/CpuRuntime.h"
#include "backends/runtime/support/Report.h"

#include <new>

namespace mica::rt {

/// The functions listed in RuntimeCalls.def.
struct CpuRuntime::Calls {
  static CpuRuntime &of(void *runtime) { return *static_cast<CpuRuntime *>(runtime); }

  static void parallelFor(void *runtime, WorkPool::Body body, void *context, int64_t tasks) {
    if (CallObserver *profile = of(runtime).profile()) [[unlikely]]
      return profile->launch(body, context, tasks);
    of(runtime).beforeKernel();
    of(runtime).workers.parallelFor(body, context, tasks);
  }

  static void matmul(void *runtime, const void *a, const void *w, void *c, int64_t m, int64_t n,
                     int64_t k, int64_t lda, int64_t ldc, int32_t format, int32_t accumulate) {
    MatmulShape shape{m, n, k, lda, ldc, static_cast<MatmulFormat>(format), accumulate != 0};
    Matmul &matmul = of(runtime).matmul();
    auto multiply = [&] { return matmul.run(shape, a, w, c); };
    if (CallObserver *profile = of(runtime).profile()) [[unlikely]]
      return require(profile->product(shape, multiply));
    of(runtime).beforeKernel();
    require(multiply());
  }

  static void probe(void *runtime, const char *name, int64_t nameBytes, int64_t layer,
                    const void *x, int64_t rows, int64_t columns, int64_t stride, int32_t numbers) {
    if (ProbeObserver *probes = of(runtime).probes())
      probes->add({name, static_cast<size_t>(nameBytes)}, layer,
                  {x, rows, columns, stride, static_cast<ProbeNumbers>(numbers)});
  }

  static void allGather(void *runtime, const void *part, int64_t partStride, int64_t partBytes,
                        void *whole, int64_t wholeStride, int64_t wholeBytes, int64_t rows) {
    exchange(runtime, "all_gather", [&](Collectives &collectives) {
      return collectives.allGather(rowsAt(part, partStride, partBytes, rows),
                                   rowsAt(whole, wholeStride, wholeBytes, rows));
    });
  }

  static void allSlice(void *runtime, const void *whole, int64_t wholeStride, int64_t wholeBytes,
                       void *part, int64_t partStride, int64_t partBytes, int64_t rows) {
    exchange(runtime, "all_slice", [&](Collectives &collectives) {
      collectives.allSlice(rowsAt(whole, wholeStride, wholeBytes, rows),
                           rowsAt(part, partStride, partBytes, rows));
      return Status();
    });
  }

  static void localRows(void *runtime, const int32_t *indices, int32_t *local, int64_t rows,
                        int64_t n) {
    of(runtime).collectives().localRows(indices, local, rows, n);
  }

  static void shareRows(void *runtime, const int32_t *indices, void *x, int64_t stride,
                        int64_t bytes, int64_t rows, int64_t n) {
    exchange(runtime, "share_rows", [&](Collectives &collectives) {
      return collectives.shareRows(indices, rowsAt(x, stride, bytes, rows), n);
    });
  }

private:
  static Rows rowsAt(const void *data, int64_t stride, int64_t bytes, int64_t rows) {
    return {static_cast<std::byte *>(const_cast<void *>(data)), stride, bytes, rows};
  }

  /// Generated code cannot handle errors.
  static void require(const Status &done) {
    if (!done)
      reportFatal(done.error().message);
  }

  template <typename Move>
  static void exchange(void *runtime, std::string_view name, const Move &move) {
    Collectives &collectives = of(runtime).collectives();
    // The other ranks wait for this one, so they end as well.
    auto moveOrFail = [&] {
      uint64_t before = collectives.bytesReceived();
      Communicator &ranks = *of(runtime).communicator();
      try {
        if (Status done = move(collectives); !done)
          ranks.fail(done.error());
      } catch (const std::bad_alloc &) {
        ranks.fail({"out of memory"});
      }
      return collectives.bytesReceived() - before;
    };
    if (CallObserver *profile = of(runtime).profile()) [[unlikely]]
      profile->exchange(name, moveOrFail);
    else
      moveOrFail();
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

Collectives &CpuRuntime::collectives() {
  if (!exchanges) {
    if (!communicator())
      reportFatal("the model's code is for several ranks, but there is only this one");
    exchanges = std::make_unique<Collectives>(workers, *communicator());
  }
  return *exchanges;
}

} // namespace mica::rt
