//===- RopeScaling.cpp - scalings of rope's frequencies -------------------===//
//
// Each scaling with its verifier and its formulas.
//
//===----------------------------------------------------------------------===//

#include "ir/Mica/Mica.h"

#include <algorithm>
#include <cmath>
#include <numbers>

using namespace mlir;
using namespace mica;

#include "ir/Mica/RopeAttrInterface.cpp.inc"

using EmitError = llvm::function_ref<InFlightDiagnostic()>;

static LogicalResult requirePositive(EmitError emitError, FloatAttr value, StringRef name) {
  double number = value.getValueAsDouble();
  if (!(number > 0) || !std::isfinite(number))
    return emitError() << name << " must be a positive number, got " << number;
  return success();
}

//===----------------------------------------------------------------------===//
// linear
//===----------------------------------------------------------------------===//

LogicalResult LinearScalingAttr::verify(EmitError emitError, FloatAttr factor) {
  return requirePositive(emitError, factor, "factor");
}

double LinearScalingAttr::scaleFrequency(double frequency, int64_t, int64_t, double,
                                         int64_t) const {
  return frequency / getFactor().getValueAsDouble();
}

//===----------------------------------------------------------------------===//
// yarn
//===----------------------------------------------------------------------===//

LogicalResult YarnScalingAttr::verify(EmitError emitError, FloatAttr factor, FloatAttr betaFast,
                                      FloatAttr betaSlow, FloatAttr attentionFactor,
                                      int64_t context, int64_t highLimit, bool) {
  if (failed(requirePositive(emitError, factor, "factor")) ||
      failed(requirePositive(emitError, betaFast, "beta_fast")) ||
      failed(requirePositive(emitError, betaSlow, "beta_slow")) ||
      failed(requirePositive(emitError, attentionFactor, "attention_factor")))
    return failure();
  if (context <= 0)
    return emitError() << "original_context must be positive, got " << context;
  if (highLimit < 0)
    return emitError() << "high_limit must not be negative, got " << highLimit;
  return success();
}

double YarnScalingAttr::scaleFrequency(double frequency, int64_t index, int64_t rotaryDim,
                                       double theta, int64_t) const {
  auto dimOf = [&](double beta) {
    return rotaryDim * std::log(getOriginalContext() / (2 * std::numbers::pi * beta)) /
           (2 * std::log(theta));
  };
  double low = dimOf(getBetaFast().getValueAsDouble());
  double high = dimOf(getBetaSlow().getValueAsDouble());
  if (getTruncate()) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(getHighLimit()));
  double ramp = std::clamp((index - low) / std::max(high - low, 0.001), 0.0, 1.0);
  return frequency * (1 - ramp + ramp / getFactor().getValueAsDouble());
}

double YarnScalingAttr::getAmplitude() const { return getAttentionFactor().getValueAsDouble(); }

std::optional<double> YarnScalingAttr::getExtendedContext() const {
  return static_cast<double>(getOriginalContext()) * getFactor().getValueAsDouble();
}

//===----------------------------------------------------------------------===//
// llama3
//===----------------------------------------------------------------------===//

LogicalResult Llama3ScalingAttr::verify(EmitError emitError, FloatAttr factor, FloatAttr low,
                                        FloatAttr high, int64_t context) {
  if (failed(requirePositive(emitError, factor, "factor")) ||
      failed(requirePositive(emitError, low, "low_freq_factor")) ||
      failed(requirePositive(emitError, high, "high_freq_factor")))
    return failure();
  if (low.getValueAsDouble() >= high.getValueAsDouble())
    return emitError() << "low_freq_factor must be below high_freq_factor";
  if (context <= 0)
    return emitError() << "original_context must be positive, got " << context;
  return success();
}

double Llama3ScalingAttr::scaleFrequency(double frequency, int64_t, int64_t, double,
                                         int64_t) const {
  double factor = getFactor().getValueAsDouble();
  double low = getLowFreqFactor().getValueAsDouble(), high = getHighFreqFactor().getValueAsDouble();
  double context = static_cast<double>(getOriginalContext());
  double wavelength = 2 * std::numbers::pi / frequency;
  if (wavelength > context / low)
    return frequency / factor;
  if (wavelength < context / high)
    return frequency;
  double smooth = (context / wavelength - low) / (high - low);
  return (1 - smooth) * frequency / factor + smooth * frequency;
}

//===----------------------------------------------------------------------===//
// longrope
//===----------------------------------------------------------------------===//

LogicalResult LongRopeScalingAttr::verify(EmitError emitError, DenseF64ArrayAttr shortFactors,
                                          DenseF64ArrayAttr longFactors, FloatAttr attentionFactor,
                                          int64_t context) {
  if (shortFactors.size() != longFactors.size())
    return emitError() << "short_factors and long_factors must have the same length, got "
                       << shortFactors.size() << " and " << longFactors.size();
  for (DenseF64ArrayAttr factors : {shortFactors, longFactors})
    for (double factor : factors.asArrayRef())
      if (!(factor > 0) || !std::isfinite(factor))
        return emitError() << "factors must be positive numbers, got " << factor;
  if (context <= 0)
    return emitError() << "original_context must be positive, got " << context;
  return requirePositive(emitError, attentionFactor, "attention_factor");
}

LogicalResult LongRopeScalingAttr::verifyPairs(EmitError emitError, int64_t pairs) const {
  if (getShortFactors().size() == pairs)
    return success();
  return emitError() << "scales " << getShortFactors().size() << " frequencies, but rotates "
                     << pairs << " pairs";
}

double LongRopeScalingAttr::scaleFrequency(double frequency, int64_t index, int64_t, double,
                                           int64_t length) const {
  return frequency /
         (length > getOriginalContext() ? getLongFactors()[index] : getShortFactors()[index]);
}

double LongRopeScalingAttr::getAmplitude() const { return getAttentionFactor().getValueAsDouble(); }

std::optional<int64_t> LongRopeScalingAttr::getLengthThreshold() const {
  return getOriginalContext();
}

//===----------------------------------------------------------------------===//
// dynamic
//===----------------------------------------------------------------------===//

LogicalResult DynamicScalingAttr::verify(EmitError emitError, FloatAttr factor, int64_t context) {
  if (context <= 0)
    return emitError() << "original_context must be positive, got " << context;
  return requirePositive(emitError, factor, "factor");
}

LogicalResult DynamicScalingAttr::verifyPairs(EmitError emitError, int64_t pairs) const {
  if (pairs > 1)
    return success();
  return emitError() << "scales theta for more pairs than one, but rotates only one";
}

/// theta => theta s^(D / (D - 2)).
double DynamicScalingAttr::scaleTheta(double theta, int64_t rotaryDim, int64_t length) const {
  if (length <= getOriginalContext())
    return theta;
  double factor = getFactor().getValueAsDouble(),
         context = static_cast<double>(getOriginalContext());
  double grown = factor * static_cast<double>(length) / context - (factor - 1);
  return theta * std::pow(grown, double(rotaryDim) / static_cast<double>(rotaryDim - 2));
}

std::optional<int64_t> DynamicScalingAttr::getLengthThreshold() const {
  return getOriginalContext();
}

std::optional<double> DynamicScalingAttr::getThetaGrowth() const {
  return getFactor().getValueAsDouble();
}

//===----------------------------------------------------------------------===//
// proportional
//===----------------------------------------------------------------------===//

LogicalResult ProportionalScalingAttr::verify(EmitError emitError, int64_t pairs,
                                              FloatAttr factor) {
  if (pairs < 1)
    return emitError() << "pairs must be positive, got " << pairs;
  return requirePositive(emitError, factor, "factor");
}

LogicalResult ProportionalScalingAttr::verifyPairs(EmitError emitError, int64_t pairs) const {
  if (getPairs() <= pairs)
    return success();
  return emitError() << "rotates " << getPairs() << " pairs, but there are " << pairs;
}

double ProportionalScalingAttr::scaleFrequency(double frequency, int64_t index, int64_t, double,
                                               int64_t) const {
  return index < getPairs() ? frequency / getFactor().getValueAsDouble() : 0;
}
