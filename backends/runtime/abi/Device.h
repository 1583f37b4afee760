// The interface between the runtime and the machine. Every backend
// implements it, and its launcher passes it to the command line.
#ifndef MICA_BACKENDS_RUNTIME_ABI_DEVICE_H
#define MICA_BACKENDS_RUNTIME_ABI_DEVICE_H

#include "backends/runtime/abi/Manifest.h"
#include "backends/runtime/abi/Runtime.h"

#include <memory>

namespace mica::rt {

/// The peak rates of a machine, for comparison with kernels.
struct Peaks {
  double bytesPerSecond = 0; ///< bandwidth of memory, not of caches
  double flopsPerSecond = 0; ///< of matmuls, with the fastest instruction that the program may use
  std::string instruction;   ///< name of that instruction, or "given"
};

class Device {
public:
  virtual ~Device() = default;
  /// Succeeds if code compiled for `target` that uses these features can run.
  virtual Status check(const std::string &target,
                       const std::vector<std::string> &features) const = 0;
  /// Creates a runtime with a pool of `threads` threads, including the caller, for code that uses
  /// these features. Libraries use no other features, so that a program computes the same bits on
  /// every machine that can run it. Fails if fewer threads can be started.
  virtual Result<std::unique_ptr<Runtime>>
  start(unsigned threads, const std::vector<std::string> &features) const = 0;
  /// Measures the peak rates of these threads,
  /// with the best instruction that the program may use.
  virtual Peaks measurePeaks(WorkPool &pool, const Manifest &manifest) const = 0;
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_ABI_DEVICE_H
