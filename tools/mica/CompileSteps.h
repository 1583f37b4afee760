//===- CompileSteps.h - the progress of a compilation ---------------------===//
#ifndef MICA_TOOLS_MICA_COMPILESTEPS_H
#define MICA_TOOLS_MICA_COMPILESTEPS_H

#include "backends/cpu/driver/Compiler.h"

namespace mica::tool {

/// Maps the stages of a compilation and the bytes of its weights to the fraction of the time that
/// they usually take.
class CompileSteps {
public:
  /// `bytes`: approximate number of bytes of weights to pack.
  explicit CompileSteps(double bytes) : bytes(bytes) {}

  /// The fraction of the work that is done, in [0, 1]; never decreases.
  double shareOf(const cpu::CompileProgress &progress);
  /// "stage loops", "weights, 1.20 GiB of 4.00 GiB".
  static std::string describe(const cpu::CompileProgress &progress);

private:
  double bytes, maxShare = 0;
};

} // namespace mica::tool

#endif // MICA_TOOLS_MICA_COMPILESTEPS_H
