//===- SlicedSource.cpp - parts of tensors as tensors ---------------------===//

#include "backends/cpu/pack/SlicedSource.h"

#include "ir/Mica/TensorPart.h"

#include <cstring>

namespace mica::cpu {

/// Copies the elements of a part in the part's order. The tensor is a matrix or a vector; `shape`
/// is the shape of the part.
static std::vector<uint8_t> copyPart(const SourceTensor &tensor, const TensorPart &part,
                                     llvm::ArrayRef<int64_t> shape) {
  size_t element = sizeOf(tensor.type);
  int64_t rows = shape.front(), columns = shape.size() == 1 ? 1 : shape.back();
  if (part.asColumns)
    std::swap(rows, columns);
  int64_t width = tensor.shape.size() == 1 ? 1 : tensor.shape.back();
  size_t rowBytes = tensor.stored().bytesOf(columns);
  std::vector<uint8_t> bytes(rows * rowBytes);
  bool whole = !part.transposed && !part.asColumns;
  for (int64_t i = 0; i < rows; ++i) {
    int64_t row = part.rowOf(i);
    if (whole) {
      std::memcpy(&bytes[i * rowBytes], tensor.bytes.data() + row * rowBytes, rowBytes);
      continue;
    }
    for (int64_t j = 0; j < columns; ++j) {
      int64_t from = part.transposed ? j * width + row : row * width + j;
      int64_t to = part.asColumns ? j * rows + i : i * columns + j;
      std::memcpy(&bytes[to * element], tensor.bytes.data() + from * element, element);
    }
  }
  return bytes;
}

/// The same for blocks whose scales are stored separately: the result has whole blocks.
static std::vector<uint8_t> joinPart(const SourceTensor &tensor, const TensorPart &part,
                                     llvm::ArrayRef<int64_t> shape) {
  int64_t inRow = shape.back() / tensor.blocks.elements(), size = tensor.blocks.bytes(),
          rows = int64_t(tensor.scales.size()) / inRow;
  if (part.period != 0)
    rows = rows / part.period * (part.last - part.first);
  std::vector<uint8_t> bytes(rows * inRow * size);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < inRow; ++j) {
      int64_t block = part.rowOf(i) * inRow + j;
      tensor.blocks.join(tensor.bytes.data() + block * (size - 1), tensor.scales[block],
                         &bytes[(i * inRow + j) * size]);
    }
  return bytes;
}

/// The same for blocks, which are along rows: dequantizes them, so that they can be read along
/// columns.
static std::vector<uint8_t> copyDecoded(const SourceTensor &tensor, const TensorPart &part,
                                        llvm::ArrayRef<int64_t> shape) {
  size_t blocks = tensor.bytes.size() / tensor.blocks.bytes();
  std::vector<uint8_t> bytes(blocks * tensor.blocks.elements() * sizeof(float));
  std::vector<float> values(tensor.blocks.elements());
  size_t size = values.size() * sizeof(float);
  for (size_t i = 0; i < blocks; ++i) {
    decodeBlock(*tensor.blocks.format, tensor.bytes.data() + i * tensor.blocks.bytes(),
                values.data());
    std::memcpy(&bytes[i * size], values.data(), size);
  }
  SourceTensor numbers = tensor;
  numbers.bytes = bytes;
  numbers.type = WeightType::F32;
  numbers.blocks = {};
  return copyPart(numbers, part, shape);
}

/// Reduces the tensor to entry `index` of its first axis.
static void takeEntry(SourceTensor &tensor, int64_t index) {
  for (llvm::ArrayRef<uint8_t> *data : {&tensor.bytes, &tensor.scales}) {
    size_t size = data->size() / tensor.shape.front();
    *data = data->slice(index * size, size);
  }
  tensor.shape.erase(tensor.shape.begin());
}

llvm::Expected<SourceTensor> SlicedSource::find(mlir::Attribute source) const {
  TensorPart part = TensorPart::of(source);
  llvm::Expected<SourceTensor> tensor = whole.find(part.tensor);
  if (!tensor || (part.isWhole() && tensor->scales.empty()))
    return tensor;
  std::optional<llvm::SmallVector<int64_t>> shape = part.shapeIn(tensor->shape);
  size_t elements = 1;
  for (int64_t extent : tensor->shape)
    elements *= extent;
  bool acrossRows = part.transposed || part.asColumns;
  size_t size = tensor->bytes.size() + tensor->scales.size();
  if (!shape || size != size_t(tensor->stored().bytesOf(elements)) ||
      (acrossRows && !tensor->scales.empty()))
    return llvm::createStringError("\"" + part.text() + "\" is not part of its tensor");
  if (part.entry)
    takeEntry(*tensor, *part.entry);
  bool together = !acrossRows && (part.period == 0 || part.period == tensor->shape.front());
  auto takeCopy = [&](auto make) {
    std::vector<uint8_t> &copy = copies[source];
    if (copy.empty())
      copy = make(*tensor, part, *shape);
    tensor->bytes = copy;
  };
  if (!tensor->scales.empty()) {
    takeCopy(joinPart);
    tensor->scales = {};
  } else if (together) {
    size_t row = tensor->bytes.size() / tensor->shape.front();
    if (part.period != 0)
      tensor->bytes = tensor->bytes.slice(part.first * row, (part.last - part.first) * row);
  } else {
    if (tensor->shape.size() > 2)
      return llvm::createStringError("\"" + part.text() + "\" is a part of more than a matrix");
    bool decodes = acrossRows && tensor->blocks;
    takeCopy(decodes ? copyDecoded : copyPart);
    if (decodes) {
      tensor->type = WeightType::F32;
      tensor->blocks = {};
    }
  }
  tensor->shape.assign(shape->begin(), shape->end());
  return tensor;
}

std::string SlicedSource::fileOf(mlir::Attribute source) const {
  return whole.fileOf(TensorPart::of(source).tensor);
}

void SlicedSource::release(mlir::Attribute source) const {
  copies.erase(source);
  whole.release(TensorPart::of(source).tensor);
}

} // namespace mica::cpu
