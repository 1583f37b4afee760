// What the runtime asks of the machine that a program runs on. Every backend implements it, and its
// launcher hands it to the command line.
#ifndef MICA_BACKENDS_RUNTIME_ABI_DEVICE_H
#define MICA_BACKENDS_RUNTIME_ABI_DEVICE_H

#include "backends/runtime/abi/Manifest.h"
#include "backends/runtime/abi/Runtime.h"

#include <memory>

namespace mica::rt {

/// What a machine could do: the two limits that kernels are measured against.
struct Peaks {
  double bytesPerSecond = 0; ///< Reading memory that no cache holds.
  double flopsPerSecond = 0; ///< Products, by the best instruction that the program may use.
  std::string instruction;   ///< Its name, or "given".
};

class Device {
public:
  virtual ~Device() = default;
  /// Succeeds where code can run that was compiled for `target` and uses these of its features.
  virtual Status check(const std::string &target,
                       const std::vector<std::string> &features) const = 0;
  /// A runtime whose pool has so many threads, the caller counted. Error: fewer can be started.
  virtual Result<std::unique_ptr<Runtime>> start(unsigned threads) const = 0;
  /// Measures the limits of these threads, of products by the best instruction that the program may
  /// use.
  virtual Peaks measurePeaks(WorkPool &pool, const Manifest &manifest) const = 0;
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_ABI_DEVICE_H
