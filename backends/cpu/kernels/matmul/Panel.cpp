//===- Panel.cpp - packed values in memory --------------------------------===//

#include "backends/cpu/kernels/matmul/Panel.h"

#include <numeric>

using namespace mlir;
using namespace mica;
using namespace mica::cpu;

/// The number of elements before the part selected by `leading`.
static Value offsetOf(KernelBuilder &b, Value buffer, ValueRange leading) {
  auto type = cast<MemRefType>(buffer.getType());
  Value offset = leading[0];
  for (int64_t axis = 1; axis < type.getRank(); ++axis) {
    Value extent = memref::DimOp::create(b, buffer, axis);
    offset = arith::MulIOp::create(b, offset, extent);
    if (axis < static_cast<int64_t>(leading.size()))
      offset = b.add(offset, leading[axis]);
  }
  return offset;
}

Value mica::cpu::flatten(KernelBuilder &b, Value buffer) {
  ReassociationIndices all(cast<MemRefType>(buffer.getType()).getRank());
  std::iota(all.begin(), all.end(), 0);
  return memref::CollapseShapeOp::create(b, buffer, ArrayRef<ReassociationIndices>{all});
}

PackedPanel mica::cpu::panelOf(KernelBuilder &b, Value buffer, ValueRange leading) {
  ArrayRef<int64_t> shape = cast<MemRefType>(buffer.getType()).getShape();
  return panelOf(b, buffer, leading, shape[shape.size() - 2], shape.back());
}

PackedPanel mica::cpu::panelOf(KernelBuilder &b, Value buffer, ValueRange leading, int64_t columns,
                               int64_t depth) {
  return {flatten(b, buffer), offsetOf(b, buffer, leading), columns, depth};
}

PackedPanel mica::cpu::weightPanel(KernelBuilder &b, Value buffer, ValueRange leading,
                                   const WeightSpec &weight) {
  const BlockFormat *blocks = weight.blocks();
  if (!blocks)
    return panelOf(b, buffer, leading);
  Value start = b.idx(0);
  if (leading.size() == 2)
    start = b.mul(leading[0], bytesOfMatrix(*blocks, weight.n, weight.k));
  int64_t panelBytes = PackedBlocks(*blocks).bytesOf(weight.k);
  PackedPanel panel{flatten(b, buffer), b.add(start, b.mul(leading.back(), panelBytes)),
                    kBlockColumns, 4};
  panel.blocks = blocks;
  return panel;
}

Value mica::cpu::liveColumns(KernelBuilder &b, Value column, int64_t columns) {
  if (columns % kBlockColumns == 0)
    return {};
  return arith::MaxSIOp::create(b, b.sub(b.idx(columns), column), b.idx(0));
}
