// Exchanges between ranks as programs execute them: through shared memory on one machine, by the
// plug-in on several.
#include "backends/runtime/ranks/MpiRanks.h"
#include "backends/runtime/ranks/RankResources.h"
#include "tests/bench/RankBenchmark.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

using namespace mica::rt;

namespace {
/// The ranks of this run.
Communicator *ranks;
/// The rows of all ranks.
std::vector<float> rows;

int check(const Status &status) {
  if (status)
    return 0;
  std::fprintf(stderr, "%s\n", status.error().message.c_str());
  return 1;
}

int gather(const void *part, uint64_t bytes, void *all) {
  return check(ranks->allGather(part, bytes, all));
}

/// Adds the rows in the order of ranks, so that the sum is the same on all of them.
int reduce(const float *row, uint64_t bytes, float *sum) {
  size_t columns = bytes / sizeof(float), count = static_cast<size_t>(ranks->size());
  rows.resize(count * columns);
  if (int failed = check(ranks->allGather(row, bytes, rows.data())))
    return failed;
  // Row by row, so that the loop is vectorized.
  std::copy_n(rows.data(), columns, sum);
  for (size_t rank = 1; rank < count; ++rank) {
    const float *next = rows.data() + rank * columns;
    for (size_t i = 0; i < columns; ++i)
      sum[i] += next[i];
  }
  return 0;
}
} // namespace

int main(int argc, char **argv) {
  Result<std::unique_ptr<MpiRanks>> started = MpiRanks::start();
  if (!started) {
    std::fprintf(stderr, "%s\n", started.error().message.c_str());
    return 1;
  }
  ranks = started->get();
  if (Result<RankResources> resources = resourcesOfRank(*ranks, 1))
    ranks->setOversubscribed(resources->areOversubscribed);
  Exchanges exchanges{ranks->rank(), ranks->size(), gather, reduce};
  int status = measureExchanges(&exchanges, argc, argv);
  (*started)->finish(EXIT_SUCCESS);
  return status;
}
