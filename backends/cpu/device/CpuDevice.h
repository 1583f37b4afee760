// The CPU of an x86-64 machine as a device.
#ifndef MICA_BACKENDS_CPU_DEVICE_CPUDEVICE_H
#define MICA_BACKENDS_CPU_DEVICE_CPUDEVICE_H

#include "backends/runtime/abi/Device.h"

namespace mica::rt {

class CpuDevice final : public Device {
public:
  Status check(const std::string &target, const std::vector<std::string> &features) const override;
  Result<std::unique_ptr<Runtime>> start(unsigned threads,
                                         const std::vector<std::string> &features) const override;
  Peaks measurePeaks(WorkPool &pool, const Manifest &manifest) const override;
};

} // namespace mica::rt

#endif // MICA_BACKENDS_CPU_DEVICE_CPUDEVICE_H
