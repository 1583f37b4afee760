//===- TensorPart.cpp - sources of weights --------------------------------===//

#include "ir/Mica/TensorPart.h"

#include "ir/Mica/Mica.h"

#include "llvm/ADT/ArrayRef.h"

namespace mica {

TensorPart TensorPart::of(mlir::Attribute source) {
  if (auto name = llvm::dyn_cast<mlir::StringAttr>(source))
    return {name.str()};
  auto slice = llvm::cast<SliceAttr>(source);
  return {slice.getTensor().str(), slice.getEntry(),  slice.getTransposed(), slice.getFirst(),
          slice.getLast(),         slice.getPeriod(), slice.getAsColumns()};
}

mlir::Attribute TensorPart::source(mlir::MLIRContext *context) const {
  if (isWhole())
    return mlir::StringAttr::get(context, tensor);
  return SliceAttr::get(context, tensor, entry, transposed, first, last, period, asColumns);
}

std::string TensorPart::text() const {
  std::string result = tensor;
  if (entry)
    result += "[" + std::to_string(*entry) + "]";
  if (transposed)
    result += "^T";
  if (period != 0)
    result += "[" + std::to_string(first) + ":" + std::to_string(last) + " of " +
              std::to_string(period) + "]";
  return asColumns ? result + "^T" : result;
}

std::optional<llvm::SmallVector<int64_t>> TensorPart::shapeIn(llvm::ArrayRef<int64_t> shape) const {
  if (entry) {
    if (shape.empty() || *entry >= shape.front())
      return std::nullopt;
    shape = shape.drop_front();
  }
  llvm::SmallVector<int64_t> result(shape);
  if (result.empty() || (transposed && result.size() != 2))
    return std::nullopt;
  if (transposed)
    std::swap(result[0], result[1]);
  if (period == 0)
    return result;
  if (result.front() % period != 0 || (asColumns && result.size() != 2))
    return std::nullopt;
  result.front() = result.front() / period * (last - first);
  if (asColumns)
    std::swap(result[0], result[1]);
  return result;
}

llvm::SmallVector<int64_t> TensorPart::shapeAround(llvm::ArrayRef<int64_t> shape,
                                                   int64_t entries) const {
  llvm::SmallVector<int64_t> result(shape);
  if (asColumns)
    std::swap(result[0], result[1]);
  if (period != 0)
    result.front() = result.front() / (last - first) * period;
  if (transposed)
    std::swap(result[0], result[1]);
  if (entry)
    result.insert(result.begin(), entries);
  return result;
}

bool isStoredAs(llvm::ArrayRef<int64_t> stored, llvm::ArrayRef<int64_t> shape) {
  if (stored == shape)
    return true;
  if (shape.size() != 2)
    return false;
  return (stored.size() == 3 && stored[0] == shape[0] && stored[1] == 1 && stored[2] == shape[1]) ||
         (stored.size() == 1 && stored[0] == shape[0] * shape[1]);
}

} // namespace mica
