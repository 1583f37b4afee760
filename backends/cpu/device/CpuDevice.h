// The processors of an x86-64 machine.
#pragma once

#include "backends/runtime/abi/Device.h"

namespace mica::rt {

class CpuDevice final : public Device {
public:
  Status check(const std::string &target, const std::vector<std::string> &features) const override;
  Status start(unsigned threads) override;
  WorkPool &pool() override;
  Peaks measurePeaks(const Manifest &manifest) override;
};

} // namespace mica::rt
