//===- Products.cpp - products of few rows with packed weights ----------------------===//

#include "backends/cpu/lowering/kernels/Kernels.h"
#include "backends/cpu/lowering/kernels/Tile.h"

using namespace mlir;
using namespace mica;
using namespace mica::cpu;

void mica::cpu::emitProduct(KernelBuilder &b, ValueRange args, const ProductSpec &spec) {
  Value x = args[2], weight = args[3], y = args.back();
  Value rows = memref::DimOp::create(b, x, 0);
  b.loop(args[0], args[1], 1, [&](Value block) {
    eachRowTile(b, b.idx(0), rows, 1, [&](Value first, int64_t count, int64_t vectors) {
      b.loop(b.idx(0), b.idx(kBlockColumns), vectors * kLanes, [&](Value column) {
        ProductTile tile = tileOver(b, x, spec.k, {panelOf(b, weight, block)}, column, vectors);
        for (int64_t r = 0; r < count; ++r)
          tile.rows.push_back({b.add(first, r)});
        SmallVector<Value> sums = tile.emit(b);
        for (int64_t v = 0; v < vectors; ++v) {
          Value target = b.add(b.mul(block, kBlockColumns), b.add(column, v * kLanes));
          Value live = liveColumns(b, target, spec.n);
          for (int64_t r = 0; r < count; ++r) {
            Value sum = sums[r * vectors + v];
            SmallVector<Value> at{tile.rows[r][0], target};
            if (spec.bias)
              sum = b.addf(sum, b.loadVector(args[4], target, live));
            if (spec.accumulate)
              sum = b.addf(sum, b.loadVector(y, at, live));
            b.storeVector(sum, y, at, live);
          }
        }
      });
    });
  });
}

void mica::cpu::emitGatedProduct(KernelBuilder &b, ValueRange args, int64_t inner, int64_t k,
                                 Activation activation) {
  Value x = args[2], weight = args[3], y = args[4];
  Value rows = memref::DimOp::create(b, x, 0);
  b.loop(args[0], args[1], 1, [&](Value block) {
    Value gate = b.mul(block, 2), up = b.add(gate, 1);
    eachRowTile(b, b.idx(0), rows, 2, [&](Value first, int64_t count, int64_t vectors) {
      b.loop(b.idx(0), b.idx(kBlockColumns), vectors * kLanes, [&](Value column) {
        ProductTile tile =
            tileOver(b, x, k, {panelOf(b, weight, gate), panelOf(b, weight, up)}, column, vectors);
        for (int64_t r = 0; r < count; ++r)
          tile.rows.push_back({b.add(first, r)});
        SmallVector<Value> sums = tile.emit(b);
        for (int64_t v = 0; v < vectors; ++v) {
          Value target = b.add(b.mul(block, kBlockColumns), b.add(column, v * kLanes));
          for (int64_t r = 0; r < count; ++r) {
            Value gated = emitActivation(b, sums[r * vectors + v], activation);
            Value result = b.mulf(gated, sums[(count + r) * vectors + v]);
            b.storeVector(result, y, {tile.rows[r][0], target}, liveColumns(b, target, inner));
          }
        }
      });
    });
  });
}
