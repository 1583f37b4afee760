// The profile of a model: the times of all kernel launches, oneDNN matmuls and exchanges between
// ranks.
#ifndef MICA_BACKENDS_RUNTIME_PROFILE_PROFILE_H
#define MICA_BACKENDS_RUNTIME_PROFILE_PROFILE_H

#include "backends/runtime/abi/Runtime.h"

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

namespace mica::rt {

/// The cost of a launch as stored by the compiler in the model object (`#exec.cost`): each member
/// is multiplied by the quantity that it is named after. Order and number of the members are part
/// of the model object's interface.
struct KernelCost {
  int64_t rowsAt; ///< offset of the number of rows in the launch's context; -1: none
#define MICA_KERNEL_COST(name, Getter) int64_t name;
#include "backends/runtime/abi/KernelCost.def"
#undef MICA_KERNEL_COST
};

/// The number of positions that the rows at positions [first, end) of a sequence attend to. A row
/// attends to at most `window` positions; 0: all.
int64_t positionsAttended(int64_t first, int64_t end, int64_t window);

/// The positions that the rows of one call of the model attend to.
class CallPositions {
public:
  void set(std::span<const int32_t> sequences, std::span<const int32_t> positions);
  /// The number of positions attended to, counted once per sequence. `window`: see
  /// positionsAttended.
  int64_t positions(int64_t window) const;
  /// The number of pairs of a row and a position that it attends to.
  int64_t pairs(int64_t window) const;

private:
  std::vector<int32_t> rowSequences, rowPositions;
};

/// Bytes of weights and caches, counted once per launch, and floating-point operations of matmuls.
struct Work {
  double bytes = 0, flops = 0;
};
Work workOf(const KernelCost &cost, int64_t rows, const CallPositions &call);
Work workOf(const MatmulShape &shape);

class Profile final : public CallObserver, public WorkPool::Observer {
public:
  using Clock = std::chrono::steady_clock;

  /// All launches of one kernel, all matmuls with the same shape except for the number of rows, or
  /// all exchanges of one kind, with the time that the rank waits for others.
  struct Entry {
    std::string name;
    int64_t launches = 0;
    double seconds = 0;
    double busySeconds = 0; ///< sum over all threads, in the kernel's code
    Work work;
    double exchangedBytes = 0; ///< see CallObserver::exchange
  };
  /// An interval of time on one thread.
  struct Span {
    int32_t entry;  ///< index into entries(); -1: a call of the model
    int32_t thread; ///< 0: the whole launch, on the calling thread; from 1: the parts of a fork
    Clock::time_point begin, end;
    int64_t rows;
    Work work;
    double exchangedBytes = 0;
  };

  /// Looks up a symbol of the model object; null if there is none.
  using SymbolLookup = std::function<const void *(const char *name)>;
  /// Creates a profile for the kernels of the model object, whose code runs on `runtime`. With
  /// `keepSpans`, every launch is kept for a trace.
  Profile(const SymbolLookup &symbol, Runtime &runtime, bool keepSpans);

  /// Starts recording everything that the runtime runs, until `stop`.
  void start();
  void stop();

  void launch(WorkPool::Body body, void *context, int64_t tasks) override;
  Status product(const MatmulShape &shape, const std::function<Status()> &run) override;
  void exchange(std::string_view name, const std::function<uint64_t()> &run) override;
  void beginCall(std::span<const int32_t> sequences, std::span<const int32_t> positions) override;
  void endCall(int64_t rows) override;

  const std::vector<Entry> &entries() const { return all; }
  const std::vector<Span> &spans() const { return kept; }
  int64_t calls() const { return callCount; }
  unsigned threads() const { return runtime.pool().threads(); }
  /// The number of parallel regions (forks of the pool).
  uint64_t forks() const { return forkCount; }

private:
  struct Part {
    double seconds = 0;
    std::vector<Span> spans;
  };

  void ran(int64_t thread, Time begin, Time end) override;
  int32_t entryOf(const std::string &name);
  void record(int32_t entry, Clock::time_point begin, int64_t rows, Work work,
              double exchangedBytes = 0);

  Runtime &runtime;
  bool keepSpans;
  std::unordered_map<WorkPool::Body, std::pair<std::string, KernelCost>> kernels;
  std::map<std::string, int32_t> indices;
  std::vector<Entry> all;
  std::vector<Span> kept;
  std::vector<Part> parts; ///< of the current launch, by index of the part
  CallPositions call;
  Clock::time_point callBegin;
  int64_t callCount = 0;
  uint64_t forksBefore = 0, forkCount = 0;
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_PROFILE_PROFILE_H
