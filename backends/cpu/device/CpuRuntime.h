// What the code of a model runs on: a pool, oneDNN on it, and the profile of its calls.
#ifndef MICA_BACKENDS_CPU_DEVICE_CPURUNTIME_H
#define MICA_BACKENDS_CPU_DEVICE_CPURUNTIME_H

#include "backends/cpu/device/Matmul.h"
#include "backends/runtime/abi/Runtime.h"

#include <mutex>

namespace mica::rt {

class CpuRuntime final : public Runtime {
public:
  /// With that many threads, including the caller. Error: they cannot all be started.
  static Result<std::unique_ptr<Runtime>> create(unsigned threads);

  const RuntimeTable &table() const override { return calls; }
  Pool &pool() override { return workers; }

private:
  struct Calls;

  explicit CpuRuntime(unsigned threads);
  Matmul &matmul();

  RuntimeTable calls;
  Pool workers;
  std::once_flag multiplies;
  std::unique_ptr<Matmul> products; ///< made at the first one: small models never need oneDNN
};

} // namespace mica::rt

#endif // MICA_BACKENDS_CPU_DEVICE_CPURUNTIME_H
