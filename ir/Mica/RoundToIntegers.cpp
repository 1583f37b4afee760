//===- RoundToIntegers.cpp - rounding to quantized values -----------------===//

#include "ir/Mica/Mica.h"
#include "ir/Quantize/Quantize.h"

#include <cmath>
#include <vector>

using namespace mlir;
using namespace mica;

/// Rounds the elements of a group to multiples of its largest magnitude divided by `limit`.
static void roundGroup(MutableArrayRef<float> row, float limit) {
  float largest = largestMagnitude(row), inverse = limit / largest, scale = largest / limit;
  if (!(largest >= kSmallestMagnitude) || std::isinf(largest)) {
    llvm::fill(row, std::isfinite(largest) ? 0 : std::nanf(""));
    return;
  }
  for (float &value : row)
    value = scale * std::nearbyint(value * inverse);
}

void Int8Type::roundRow(MutableArrayRef<float> row) const {
  SmallVector<int8_t> q(row.size());
  float scale = quantizeInt8(row, q);
  for (auto [value, integer] : llvm::zip_equal(row, q))
    value = scale * static_cast<float>(integer);
}

void BlockType::roundRow(MutableArrayRef<float> row) const {
  const BlockFormat &format = *getFormat();
  std::vector<uint8_t> blocks(llvm::divideCeil(row.size(), format.elements) * format.bytes);
  if (!quantizeBlocks(format, row, {}, blocks)) {
    llvm::fill(row, std::nanf(""));
    return;
  }
  float values[kMaxBlockElements];
  for (size_t i = 0; i < row.size(); ++i) {
    if (i % format.elements == 0)
      decodeBlock(format, &blocks[i / format.elements * format.bytes], values);
    row[i] = values[i % format.elements];
  }
}

void IntRowsType::roundRow(MutableArrayRef<float> row) const {
  float limit = IntegerRowLayout::limitOf(getBits());
  for (; !row.empty(); row = row.drop_front(std::min<size_t>(row.size(), getGroup())))
    roundGroup(row.take_front(getGroup()), limit);
}
