//===- RopeFrequencies.cpp - for the interpreter and generated code -------===//

#include "ir/Mica/RopeFrequencies.h"
#include "ir/Mica/Mica.h"

#include <cmath>

using namespace mlir;
using namespace mica;

SmallVector<float> mica::sinusoidFrequencies(int64_t count) {
  SmallVector<float> result;
  for (int64_t i = 0; i < count; ++i)
    result.push_back(
        static_cast<float>(std::pow(10000.0, -double(i) / static_cast<double>(count - 1))));
  return result;
}

std::optional<int64_t> mica::ropeLengthThreshold(RopeScalingAttr scaling) {
  return scaling ? scaling.getLengthThreshold() : std::nullopt;
}

SmallVector<int64_t> mica::ropeLengthThresholds(ModuleOp module) {
  SmallVector<int64_t> thresholds;
  module.walk([&](RotatesByPosition rope) {
    if (std::optional<int64_t> threshold = ropeLengthThreshold(rope.getScalingAttr()))
      thresholds.push_back(*threshold);
  });
  llvm::sort(thresholds);
  thresholds.erase(llvm::unique(thresholds), thresholds.end());
  return thresholds;
}

bool mica::ropeThetaGrows(ModuleOp module) {
  return module
      .walk([](RotatesByPosition rope) {
        RopeScalingAttr scaling = rope.getScalingAttr();
        return scaling && scaling.getThetaGrowth() ? WalkResult::interrupt()
                                                   : WalkResult::advance();
      })
      .wasInterrupted();
}

SmallVector<float> mica::ropeFrequencies(int64_t rotaryDim, double theta, RopeScalingAttr scaling,
                                         int64_t length, float &amplitude) {
  SmallVector<float> result;
  amplitude = scaling ? static_cast<float>(scaling.getAmplitude()) : 1.0f;
  if (scaling)
    theta = scaling.scaleTheta(theta, rotaryDim, length);
  for (int64_t i = 0; i < rotaryDim / 2; ++i) {
    double frequency =
        std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(rotaryDim));
    if (scaling)
      frequency = scaling.scaleFrequency(frequency, i, rotaryDim, theta, length);
    result.push_back(static_cast<float>(frequency));
  }
  return result;
}
