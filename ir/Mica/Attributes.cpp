//===- Attributes.cpp - verifiers and layouts of attributes and types -----===//

#include "ir/Mica/Mica.h"

using namespace mlir;
using namespace mica;

using EmitError = llvm::function_ref<InFlightDiagnostic()>;

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
    return emitError() << "as_columns requires rows; use transposed for the whole tensor";
  if (!entry && !transposed && !hasRows)
    return emitError()
           << "expected an entry, transposed or rows; for the whole tensor, use its name";
  return success();
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

/// Bytes of a scale; the scales of a block follow its integers.
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
  // The ring must also hold the positions that a rejected draft may discard.
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
  constexpr int64_t maxDim = 4096;
  if (keyDim > maxDim || valueDim > maxDim)
    return emitError() << "a matrix of a recurrent state is at most " << maxDim << " x " << maxDim
                       << ", got " << keyDim << " x " << valueDim;
  return success();
}

RankedTensorType RecurrentStateType::getPhysicalType() {
  return RankedTensorType::get(
      {getLayers(), ShapedType::kDynamic, getHeads(), getDecaysOffset() + kSlots},
      getElementType());
}

/// Bytes of a buffer with a single sequence; sequences are the only dynamic extent.
static int64_t bytesPerSequence(RankedTensorType physical) {
  int64_t elements = 1;
  for (int64_t extent : physical.getShape())
    elements *= ShapedType::isDynamic(extent) ? 1 : extent;
  return elements * physical.getElementTypeBitWidth() / 8;
}

int64_t RecurrentStateType::getBytesPerSequence() { return bytesPerSequence(getPhysicalType()); }

int64_t RollingStateType::getBytesPerSequence() { return bytesPerSequence(getPhysicalType()); }
