// The runtime that a model's code calls: a thread pool, oneDNN and exchanges between ranks on it,
// and a profile of its calls.
#ifndef MICA_BACKENDS_CPU_DEVICE_CPURUNTIME_H
#define MICA_BACKENDS_CPU_DEVICE_CPURUNTIME_H

#include "backends/cpu/device/Collectives.h"
#include "backends/cpu/device/Matmul.h"
#include "backends/runtime/abi/Runtime.h"

#include <mutex>

namespace mica::rt {

class CpuRuntime final : public Runtime {
public:
  /// Creates a runtime with `threads` threads, including the caller. Fails if not all of them can
  /// be started.
  static Result<std::unique_ptr<Runtime>> create(unsigned threads);

  const RuntimeTable &table() const override { return calls; }
  Pool &pool() override { return workers; }

private:
  struct Calls;

  explicit CpuRuntime(unsigned threads);
  void beforeKernel() const {
    if (const std::function<void()> *function = beforeKernels()) [[unlikely]]
      (*function)();
  }
  Matmul &matmul();
  Collectives &collectives();

  RuntimeTable calls;
  Pool workers;
  std::once_flag multiplies;
  std::unique_ptr<Matmul> products; ///< created by the first matmul, because small models never
                                    ///< need oneDNN
  std::unique_ptr<Collectives> exchanges; ///< created by the first exchange
};

} // namespace mica::rt

#endif // MICA_BACKENDS_CPU_DEVICE_CPURUNTIME_H
