//===- Value.cpp - values of the interpreter ------------------------------===//

#include "ir/Interpreter/Value.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <numeric>

using namespace mlir;

namespace mica::interp {

static int64_t product(ArrayRef<int64_t> extents) {
  return std::accumulate(extents.begin(), extents.end(), int64_t(1), std::multiplies<>());
}

llvm::Error checkSize(ArrayRef<int64_t> extents) {
  constexpr int64_t kMaxElements = int64_t(1) << 31;
  int64_t count = 1;
  for (int64_t extent : extents)
    if (llvm::MulOverflow(count, extent, count) || count > kMaxElements)
      return llvm::createStringError("has more than the " + Twine(kMaxElements) +
                                     " elements that the interpreter takes memory for");
  return llvm::Error::success();
}

float roundTo(Type type, double value) {
  float single = static_cast<float>(value);
  if (type.isF32() || isQuantized(type))
    return single;
  llvm::APFloat narrow(single);
  bool losesInfo;
  auto mode = llvm::APFloat::rmNearestTiesToEven;
  narrow.convert(cast<FloatType>(type).getFloatSemantics(), mode, &losesInfo);
  narrow.convert(llvm::APFloat::IEEEsingle(), mode, &losesInfo);
  return narrow.convertToFloat();
}

void roundRow(Type type, MutableArrayRef<float> row) {
  if (auto quantized = dyn_cast<QuantizedElementType>(type))
    quantized.roundRow(row);
}

void Tensor::roundRows() {
  if (!isQuantized(elementType))
    return;
  int64_t width = shape.back();
  for (int64_t begin = 0; begin < getNumElements(); begin += width)
    roundRow(elementType, MutableArrayRef(floats).slice(begin, width));
}

Tensor Tensor::zeros(Type elementType, ArrayRef<int64_t> shape) {
  Tensor result{SmallVector<int64_t>(shape), elementType, {}, {}};
  if (result.isFloat())
    result.floats.resize(product(shape));
  else
    result.ints.resize(product(shape));
  return result;
}

Tensor Tensor::zerosOf(Type type, ArrayRef<int64_t> extents) {
  auto tensorType = cast<RankedTensorType>(type);
  SmallVector<int64_t> shape(tensorType.getShape());
  for (int64_t &extent : shape)
    if (ShapedType::isDynamic(extent)) {
      extent = extents.front();
      extents = extents.drop_front();
    }
  return zeros(tensorType.getElementType(), shape);
}

Tensor Tensor::part(int64_t axis, int64_t index, int64_t parts) const {
  int64_t size = shape[axis], width = llvm::divideCeil(size, parts),
          begin = std::min(index * width, size);
  SmallVector<int64_t> extents(shape);
  extents[axis] = width;
  Tensor result = zeros(elementType, extents);
  int64_t inner = product(ArrayRef(shape).drop_front(axis + 1)),
          outer = product(ArrayRef(shape).take_front(axis)),
          count = std::min(width, size - begin) * inner;
  for (int64_t i = 0; i < outer; ++i)
    std::copy_n(floats.begin() + (i * size + begin) * inner, count,
                result.floats.begin() + i * width * inner);
  return result;
}

int64_t Tensor::rowSize() const { return product(ArrayRef(shape).drop_front()); }

ArrayRef<float> Tensor::row(int64_t index) const {
  int64_t size = rowSize();
  return ArrayRef(floats).slice(index * size, size);
}

bool haveSameBits(const Tensor &a, const Tensor &b) {
  return a.shape == b.shape && a.elementType == b.elementType && a.ints == b.ints &&
         a.floats.size() == b.floats.size() &&
         std::memcmp(a.floats.data(), b.floats.data(), a.floats.size() * sizeof(float)) == 0;
}

SmallVector<int64_t> extentsOf(SequenceState type, int64_t batch, int64_t positions) {
  SmallVector<int64_t> extents{type.getLayers(), batch, positions};
  llvm::append_range(extents, type.getRowShape());
  return extents;
}

int64_t Cache::rowSize() const { return product(type.getRowShape()); }

Value Value::makeCache(SequenceState type, int64_t batch, int64_t positions) {
  auto cache = std::make_shared<Cache>(Cache{type, batch, positions, {}, {}});
  cache->data.resize(cache->offset(type.getLayers(), 0, 0));
  cache->isWritten.resize(cache->slot(type.getLayers(), 0, 0));
  return CacheVersion{std::move(cache), std::make_shared<bool>(false)};
}

const Tensor *Value::getTensor() const {
  auto *tensor = std::get_if<std::shared_ptr<const Tensor>>(&data);
  return tensor ? tensor->get() : nullptr;
}

const CacheVersion *Value::getCache() const { return std::get_if<CacheVersion>(&data); }

Value Value::flattened() const {
  const CacheVersion *version = getCache();
  if (!version)
    return *this;
  const Cache &cache = *version->cache;
  return Tensor{extentsOf(cache.type, cache.batch, cache.positions),
                cache.type.getElementType(),
                cache.data,
                {}};
}

Value Value::clone() const {
  if (const Tensor *tensor = getTensor())
    return Tensor(*tensor);
  if (const CacheVersion *version = getCache())
    return CacheVersion{std::make_shared<Cache>(*version->cache), std::make_shared<bool>(false)};
  return *this;
}

static llvm::Error doesNotFit(StringRef what, Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << what << " does not fit " << type;
  return llvm::createStringError(text);
}

static llvm::Error checkTensorFits(const Tensor &tensor, Type type) {
  auto expected = dyn_cast<RankedTensorType>(type);
  auto fits = [](int64_t actual, int64_t wanted) {
    return ShapedType::isDynamic(wanted) || actual == wanted;
  };
  if (expected && expected.getElementType() == tensor.elementType &&
      expected.getRank() == static_cast<int64_t>(tensor.shape.size()) &&
      llvm::all_of_zip(tensor.shape, expected.getShape(), fits))
    return llvm::Error::success();
  std::string actual;
  llvm::raw_string_ostream(actual) << RankedTensorType::get(tensor.shape, tensor.elementType);
  return doesNotFit(actual, type);
}

llvm::Error Value::checkFits(Type type) const {
  if (const Tensor *tensor = getTensor())
    return checkTensorFits(*tensor, type);
  if (const CacheVersion *version = getCache())
    return version->cache->type == type ? llvm::Error::success()
                                        : doesNotFit("a cache of another type", type);
  return type.isIntOrIndex() ? llvm::Error::success() : doesNotFit("an integer", type);
}

static void printElement(llvm::raw_ostream &os, const Tensor &tensor, int64_t index) {
  if (tensor.isFloat())
    os << llvm::format("%.6g", tensor.floats[index]);
  else
    os << tensor.ints[index];
}

/// Prints the part of `tensor` below the first `depth` axes that begins at flat index `begin`.
static void printNested(llvm::raw_ostream &os, const Tensor &tensor, size_t depth, int64_t begin) {
  if (depth == tensor.shape.size())
    return printElement(os, tensor, begin);
  int64_t step = product(ArrayRef(tensor.shape).drop_front(depth + 1));
  os << "[";
  for (int64_t i = 0; i < tensor.shape[depth]; ++i) {
    os << (i ? ", " : "");
    printNested(os, tensor, depth + 1, begin + i * step);
  }
  os << "]";
}

void Value::print(llvm::raw_ostream &os) const {
  if (isScalar()) {
    os << getScalar();
    return;
  }
  Value flat = flattened();
  const Tensor &tensor = *flat.getTensor();
  os << RankedTensorType::get(tensor.shape, tensor.elementType) << " ";
  printNested(os, tensor, 0, 0);
}

llvm::Expected<Tensor> tensorFrom(ElementsAttr attribute) {
  auto dense = dyn_cast<DenseElementsAttr>(attribute);
  if (!dense || !dense.getElementType().isIntOrIndexOrFloat())
    return llvm::createStringError("the interpreter reads dense constants of numbers only");
  if (llvm::Error error = checkSize(dense.getType().getShape()))
    return std::move(error);
  Tensor result = Tensor::zeros(dense.getElementType(), dense.getType().getShape());
  if (result.isFloat())
    for (auto [target, source] : llvm::zip_equal(result.floats, dense.getValues<llvm::APFloat>()))
      target = roundTo(result.elementType, source.convertToDouble());
  else
    for (auto [target, source] : llvm::zip_equal(result.ints, dense.getValues<llvm::APInt>()))
      target = result.elementType.isInteger(1) ? source.getZExtValue() : source.getSExtValue();
  return result;
}

} // namespace mica::interp
