#include "backends/cpu/device/Peaks.h"

#include "backends/cpu/features/Cpu.h"
#include "backends/cpu/features/InterleavedPages.h"
#include "backends/runtime/support/Seconds.h"
#include "ir/Entry/Precision.h"

#include <algorithm>
#include <immintrin.h>
#include <string_view>
#include <unistd.h>

namespace mica::rt {

namespace {
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds measuringTime{100};
/// Several times the size of any cache that one process can use on current machines.
constexpr int64_t minBuffer = int64_t(256) << 20, maxBuffer = int64_t(2) << 30;

/// A sink for results, so that their computation is not optimized away.
volatile float sink;

/// The highest rate that `measure` returns within the measuring time.
template <typename Measure> double bestRate(Measure measure) {
  double best = 0;
  for (Clock::time_point start = Clock::now(); Clock::now() - start < measuringTime;)
    best = std::max(best, measure());
  return best;
}

//===- Reading ------------------------------------------------------------===//

/// Prefetches the unit that corresponds to the one at `p`; see InterleavedPages.h.
inline void askAhead(const char *p) {
  using namespace interleaved_pages;
  auto at = static_cast<int64_t>(reinterpret_cast<uintptr_t>(p));
  const char *ahead = p + (prefetchOffset(at) - at);
  for (int64_t byte = 0; byte < unit; byte += line)
    __builtin_prefetch(ahead + byte, 0, 2);
}

/// Sums all data in vectors of `size` bytes, four at a time.
#define MICA_READ_LOOP(name, size, features)                                                       \
  __attribute__((target(features))) void name(const char *from, const char *to, bool ahead) {      \
    typedef int Vector __attribute__((vector_size(size)));                                         \
    Vector a{}, b{}, c{}, d{};                                                                     \
    for (auto p = reinterpret_cast<const Vector *>(from),                                          \
              end = reinterpret_cast<const Vector *>(to);                                          \
         p + 4 <= end; p += 4) {                                                                   \
      if (ahead && reinterpret_cast<uintptr_t>(p) % interleaved_pages::unit == 0)                  \
        askAhead(reinterpret_cast<const char *>(p));                                               \
      a += p[0];                                                                                   \
      b += p[1];                                                                                   \
      c += p[2];                                                                                   \
      d += p[3];                                                                                   \
    }                                                                                              \
    Vector sum = a + b + c + d;                                                                    \
    sink = static_cast<float>(sum[0]);                                                             \
  }
MICA_READ_LOOP(readBy16, 16, "sse2")
MICA_READ_LOOP(readBy32, 32, "avx2")
MICA_READ_LOOP(readBy64, 64, "avx512f")
#undef MICA_READ_LOOP

using ReadLoop = void (*)(const char *, const char *, bool);

ReadLoop bestReadLoop() {
  if (__builtin_cpu_supports("avx512f"))
    return readBy64;
  return __builtin_cpu_supports("avx2") ? readBy32 : readBy16;
}

/// The size in bytes of the pieces that tasks read; whole pages.
constexpr int64_t piece = int64_t(2) << 20;
} // namespace

ReadBandwidth::ReadBandwidth(WorkPool &pool, int64_t wanted)
    : pool(pool), bytes(std::max<int64_t>(1, wanted / piece) * piece) {
  Result<Memory> made = Memory::reserve(static_cast<uint64_t>(bytes), Pages::Huge);
  if (!made)
    return;
  memory = *std::move(made);
  // Untouched pages would all be mapped to the zero page.
  pool.parallelFor(
      [](void *data, int64_t begin, int64_t end) {
        for (int64_t at = begin * piece; at < end * piece; at += 4096)
          static_cast<char *>(data)[at] = 1;
      },
      memory.data(), bytes / piece);
}

double ReadBandwidth::pass(Order order) {
  struct Context {
    const char *data;
    ReadLoop loop;
    bool ahead;
  } context{static_cast<const char *>(memory.data()), bestReadLoop(),
            order == Order::InterleavedPages};
  Clock::time_point start = Clock::now();
  pool.parallelFor(
      [](void *opaque, int64_t begin, int64_t end) {
        auto *c = static_cast<Context *>(opaque);
        c->loop(c->data + begin * piece, c->data + end * piece, c->ahead);
      },
      &context, bytes / piece);
  return static_cast<double>(bytes) / secondsSince(start);
}

namespace {
double measureReading(WorkPool &pool) {
  int64_t cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
  int64_t bytes = std::clamp<int64_t>(8 * std::max<int64_t>(0, cache), minBuffer, maxBuffer);
  ReadBandwidth bandwidth(pool, bytes);
  if (!bandwidth)
    return 0;
  double best = 0;
  for (auto order : ReadBandwidth::orders)
    best = std::max(best, bestRate([&] { return bandwidth.pass(order); }));
  return best;
}

//===- Products -----------------------------------------------------------===//

/// Steps of one call of a loop below; each step is 16 independent instructions.
constexpr int64_t steps = 20000, chains = 16;

/// 16 independent chains of sums: enough for two execution units with a latency of at least 4
/// cycles.
#define MICA_PRODUCT_LOOP(name, features, Vector, zero, step)                                      \
  __attribute__((target(features))) void name(int64_t count) {                                     \
    Vector sums[chains];                                                                           \
    for (Vector &sum : sums)                                                                       \
      sum = zero;                                                                                  \
    for (int64_t i = 0; i < count; ++i) {                                                          \
      _Pragma("GCC unroll 16") for (int64_t j = 0; j < chains; ++j) {                              \
        Vector &sum = sums[j];                                                                     \
        step;                                                                                      \
        asm volatile("" : "+v"(sum));                                                              \
      }                                                                                            \
    }                                                                                              \
    float first;                                                                                   \
    __builtin_memcpy(&first, &sums[0], sizeof first);                                              \
    sink = first;                                                                                  \
  }
MICA_PRODUCT_LOOP(productSse, "sse2", __m128, _mm_setzero_ps(),
                  sum = _mm_add_ps(sum, _mm_mul_ps(sum, sum)))
MICA_PRODUCT_LOOP(productFma256, "avx2,fma", __m256, _mm256_setzero_ps(),
                  sum = _mm256_fmadd_ps(sum, sum, sum))
MICA_PRODUCT_LOOP(productFma512, "avx512f", __m512, _mm512_setzero_ps(),
                  sum = _mm512_fmadd_ps(sum, sum, sum))
MICA_PRODUCT_LOOP(productBf16, "avx512f,avx512bf16", __m512, _mm512_setzero_ps(),
                  sum = _mm512_dpbf16_ps(sum, __m512bh{}, __m512bh{}))
MICA_PRODUCT_LOOP(productInt8, "avx512f,avx512vnni", __m512i, _mm512_setzero_si512(),
                  sum = _mm512_dpbusd_epi32(sum, __m512i{}, __m512i{}))
MICA_PRODUCT_LOOP(productInt16, "avx512f,avx512vnni", __m512i, _mm512_setzero_si512(),
                  sum = _mm512_dpwssd_epi32(sum, __m512i{}, __m512i{}))
MICA_PRODUCT_LOOP(productInt8By32, "avx2,avxvnni", __m256i, _mm256_setzero_si256(),
                  sum = _mm256_dpbusd_avx_epi32(sum, __m256i{}, __m256i{}))
#undef MICA_PRODUCT_LOOP

/// Tile multiplications with four accumulators, 16 steps per iteration. On Linux, a process must
/// request permission to use AMX tiles.
#define MICA_TILE_LOOP(name, features, step)                                                       \
  __attribute__((target(features))) void name(int64_t count) {                                     \
    struct alignas(64) {                                                                           \
      uint8_t palette = 1, start = 0, reserved[14] = {};                                           \
      uint16_t bytes[16] = {64, 64, 64, 64, 64, 64};                                               \
      uint8_t rows[16] = {16, 16, 16, 16, 16, 16};                                                 \
    } configuration;                                                                               \
    _tile_loadconfig(&configuration);                                                              \
    _tile_zero(0);                                                                                 \
    _tile_zero(1);                                                                                 \
    _tile_zero(2);                                                                                 \
    _tile_zero(3);                                                                                 \
    _tile_zero(4);                                                                                 \
    _tile_zero(5);                                                                                 \
    for (int64_t i = 0; i < count * (chains / 4); ++i) {                                           \
      step(0, 4, 5);                                                                               \
      step(1, 4, 5);                                                                               \
      step(2, 4, 5);                                                                               \
      step(3, 4, 5);                                                                               \
    }                                                                                              \
    _tile_release();                                                                               \
  }
MICA_TILE_LOOP(tilesBf16, "amx-tile,amx-bf16", _tile_dpbf16ps)
MICA_TILE_LOOP(tilesInt8, "amx-tile,amx-int8", _tile_dpbusd)
#undef MICA_TILE_LOOP

struct ProductLoop {
  const char *name;
  void (*run)(int64_t);
  double flops; ///< FLOPs of one instruction.
};

/// The fastest loop whose instructions the program's own code or oneDNN may use.
ProductLoop bestProductLoop(const Manifest &m) {
  auto has = [&](std::string_view feature) {
    return std::find(m.features.begin(), m.features.end(), feature) != m.features.end();
  };
  bool integers = infoOf(m.weights).isInteger, bf16 = m.weights == Precision::BF16;
  // Weights in blocks are multiplied in the type of the rows; most matmuls are those of prefill.
  for (const auto &[role, type] : m.rows)
    if (role == "prompt") {
      integers = type.starts_with("int8");
      bf16 = type.starts_with("bf16");
      if (type.starts_with("int16") && has("avx512vnni"))
        return {"vpdpwssd", productInt16, 64};
    }
  // oneDNN detects the processor at run time, whatever the program was compiled for, but is only
  // used on processors with AVX-512.
  if (has("avx512f")) {
    if (integers && cpuHas("amx-int8"))
      return {"tdpbusd", tilesInt8, 2 * 16 * 16 * 64};
    if (bf16 && cpuHas("amx-bf16"))
      return {"tdpbf16ps", tilesBf16, 2 * 16 * 16 * 32};
  }
  if (integers && has("avx512vnni"))
    return {"vpdpbusd", productInt8, 128};
  if (integers && has("avxvnni") && !has("avx512f"))
    return {"vpdpbusd, 256 bits", productInt8By32, 64};
  if (bf16 && has("avx512bf16"))
    return {"vdpbf16ps", productBf16, 64};
  if (has("avx512f"))
    return {"vfmadd, 512 bits", productFma512, 32};
  if (has("avx2") && has("fma"))
    return {"vfmadd, 256 bits", productFma256, 16};
  return {"mulps and addps", productSse, 8};
}

double measureProducts(WorkPool &pool, const ProductLoop &loop) {
  auto threads = static_cast<int64_t>(pool.threads());
  double flops = loop.flops * static_cast<double>(steps * chains * threads);
  ProductLoop shared = loop;
  return bestRate([&] {
    Clock::time_point start = Clock::now();
    pool.parallelFor(
        [](void *opaque, int64_t begin, int64_t end) {
          for (int64_t thread = begin; thread < end; ++thread)
            static_cast<ProductLoop *>(opaque)->run(steps);
        },
        &shared, threads);
    return flops / secondsSince(start);
  });
}
} // namespace

Peaks measurePeaks(WorkPool &pool, const Manifest &manifest) {
  ProductLoop loop = bestProductLoop(manifest);
  return {measureReading(pool), measureProducts(pool, loop), loop.name};
}

} // namespace mica::rt
