//===- Attributes.cpp - attribute and type verifiers, rope frequencies ----===//

#include "ir/Mica/Mica.h"

#include <algorithm>
#include <cmath>
#include <numbers>

using namespace mlir;
using namespace mica;

using EmitError = llvm::function_ref<InFlightDiagnostic()>;

static LogicalResult requirePositive(EmitError emitError, FloatAttr value, StringRef name) {
  double number = value.getValueAsDouble();
  if (!(number > 0) || !std::isfinite(number))
    return emitError() << name << " must be a positive number, got " << number;
  return success();
}

LogicalResult SliceAttr::verify(EmitError emitError, StringRef tensor, std::optional<int64_t> entry,
                                bool transposed, int64_t first, int64_t last, int64_t period,
                                bool asColumns) {
  if (tensor.empty())
    return emitError() << "a slice names no tensor";
  if (entry && *entry < 0)
    return emitError() << "entry " << *entry << " of a slice is negative";
  bool hasRows = first != 0 || last != 0 || period != 0;
  if (hasRows && !(0 <= first && first < last && last <= period))
    return emitError() << "a slice has rows " << first << " to " << last << " of " << period
                       << ", expected 0 <= first < last <= period";
  if (asColumns && !hasRows)
    return emitError() << "a slice without rows has none as columns, say transposed";
  if (!entry && !transposed && !hasRows)
    return emitError() << "a slice is a whole tensor, whose name alone is its source";
  return success();
}

LogicalResult LinearScalingAttr::verify(EmitError emitError, FloatAttr factor) {
  return requirePositive(emitError, factor, "factor");
}

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

LogicalResult LongRopeScalingAttr::verify(EmitError emitError, DenseF64ArrayAttr shortFactors,
                                          DenseF64ArrayAttr longFactors, FloatAttr attentionFactor,
                                          int64_t context) {
  if (shortFactors.size() != longFactors.size())
    return emitError() << "short_factors and long_factors must be as many, got "
                       << shortFactors.size() << " and " << longFactors.size();
  for (DenseF64ArrayAttr factors : {shortFactors, longFactors})
    for (double factor : factors.asArrayRef())
      if (!(factor > 0) || !std::isfinite(factor))
        return emitError() << "factors must be positive numbers, got " << factor;
  if (context <= 0)
    return emitError() << "original_context must be positive, got " << context;
  return requirePositive(emitError, attentionFactor, "attention_factor");
}

LogicalResult DynamicScalingAttr::verify(EmitError emitError, FloatAttr factor, int64_t context) {
  if (context <= 0)
    return emitError() << "original_context must be positive, got " << context;
  return requirePositive(emitError, factor, "factor");
}

LogicalResult PackedLayoutAttr::verify(EmitError emitError, int64_t columns, int64_t depth,
                                       int64_t kBlock) {
  if (columns <= 0 || depth <= 0 || kBlock <= 0)
    return emitError() << "columns, depth and k_block must be positive";
  if (kBlock % depth != 0)
    return emitError() << "k_block must be a multiple of depth";
  return success();
}

LogicalResult KvLayoutAttr::verify(EmitError emitError, KvKind, int64_t block, int64_t depth) {
  if (block <= 0 || depth <= 0 || block % depth != 0)
    return emitError() << "block must be a positive multiple of depth";
  return success();
}

LogicalResult AttentionTilingAttr::verify(EmitError emitError, int64_t rows, int64_t chunk,
                                          bool split, int64_t heads) {
  if (rows <= 0 || chunk <= 0)
    return emitError() << "rows and chunk must be positive";
  if (heads < 0)
    return emitError() << "heads must not be negative, got " << heads;
  if (split && rows != 1)
    return emitError() << "only tiles of one row are split, got " << rows << " rows";
  return success();
}

LogicalResult KvCacheType::verify(EmitError emitError, int64_t layers, int64_t heads,
                                  int64_t headDim, Type elementType, int64_t window, KvLayoutAttr) {
  if (layers <= 0 || heads <= 0 || headDim <= 0)
    return emitError() << "a cache needs at least one layer, one head and one element";
  if (window < 0)
    return emitError() << "the window of a cache is a number of positions, or 0 for all, got "
                       << window;
  if (!elementType.isF32() && !elementType.isBF16() &&
      !isQuantized(elementType, QuantizedUse::Cache))
    return emitError() << "a cache holds f32, bf16 or !mica.int8, got " << elementType;
  return success();
}

/// Of a scale, which follows the integers of a block.
static constexpr int64_t kScaleBytes = 4;

static int64_t valuesOfBlock(KvCacheType cache) {
  return cache.getLayout().getBlock() * roundUp(cache.getHeadDim(), kHeadDimUnit);
}

SmallVector<int64_t> KvCacheType::getPhysicalShape() {
  return {getLayers(), ShapedType::kDynamic, getHeads(), ShapedType::kDynamic,
          isQuantized(getElementType()) ? getScaleOffset(getLayout().getBlock())
                                        : valuesOfBlock(*this)};
}

RankedTensorType KvCacheType::getPhysicalType() {
  if (!getLayout())
    return {};
  Type element = getElementType();
  return RankedTensorType::get(getPhysicalShape(),
                               isQuantized(element) ? IntegerType::get(getContext(), 8) : element);
}

StringRef KvCacheType::getContentName() { return stringifyKvKind(getLayout().getKind()); }

int64_t KvCacheType::getScaleOffset(int64_t inBlock) {
  return valuesOfBlock(*this) + inBlock * kScaleBytes;
}

int64_t KvCacheType::getBytesPerPosition() {
  int64_t ofHead = isQuantized(getElementType())
                       ? getHeadDim() + kScaleBytes
                       : getHeadDim() * getElementType().getIntOrFloatBitWidth() / 8;
  return getLayers() * getHeads() * ofHead;
}

LogicalResult RollingStateType::verify(EmitError emitError, int64_t layers, int64_t channels,
                                       Type elementType, int64_t window) {
  if (layers <= 0 || channels <= 0)
    return emitError() << "a rolling state needs at least one layer and one channel";
  if (!elementType.isF32())
    return emitError() << "a rolling state holds f32, got " << elementType;
  // A ring must keep what drafts can take back besides the window.
  if (window < 2 || window > kSlots / 2)
    return emitError() << "the window of a rolling state is 2 to " << kSlots / 2
                       << " positions, got " << window;
  return success();
}

RankedTensorType RollingStateType::getPhysicalType() {
  return RankedTensorType::get({getLayers(), ShapedType::kDynamic, kSlots, getChannels()},
                               getElementType());
}

LogicalResult RecurrentStateType::verify(EmitError emitError, int64_t layers, int64_t heads,
                                         int64_t keyDim, int64_t valueDim, Type elementType) {
  if (layers <= 0 || heads <= 0 || keyDim <= 0 || valueDim <= 0)
    return emitError() << "a recurrent state needs at least one layer, head, key and value";
  if (!elementType.isF32())
    return emitError() << "a recurrent state holds f32, got " << elementType;
  constexpr int64_t most = 4096;
  if (keyDim > most || valueDim > most)
    return emitError() << "a matrix of a recurrent state is at most " << most << " x " << most
                       << ", got " << keyDim << " x " << valueDim;
  return success();
}

RankedTensorType RecurrentStateType::getPhysicalType() {
  return RankedTensorType::get(
      {getLayers(), ShapedType::kDynamic, getHeads(), getDecaysOffset() + kSlots},
      getElementType());
}

/// Bytes of a buffer of one sequence, the only dynamic extent.
static int64_t bytesPerSequence(RankedTensorType physical) {
  int64_t elements = 1;
  for (int64_t extent : physical.getShape())
    elements *= ShapedType::isDynamic(extent) ? 1 : extent;
  return elements * physical.getElementTypeBitWidth() / 8;
}

int64_t RecurrentStateType::getBytesPerSequence() { return bytesPerSequence(getPhysicalType()); }

int64_t RollingStateType::getBytesPerSequence() { return bytesPerSequence(getPhysicalType()); }

static double scaleYarn(double frequency, int64_t i, int64_t rotaryDim, double theta,
                        YarnScalingAttr yarn) {
  auto dimOf = [&](double beta) {
    return rotaryDim * std::log(yarn.getOriginalContext() / (2 * std::numbers::pi * beta)) /
           (2 * std::log(theta));
  };
  double low = dimOf(yarn.getBetaFast().getValueAsDouble());
  double high = dimOf(yarn.getBetaSlow().getValueAsDouble());
  if (yarn.getTruncate()) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(yarn.getHighLimit()));
  double ramp = std::clamp((i - low) / std::max(high - low, 0.001), 0.0, 1.0);
  return frequency * (1 - ramp + ramp / yarn.getFactor().getValueAsDouble());
}

static double scaleLlama3(double frequency, Llama3ScalingAttr llama3) {
  double factor = llama3.getFactor().getValueAsDouble();
  double low = llama3.getLowFreqFactor().getValueAsDouble(),
         high = llama3.getHighFreqFactor().getValueAsDouble();
  double context = static_cast<double>(llama3.getOriginalContext());
  double wavelength = 2 * std::numbers::pi / frequency;
  if (wavelength > context / low)
    return frequency / factor;
  if (wavelength < context / high)
    return frequency;
  double smooth = (context / wavelength - low) / (high - low);
  return (1 - smooth) * frequency / factor + smooth * frequency;
}

SmallVector<float> mica::sinusoidFrequencies(int64_t count) {
  SmallVector<float> result;
  for (int64_t i = 0; i < count; ++i)
    result.push_back(
        static_cast<float>(std::pow(10000.0, -double(i) / static_cast<double>(count - 1))));
  return result;
}

/// theta => theta s^(D / (D - 2)).
static double scaleDynamic(int64_t rotaryDim, double theta, int64_t length,
                           DynamicScalingAttr dynamic) {
  double factor = dynamic.getFactor().getValueAsDouble(),
         context = static_cast<double>(dynamic.getOriginalContext());
  double grown = factor * std::max(static_cast<double>(length), context) / context - (factor - 1);
  return theta * std::pow(grown, double(rotaryDim) / static_cast<double>(rotaryDim - 2));
}

std::optional<int64_t> mica::ropeLengthThreshold(Attribute scaling) {
  if (auto longRope = dyn_cast_or_null<LongRopeScalingAttr>(scaling))
    return longRope.getOriginalContext();
  if (auto dynamic = dyn_cast_or_null<DynamicScalingAttr>(scaling))
    return dynamic.getOriginalContext();
  return std::nullopt;
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

SmallVector<float> mica::ropeFrequencies(int64_t rotaryDim, double theta, Attribute scaling,
                                         int64_t length, float &amplitude) {
  SmallVector<float> result;
  amplitude = 1.0f;
  if (auto dynamic = dyn_cast_or_null<DynamicScalingAttr>(scaling);
      dynamic && length > dynamic.getOriginalContext())
    theta = scaleDynamic(rotaryDim, theta, length, dynamic);
  for (int64_t i = 0; i < rotaryDim / 2; ++i) {
    double frequency =
        std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(rotaryDim));
    if (auto linear = dyn_cast_or_null<LinearScalingAttr>(scaling))
      frequency /= linear.getFactor().getValueAsDouble();
    else if (auto yarn = dyn_cast_or_null<YarnScalingAttr>(scaling))
      frequency = scaleYarn(frequency, i, rotaryDim, theta, yarn);
    else if (auto llama3 = dyn_cast_or_null<Llama3ScalingAttr>(scaling))
      frequency = scaleLlama3(frequency, llama3);
    else if (auto each = dyn_cast_or_null<LongRopeScalingAttr>(scaling))
      frequency /=
          length > each.getOriginalContext() ? each.getLongFactors()[i] : each.getShortFactors()[i];
    result.push_back(static_cast<float>(frequency));
  }
  if (auto yarn = dyn_cast_or_null<YarnScalingAttr>(scaling))
    amplitude = static_cast<float>(yarn.getAttentionFactor().getValueAsDouble());
  if (auto each = dyn_cast_or_null<LongRopeScalingAttr>(scaling))
    amplitude = static_cast<float>(each.getAttentionFactor().getValueAsDouble());
  return result;
}
