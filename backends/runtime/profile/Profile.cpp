#include "backends/runtime/profile/Profile.h"
#include "backends/runtime/support/Seconds.h"

#include <algorithm>

namespace mica::rt {

int64_t positionsAttended(int64_t first, int64_t end, int64_t window) {
  return end - (window > 0 ? std::max<int64_t>(0, first + 1 - window) : 0);
}

void CallPositions::set(std::span<const int32_t> sequences, std::span<const int32_t> positions) {
  rowSequences.assign(sequences.begin(), sequences.end());
  rowPositions.assign(positions.begin(), positions.end());
}

int64_t CallPositions::positions(int64_t window) const {
  int64_t sum = 0;
  // Rows of one sequence are contiguous and in increasing position.
  for (size_t first = 0, end; first < rowSequences.size(); first = end) {
    end = first + 1;
    while (end < rowSequences.size() && rowSequences[end] == rowSequences[first])
      ++end;
    sum += positionsAttended(rowPositions[first], rowPositions[end - 1] + 1, window);
  }
  return sum;
}

int64_t CallPositions::pairs(int64_t window) const {
  int64_t sum = 0;
  for (int32_t position : rowPositions)
    sum += window > 0 ? std::min<int64_t>(position + 1, window) : position + 1;
  return sum;
}

Work workOf(const KernelCost &cost, int64_t rows, const CallPositions &call) {
  // The experts selected by the rows are unknown: assume as many different ones as possible.
  int64_t experts = std::min(cost.experts, rows * cost.rowExperts);
  int64_t bytes = cost.weightBytes + rows * (cost.rowWeightBytes + cost.rowCacheBytes) +
                  experts * cost.expertBytes;
  int64_t flops = rows * cost.rowFlops;
  if (cost.positionCacheBytes > 0)
    bytes += call.positions(cost.window) * cost.positionCacheBytes;
  if (cost.pairFlops > 0)
    flops += call.pairs(cost.window) * cost.pairFlops;
  return {static_cast<double>(bytes), static_cast<double>(flops)};
}

Work workOf(const MatmulShape &shape) {
  double elements = static_cast<double>(shape.n) * static_cast<double>(shape.k);
  return {elements * (shape.format == MatmulFormat::F32 ? 4 : 2),
          2 * elements * static_cast<double>(shape.m)};
}

Profile::Profile(const SymbolLookup &symbol, Runtime &runtime, bool keepSpans)
    : runtime(runtime), keepSpans(keepSpans), parts(runtime.pool().threads()) {
  auto tasks = static_cast<const WorkPool::Body *>(symbol("mica_kernel_tasks"));
  auto names = static_cast<const char *>(symbol("mica_kernel_names"));
  auto costs = static_cast<const KernelCost *>(symbol("mica_kernel_costs"));
  if (!tasks || !names || !costs)
    return;
  for (; *tasks; ++tasks, ++costs) {
    std::string name = names;
    names += name.size() + 1;
    kernels.emplace(*tasks, std::pair(std::move(name), *costs));
  }
}

void Profile::start() {
  forksBefore = runtime.pool().forks();
  runtime.pool().observe(this);
  runtime.setProfile(this);
}

void Profile::stop() {
  runtime.setProfile(nullptr);
  runtime.pool().observe(nullptr);
  forkCount += runtime.pool().forks() - forksBefore;
}

int32_t Profile::entryOf(const std::string &name) {
  auto [known, isNew] = indices.try_emplace(name, static_cast<int32_t>(all.size()));
  if (isNew)
    all.push_back({name, 0, 0, 0, {}, 0});
  return known->second;
}

void Profile::ran(int64_t thread, Time begin, Time end) {
  parts[thread].seconds += secondsBetween(begin, end);
  if (keepSpans)
    parts[thread].spans.push_back({0, static_cast<int32_t>(thread) + 1, begin, end, 0, {}});
}

void Profile::record(int32_t index, Clock::time_point begin, int64_t rows, Work work,
                     double exchangedBytes) {
  Clock::time_point end = Clock::now();
  Entry &entry = all[index];
  double seconds = secondsBetween(begin, end), busy = 0;
  for (Part &part : parts) {
    busy += part.seconds;
    for (Span &span : part.spans) {
      span.entry = index;
      kept.push_back(span);
    }
    part.seconds = 0;
    part.spans.clear();
  }
  ++entry.launches;
  entry.seconds += seconds;
  // Without a fork, the calling thread ran everything.
  entry.busySeconds += busy > 0 ? busy : seconds;
  entry.work.bytes += work.bytes;
  entry.work.flops += work.flops;
  entry.exchangedBytes += exchangedBytes;
  if (keepSpans)
    kept.push_back({index, 0, begin, end, rows, work, exchangedBytes});
}

void Profile::launch(WorkPool::Body body, void *context, int64_t tasks) {
  auto known = kernels.find(body);
  bool named = known != kernels.end();
  int32_t index = entryOf(named ? known->second.first : "unnamed kernels");
  int64_t rows = 0;
  Work work;
  if (named) {
    const KernelCost &cost = known->second.second;
    if (cost.rowsAt >= 0)
      rows = *reinterpret_cast<const int64_t *>(static_cast<const char *>(context) + cost.rowsAt);
    work = workOf(cost, rows, call);
  }
  Clock::time_point begin = Clock::now();
  runtime.pool().parallelFor(body, context, tasks);
  record(index, begin, rows, work);
}

Status Profile::product(const MatmulShape &shape, const std::function<Status()> &run) {
  int32_t index = entryOf(matmulName(shape.n, shape.k, shape.accumulate));
  Clock::time_point begin = Clock::now();
  Status done = run();
  record(index, begin, shape.m, workOf(shape));
  return done;
}

void Profile::exchange(std::string_view name, const std::function<uint64_t()> &run) {
  int32_t index = entryOf(std::string(name));
  Clock::time_point begin = Clock::now();
  auto bytes = static_cast<double>(run());
  record(index, begin, 0, {}, bytes);
}

void Profile::beginCall(std::span<const int32_t> sequences, std::span<const int32_t> positions) {
  call.set(sequences, positions);
  callBegin = Clock::now();
}

void Profile::endCall(int64_t rows) {
  ++callCount;
  if (keepSpans)
    kept.push_back({-1, 0, callBegin, Clock::now(), rows, {}});
}

} // namespace mica::rt
