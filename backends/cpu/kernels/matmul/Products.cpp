//===- Products.cpp - matmuls of rows with packed weights -----------------===//

#include "backends/cpu/kernels/matmul/Products.h"

#include "backends/cpu/kernels/matmul/BlockReader.h"
#include "backends/cpu/kernels/matmul/BlockSums.h"

using namespace mlir;
using namespace mica;
using namespace mica::cpu;

/// Computes the sums of all rows for the blocks in a range of tasks.
static void emitBlocks(KernelBuilder &b, ValueRange args, const WeightSpec &weight, int64_t panels,
                       PanelsOfBlock panelsOf, StoreBlockSums store) {
  Value x = args[2];
  ProductRows rows{x, b.idx(0), memref::DimOp::create(b, x, 0)};
  emitBlockSums(b, rows, weight, {args[0], args[1], panels}, panelsOf, store);
}

void mica::cpu::emitProduct(KernelBuilder &b, ValueRange args, const ProductSpec &spec) {
  Value weight = args[3], y = args.back();
  auto panelsOf = [&](Value block) {
    return SmallVector<PackedPanel>{weightPanel(b, weight, block, spec.weight)};
  };
  emitBlocks(b, args, spec.weight, 1, panelsOf,
             [&](Value block, Value row, Value column, ArrayRef<Value> sums) {
               Value target = b.add(b.mul(block, kBlockColumns), column);
               Value live = liveColumns(b, target, spec.weight.n), sum = sums[0];
               if (spec.bias)
                 sum = b.addf(sum, b.loadVector(args[4], target, live));
               if (spec.accumulate)
                 sum = b.addf(sum, b.loadVector(y, {row, target}, live));
               b.storeVector(sum, y, {row, target}, live);
             });
}

void mica::cpu::emitHeadProduct(KernelBuilder &b, ValueRange args, const WeightSpec &weight) {
  Value x = args[2], packed = args[3], y = args[4], rows = memref::DimOp::create(b, x, 0);
  int64_t blocks = roundUp(weight.n, kBlockColumns) / kBlockColumns;
  b.loop(b.div(args[0], blocks), b.div(b.add(args[1], blocks - 1), blocks), 1, [&](Value head) {
    Value first = b.mul(head, blocks);
    Value from = arith::MaxSIOp::create(b, b.sub(args[0], first), b.idx(0));
    Value to = arith::MinSIOp::create(b, b.sub(args[1], first), b.idx(blocks));
    ProductRows ofHead{x, b.idx(0), rows};
    ofHead.at = [&](Value row) { return SmallVector<Value>{row, head}; };
    auto panelsOf = [&](Value block) {
      return SmallVector<PackedPanel>{weightPanel(b, packed, {head, block}, weight)};
    };
    emitBlockSums(b, ofHead, weight, {from, to}, panelsOf,
                  [&](Value block, Value row, Value column, ArrayRef<Value> sums) {
                    Value target = b.add(b.mul(block, kBlockColumns), column);
                    b.storeVector(sums[0], y, {row, head, target},
                                  liveColumns(b, target, weight.n));
                  });
  });
}

void mica::cpu::storeGated(KernelBuilder &b, ArrayRef<Value> sums, Value block, Value column,
                           const Gating &gating, int64_t inner, Value y, SmallVector<Value> at) {
  at.push_back(b.add(b.mul(block, kBlockColumns), column));
  b.storeVector(emitGated(b, sums[0], sums[1], gating), y, at, liveColumns(b, at.back(), inner));
}

void mica::cpu::emitGatedProduct(KernelBuilder &b, ValueRange args, const WeightSpec &weight,
                                 int64_t inner, Activation activation) {
  Value packed = args[3], y = args[4];
  auto panelsOf = [&](Value block) {
    Value gate = b.mul(block, 2), up = b.add(gate, 1);
    return SmallVector<PackedPanel>{weightPanel(b, packed, gate, weight),
                                    weightPanel(b, packed, up, weight)};
  };
  emitBlocks(b, args, weight, 2, panelsOf,
             [&](Value block, Value row, Value column, ArrayRef<Value> sums) {
               storeGated(b, sums, block, column, {activation}, inner, y, {row});
             });
}

void mica::cpu::emitEpilogue(KernelBuilder &b, ValueRange args, const ProductSpec &spec,
                             int64_t columns) {
  Value sums = args[2], first = args[3], y = args.back(), bias = args.drop_back().back();
  b.loop(args[0], args[1], 1, [&](Value row) {
    b.loop(b.idx(0), b.idx(columns), kLanes, [&](Value column) {
      Value target = b.add(first, column), live = liveColumns(b, target, spec.weight.n);
      Value result = b.loadRaw(sums, {row, column}, kLanes);
      if (spec.bias)
        result = b.addf(result, b.loadVector(bias, target, live));
      if (spec.accumulate)
        result = b.addf(result, b.loadVector(y, {row, target}, live));
      b.storeVector(result, y, {row, target}, live);
    });
  });
}

void mica::cpu::emitGatedEpilogue(KernelBuilder &b, ValueRange args, int64_t inner,
                                  Activation activation, int64_t columns) {
  Value sums = args[2], first = args[3], y = args.back();
  b.loop(args[0], args[1], 1, [&](Value row) {
    b.loop(b.idx(0), b.idx(columns), 2 * kBlockColumns, [&](Value block) {
      b.loop(b.idx(0), b.idx(kBlockColumns), kLanes, [&](Value lane) {
        Value column = b.add(block, lane), gate = b.loadRaw(sums, {row, column}, kLanes),
              up = b.loadRaw(sums, {row, b.add(column, kBlockColumns)}, kLanes);
        Value target = b.add(b.div(b.add(first, block), 2), lane);
        b.storeVector(b.mulf(emitActivation(b, gate, activation), up), y, {row, target},
                      liveColumns(b, target, inner));
      });
    });
  });
}

void mica::cpu::emitExpandBlocks(KernelBuilder &b, ValueRange args, const WeightSpec &weight) {
  Value packed = args[2], firstBlock = args[3], panels = args[4];
  int64_t elements = weight.blocks()->elements,
          depth = cast<MemRefType>(panels.getType()).getShape().back(),
          floats = expandedColumns(weight.k, depth) * kBlockColumns;
  Value memory = flatten(b, panels);
  b.loop(args[0], args[1], 1, [&](Value block) {
    PackedPanel panel = weightPanel(b, packed, b.add(firstBlock, block), weight);
    expandBlocks(b, panel, weight.k, b.idx(0), b.idx(llvm::divideCeil(weight.k, elements)), memory,
                 b.mul(block, floats));
  });
}
