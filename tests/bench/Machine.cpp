#include "tests/bench/Machine.h"

#include <atomic>
#include <chrono>
#include <sys/mman.h>
#include <thread>

namespace mica::bench {

namespace {
using Clock = std::chrono::steady_clock;

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

/// Keeps a result without storing it.
void keep(uint64_t value) { asm volatile("" : : "r"(value)); }
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

void ReadBandwidth::readPart(unsigned part) const {
  size_t count = bytes / sizeof *buffer / threads;
  keep(sum(buffer + part * count, count));
}

double ReadBandwidth::pass() {
  std::atomic<unsigned> ready = 0, done = 0;
  std::atomic<bool> go = false;
  std::vector<std::thread> workers;
  for (unsigned part = 1; part < threads; ++part)
    workers.emplace_back([&, part] {
      ++ready;
      while (!go)
        ;
      readPart(part);
      ++done;
    });
  while (ready + 1 < threads)
    ;
  auto start = Clock::now();
  go = true;
  readPart(0);
  while (done + 1 < threads)
    ;
  std::chrono::duration<double> seconds = Clock::now() - start;
  for (std::thread &worker : workers)
    worker.join();
  return static_cast<double>(bytes) * 1e-9 / seconds.count();
}

} // namespace mica::bench
