// Where the time of the model goes: each launch of a kernel and each product of oneDNN, timed.
#ifndef MICA_BACKENDS_RUNTIME_PROFILE_PROFILE_H
#define MICA_BACKENDS_RUNTIME_PROFILE_PROFILE_H

#include "backends/runtime/abi/MatmulShape.h"
#include "backends/runtime/abi/Runtime.h"
#include "backends/runtime/support/Result.h"

#include <functional>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace mica::rt {

/// What a launch costs, as the compiler has written it into the model object (`#exec.cost`): each
/// number is multiplied by what the name says. Sequence and number of the fields are part of the
/// model object's interface.
struct KernelCost {
  int64_t rowsAt; ///< The byte of the launch's context that its rows are at; -1: it has none.
  int64_t weightBytes, rowWeightBytes;
  int64_t expertBytes, experts, rowExperts;
  int64_t rowCacheBytes, positionCacheBytes;
  int64_t rowFlops, pairFlops;
  int64_t window;
};

/// Rows of one call of the model: which positions they see.
class CallPositions {
public:
  void set(std::span<const int32_t> sequences, std::span<const int32_t> positions);
  /// Positions that are seen, of each sequence once. `window`: so many at most by each row; 0: all.
  int64_t positions(int64_t window) const;
  /// Pairs of a row and a position that it sees.
  int64_t pairs(int64_t window) const;

private:
  std::vector<int32_t> rowSequences, rowPositions;
};

/// Bytes of weights and caches, each once per launch, and floating-point operations in products.
struct Work {
  double bytes = 0, flops = 0;
};
Work workOf(const KernelCost &cost, int64_t rows, const CallPositions &call);
Work workOf(const MatmulShape &shape);

class Profile final : public WorkPool::Observer {
public:
  using Clock = std::chrono::steady_clock;

  /// All launches of one kernel, or all products of one shape besides the rows.
  struct Entry {
    std::string name;
    int64_t launches = 0;
    double seconds = 0;
    double busySeconds = 0; ///< Of all threads together, in the kernel's own code.
    Work work;
  };
  /// A span of time on one thread.
  struct Span {
    int32_t entry;  ///< Index into entries(); -1: a call of the model.
    int32_t thread; ///< 0: the calling thread's own view; from 1 on, the parts of a fork.
    Clock::time_point begin, end;
    int64_t rows;
    Work work;
  };

  /// The symbol of the model object, or null.
  using SymbolLookup = std::function<const void *(const char *name)>;
  /// Knows the kernels of the model object, whose code runs on `runtime`. With `keepSpans` every
  /// single launch is kept for a trace.
  Profile(const SymbolLookup &symbol, Runtime &runtime, bool keepSpans);

  /// From now on, and until `stop`, everything that the runtime runs is recorded here.
  void start();
  void stop();

  /// Runs and records; called by what generated code calls.
  void launch(WorkPool::Body body, void *context, int64_t tasks);
  Status product(const MatmulShape &shape, const std::function<Status()> &run);
  /// Called by the session around a call of the model.
  void beginCall(std::span<const int32_t> sequences, std::span<const int32_t> positions);
  void endCall(int64_t rows);

  const std::vector<Entry> &entries() const { return all; }
  const std::vector<Span> &spans() const { return kept; }
  int64_t calls() const { return callCount; }
  unsigned threads() const { return runtime.pool().threads(); }
  /// Parallel regions: forks of the pool.
  uint64_t forks() const { return forkCount; }

private:
  struct Part {
    double seconds = 0;
    std::vector<Span> spans;
  };

  void ran(int64_t part, Time begin, Time end) override;
  int32_t entryOf(const std::string &name);
  void record(int32_t entry, Clock::time_point begin, int64_t rows, Work work);

  Runtime &runtime;
  bool keepSpans;
  std::unordered_map<WorkPool::Body, std::pair<std::string, KernelCost>> kernels;
  std::map<std::string, int32_t> indices;
  std::vector<Entry> all;
  std::vector<Span> kept;
  std::vector<Part> parts; ///< Of the running launch, by the part's number.
  CallPositions call;
  Clock::time_point callBegin;
  int64_t callCount = 0;
  uint64_t forksBefore = 0, forkCount = 0;
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_PROFILE_PROFILE_H
