#include "tests/bench/Machine.h"

#include <atomic>
#include <chrono>
#include <immintrin.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace mica::bench {

namespace {
using Clock = std::chrono::steady_clock;

/// Seconds from the moment when all threads are ready to the end of the last work(part).
template <typename Work> double secondsOn(unsigned threads, Work work) {
  std::atomic<unsigned> ready = 0, done = 0;
  std::atomic<bool> go = false;
  std::vector<std::thread> workers;
  for (unsigned part = 1; part < threads; ++part)
    workers.emplace_back([&, part] {
      ++ready;
      while (!go)
        ;
      work(part);
      ++done;
    });
  while (ready + 1 < threads)
    ;
  auto start = Clock::now();
  go = true;
  work(0);
  while (done + 1 < threads)
    ;
  std::chrono::duration<double> seconds = Clock::now() - start;
  for (std::thread &worker : workers)
    worker.join();
  return seconds.count();
}

/// Keeps a result without storing it.
template <typename T> void keep(const T &value) { asm volatile("" : : "m"(value)); }

/// Sums in as many accumulators as hide the latency of the additions: the loads alone decide.
__attribute__((target_clones("avx512f", "avx2", "default"))) uint64_t sum(const uint64_t *data,
                                                                          size_t count) {
  constexpr size_t unroll = 64;
  uint64_t sums[unroll] = {};
  for (size_t i = 0; i + unroll <= count; i += unroll)
    for (size_t j = 0; j < unroll; ++j)
      sums[j] += data[i + j];
  uint64_t total = 0;
  for (uint64_t value : sums)
    total += value;
  return total;
}

// Twelve independent chains hide the latency of two units with six cycles.
constexpr int chains = 12;

__attribute__((target("avx512f"))) void fma512(int64_t steps) {
  __m512 sums[chains] = {}, a = _mm512_set1_ps(1.5F);
  for (int64_t step = 0; step < steps; ++step)
    for (__m512 &sum : sums)
      sum = _mm512_fmadd_ps(a, a, sum);
  keep(sums);
}

__attribute__((target("avx2,fma"))) void fma256(int64_t steps) {
  __m256 sums[chains] = {}, a = _mm256_set1_ps(1.5F);
  for (int64_t step = 0; step < steps; ++step)
    for (__m256 &sum : sums)
      sum = _mm256_fmadd_ps(a, a, sum);
  keep(sums);
}

__attribute__((target("avx512f,avx512bf16"))) void dotBf16(int64_t steps) {
  __m512 sums[chains] = {};
  auto a = (__m512bh)_mm512_set1_epi32(0x3f803f80);
  for (int64_t step = 0; step < steps; ++step)
    for (__m512 &sum : sums)
      sum = _mm512_dpbf16_ps(sum, a, a);
  keep(sums);
}

__attribute__((target("avx512f,avx512vnni"))) void dotInt8(int64_t steps) {
  __m512i sums[chains] = {}, a = _mm512_set1_epi32(0x01010101);
  for (int64_t step = 0; step < steps; ++step)
    for (__m512i &sum : sums)
      sum = _mm512_dpbusd_epi32(sum, a, a);
  keep(sums);
}

/// Eight tiles of 16 rows of 64 bytes.
struct TileConfig {
  uint8_t palette = 1, startRow = 0, reserved[14] = {};
  uint16_t bytesPerRow[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfig) == 64);

/// Linux lets a process use tiles that asks for them.
bool mayUseTiles() {
  constexpr long requestPermission = 0x1023, tileData = 18;
  return syscall(SYS_arch_prctl, requestPermission, tileData) == 0;
}

/// Two by two tiles of sums, as kernels have them.
constexpr int tiles = 4;

__attribute__((target("amx-tile"))) void zeroTiles() {
  TileConfig config;
  _tile_loadconfig(&config);
  _tile_zero(0), _tile_zero(1), _tile_zero(2), _tile_zero(3);
  _tile_zero(4), _tile_zero(5), _tile_zero(6), _tile_zero(7);
}

__attribute__((target("amx-tile,amx-bf16"))) void tilesBf16(int64_t steps) {
  zeroTiles();
  for (int64_t step = 0; step < steps; ++step) {
    _tile_dpbf16ps(0, 4, 6), _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6), _tile_dpbf16ps(3, 5, 7);
  }
  _tile_release();
}

__attribute__((target("amx-tile,amx-int8"))) void tilesInt8(int64_t steps) {
  zeroTiles();
  for (int64_t step = 0; step < steps; ++step) {
    _tile_dpbusd(0, 4, 6), _tile_dpbusd(1, 4, 7);
    _tile_dpbusd(2, 5, 6), _tile_dpbusd(3, 5, 7);
  }
  _tile_release();
}

/// `operations` is what one step of `loop` does.
double peakOf(unsigned threads, void (*loop)(int64_t), double operations, int64_t steps) {
  double seconds = secondsOn(threads, [&](unsigned) { loop(steps); });
  return operations * static_cast<double>(steps) * threads * 1e-9 / seconds;
}

double vectorPeak(unsigned threads, void (*loop)(int64_t), double operations) {
  return peakOf(threads, loop, operations * chains, 5'000'000);
}

double tilePeak(unsigned threads, void (*loop)(int64_t), double depth) {
  return peakOf(threads, loop, 2 * 16 * 16 * depth * tiles, 1'000'000);
}
} // namespace

ReadBandwidth::ReadBandwidth(unsigned threads, size_t wanted)
    : threads(threads), bytes(wanted / (threads * size_t(4096)) * (threads * size_t(4096))) {
  void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return;
  madvise(memory, bytes, MADV_HUGEPAGE);
  buffer = static_cast<uint64_t *>(memory);
  for (size_t i = 0; i < bytes / sizeof *buffer; ++i)
    buffer[i] = i;
}

ReadBandwidth::~ReadBandwidth() {
  if (buffer)
    munmap(buffer, bytes);
}

double ReadBandwidth::pass() {
  size_t count = bytes / sizeof *buffer / threads;
  double seconds =
      secondsOn(threads, [&](unsigned part) { keep(sum(buffer + part * count, count)); });
  return static_cast<double>(bytes) * 1e-9 / seconds;
}

Peaks measurePeaks(unsigned threads) {
  Peaks peaks;
  if (__builtin_cpu_supports("avx512f"))
    peaks.f32 = vectorPeak(threads, fma512, 32);
  else if (__builtin_cpu_supports("fma"))
    peaks.f32 = vectorPeak(threads, fma256, 16);
  if (__builtin_cpu_supports("avx512bf16"))
    peaks.bf16 = vectorPeak(threads, dotBf16, 64);
  if (__builtin_cpu_supports("avx512vnni"))
    peaks.int8 = vectorPeak(threads, dotInt8, 128);
  if (!mayUseTiles())
    return peaks;
  if (__builtin_cpu_supports("amx-bf16"))
    peaks.bf16Tiles = tilePeak(threads, tilesBf16, 32);
  if (__builtin_cpu_supports("amx-int8"))
    peaks.int8Tiles = tilePeak(threads, tilesInt8, 64);
  return peaks;
}

} // namespace mica::bench
