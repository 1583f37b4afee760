#include "backends/cpu/device/CpuDevice.h"
#include "backends/cpu/device/Exports.h"
#include "backends/cpu/device/Peaks.h"
#include "backends/cpu/features/Cpu.h"

namespace mica::rt {

Status CpuDevice::check(const std::string &target, const std::vector<std::string> &features) const {
  return checkCpu(target, features);
}

Status CpuDevice::start(unsigned threads) { return startRuntime(threads); }

WorkPool &CpuDevice::pool() { return rt::pool(); }

Peaks CpuDevice::measurePeaks(const Manifest &manifest) {
  return rt::measurePeaks(rt::pool(), manifest);
}

} // namespace mica::rt
