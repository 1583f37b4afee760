#include "backends/cpu/device/CpuDevice.h"
#include "backends/cpu/device/CpuRuntime.h"
#include "backends/cpu/device/Peaks.h"
#include "backends/cpu/features/Cpu.h"

namespace mica::rt {

Status CpuDevice::check(const std::string &target, const std::vector<std::string> &features) const {
  return checkCpu(target, features);
}

Result<std::unique_ptr<Runtime>> CpuDevice::start(unsigned threads,
                                                  const std::vector<std::string> &features) const {
  limitInstructions(features);
  return CpuRuntime::create(threads);
}

Peaks CpuDevice::measurePeaks(WorkPool &pool, const Manifest &manifest) const {
  return rt::measurePeaks(pool, manifest);
}

} // namespace mica::rt
