//===- CompileSteps.cpp - the progress of a compilation -------------------===//

#include "tools/mica/CompileSteps.h"

#include "backends/runtime/support/SizeText.h"
#include "tools/support/Support.h"

#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace mica::tool {

/// Seconds to reach a stage, measured with models of one to three layer types.
static double secondsOf(Stage stage) {
  switch (stage) {
  case Stage::Model:
  case Stage::Fused:
  case Stage::Kernels:
  case Stage::Asm:
  case Stage::Exe:
    return 0.02;
  case Stage::Loops:
    return 0.5;
  case Stage::Llvm:
    return 1.2;
  case Stage::Ll:
    return 2;
  case Stage::Obj:
    return 1.8;
  }
  llvm_unreachable("all stages are handled above");
}

/// Bytes of weights that are packed and written per second.
static constexpr double kBytesPerSecond = 250e6;

double CompileSteps::shareOf(const cpu::CompileProgress &progress) {
  double done = 0, all = 0;
  for (const StageInfo &info : getStages()) {
    all += secondsOf(info.stage);
    if (info.stage < progress.stage || (info.stage == progress.stage && progress.isReached))
      done += secondsOf(info.stage);
  }
  double toPack = progress.bytesToPack > 0 ? static_cast<double>(progress.bytesToPack) : bytes;
  all += toPack / kBytesPerSecond;
  done += static_cast<double>(progress.packedBytes) / kBytesPerSecond;
  maxShare = std::max(maxShare, std::min(done / all, 1.0));
  return maxShare;
}

std::string CompileSteps::describe(const cpu::CompileProgress &progress) {
  if (progress.bytesToPack > 0)
    return formatv("weights, {0} of {1}", rt::bytesText(static_cast<double>(progress.packedBytes)),
                   rt::bytesText(static_cast<double>(progress.bytesToPack)));
  return ("stage " + getStageInfo(progress.stage).name).str();
}

} // namespace mica::tool
