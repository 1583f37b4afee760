//===- CompileSteps.h - how much of a compilation is done -------------------===//
#ifndef MICA_TOOLS_MICA_COMPILESTEPS_H
#define MICA_TOOLS_MICA_COMPILESTEPS_H

#include "backends/cpu/driver/Compiler.h"

namespace mica::tool {

/// Puts the stages of a compilation and the bytes of its weights on one scale: the time that they
/// usually take.
class CompileSteps {
public:
  /// `bytes`: about how many bytes of weights will be packed.
  explicit CompileSteps(double bytes) : bytes(bytes) {}

  /// How much of all the work is done, in [0, 1]; never less than before.
  double shareOf(const cpu::CompileProgress &progress);
  /// "stage loops", "weights, 1.20 GiB of 4.00 GiB".
  static std::string describe(const cpu::CompileProgress &progress);

private:
  double bytes, most = 0;
};

} // namespace mica::tool

#endif // MICA_TOOLS_MICA_COMPILESTEPS_H
