//===- PartSource.cpp - parts of tensors as tensors -----------------------===//

#include "backends/cpu/pack/PartSource.h"

#include "ir/Mica/TensorPart.h"

#include <cstring>

namespace mica::cpu {

/// The elements of a part in its own order. The tensor is a matrix or a vector, the shape the
/// part's.
static std::vector<uint8_t> copyPart(const SourceTensor &tensor, const TensorPart &part,
                                     llvm::ArrayRef<int64_t> shape) {
  size_t element = sizeOf(tensor.type);
  int64_t rows = shape.front(), columns = shape.size() == 1 ? 1 : shape.back();
  if (part.turned)
    std::swap(rows, columns);
  int64_t width = tensor.shape.size() == 1 ? 1 : tensor.shape.back();
  size_t rowBytes = tensor.stored().bytesOf(columns);
  std::vector<uint8_t> bytes(rows * rowBytes);
  bool whole = !part.transposed && !part.turned;
  for (int64_t i = 0; i < rows; ++i) {
    int64_t row = part.rowOf(i);
    if (whole) {
      std::memcpy(&bytes[i * rowBytes], tensor.bytes.data() + row * rowBytes, rowBytes);
      continue;
    }
    for (int64_t j = 0; j < columns; ++j) {
      int64_t from = part.transposed ? j * width + row : row * width + j;
      int64_t to = part.turned ? j * rows + i : i * columns + j;
      std::memcpy(&bytes[to * element], tensor.bytes.data() + from * element, element);
    }
  }
  return bytes;
}

/// Entry `index` of the first axis.
static void takeEntry(SourceTensor &tensor, int64_t index) {
  size_t size = tensor.bytes.size() / tensor.shape.front();
  tensor.bytes = tensor.bytes.slice(index * size, size);
  tensor.shape.erase(tensor.shape.begin());
}

llvm::Expected<SourceTensor> PartSource::find(llvm::StringRef name) const {
  std::optional<TensorPart> part = parseTensorPart(name);
  if (!part || part->isWhole())
    return whole.find(name);
  llvm::Expected<SourceTensor> tensor = whole.find(part->tensor);
  if (!tensor)
    return tensor;
  std::optional<llvm::SmallVector<int64_t>> shape = part->shapeIn(tensor->shape);
  size_t elements = 1;
  for (int64_t extent : tensor->shape)
    elements *= extent;
  if (!shape || tensor->bytes.size() != size_t(tensor->stored().bytesOf(elements)) ||
      ((part->transposed || part->turned) && tensor->blocks))
    return llvm::createStringError("\"" + name + "\" is no part of its tensor");
  if (part->entry)
    takeEntry(*tensor, *part->entry);
  bool together = !part->transposed && !part->turned &&
                  (part->period == 0 || part->period == tensor->shape.front());
  if (together) {
    size_t row = tensor->bytes.size() / tensor->shape.front();
    if (part->period != 0)
      tensor->bytes = tensor->bytes.slice(part->first * row, (part->last - part->first) * row);
  } else {
    if (tensor->shape.size() > 2)
      return llvm::createStringError("\"" + name + "\" is a part of more than a matrix");
    std::vector<uint8_t> &copy = copies[name];
    if (copy.empty())
      copy = copyPart(*tensor, *part, *shape);
    tensor->bytes = copy;
  }
  tensor->shape.assign(shape->begin(), shape->end());
  return tensor;
}

std::string PartSource::fileOf(llvm::StringRef name) const { return whole.fileOf(tensorOf(name)); }

void PartSource::release(llvm::StringRef name) const {
  copies.erase(name);
  whole.release(tensorOf(name));
}

} // namespace mica::cpu
