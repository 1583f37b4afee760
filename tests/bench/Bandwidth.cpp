// mica-bandwidth: the read bandwidth of main memory as one JSON object, for compare.py.
#include "backends/cpu/device/Peaks.h"
#include "backends/cpu/device/Pool.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <thread>

int main(int argc, char **argv) {
  unsigned threads = std::max(1u, std::thread::hardware_concurrency()), passes = 8;
  size_t mebibytes = 1024;
  CLI::App app("Measures the read bandwidth of main memory");
  app.add_option("--threads", threads, "Threads that read")
      ->capture_default_str()
      ->check(CLI::Range(1u, 1024u));
  app.add_option("--mib", mebibytes, "Size of the buffer, many times the last cache")
      ->capture_default_str()
      ->check(CLI::Range(size_t(16), size_t(1) << 20));
  app.add_option("--passes", passes,
                 "Times that the buffer is read, each way; the median of the better one counts")
      ->capture_default_str()
      ->check(CLI::Range(1u, 10000u));
  CLI11_PARSE(app, argc, argv);

  mica::rt::Pool pool(threads);
  mica::rt::ReadBandwidth bandwidth(pool, static_cast<int64_t>(mebibytes << 20));
  if (!bandwidth) {
    std::fprintf(stderr, "mica-bandwidth: error: no memory for %zu MiB, choose a smaller --mib\n",
                 mebibytes);
    return 1;
  }
  using Order = mica::rt::ReadBandwidth::Order;
  std::vector<double> plain(passes), interleaved(passes);
  bandwidth.pass(Order::Plain);
  for (unsigned i = 0; i < passes; ++i) {
    plain[i] = bandwidth.pass(Order::Plain) * 1e-9;
    interleaved[i] = bandwidth.pass(Order::InterleavedPages) * 1e-9;
  }
  auto median = [](std::vector<double> runs) {
    std::sort(runs.begin(), runs.end());
    return runs[runs.size() / 2];
  };
  nlohmann::ordered_json report = {{"threads", threads},
                                   {"mib", mebibytes},
                                   {"gb_per_s", std::max(median(plain), median(interleaved))},
                                   {"plain", plain},
                                   {"interleaved_pages", interleaved}};
  std::printf("%s\n", report.dump().c_str());
}
