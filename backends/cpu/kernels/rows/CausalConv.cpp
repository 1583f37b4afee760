//===- CausalConv.cpp - causal convolutions -------------------------------===//

#include "backends/cpu/kernels/rows/CausalConv.h"

using namespace mlir;
using namespace mica::cpu;

namespace {

/// State shared by the rows of a call.
struct Conv {
  Value x, weight, bias, sequences, positions, layer, y, state;
  int64_t channels, taps, slots;

  Conv(ValueRange args, bool hasBias)
      : x(args[2]), weight(args[3]), bias(hasBias ? args[4] : Value()) {
    ValueRange rest = args.drop_front(hasBias ? 5 : 4);
    sequences = rest[0];
    positions = rest[1];
    layer = rest[2];
    y = rest[3];
    state = rest[4];
    ArrayRef<int64_t> shape = cast<MemRefType>(weight.getType()).getShape();
    channels = shape[0];
    taps = shape[1];
    slots = cast<MemRefType>(state.getType()).getDimSize(2);
  }

  /// Calls `body(column, inBlock, live)` for the vectors of the block of channels starting at
  /// `first`.
  void eachVector(KernelBuilder &b, Value first,
                  llvm::function_ref<void(Value, Value, Value)> body) const {
    Value end = arith::MinUIOp::create(b, b.add(first, kConvChannels), b.idx(channels));
    b.loop(first, end, kLanes, [&](Value column) {
      Value live;
      if (channels % kLanes != 0)
        live = arith::MinUIOp::create(b, b.sub(b.idx(channels), column), b.idx(kLanes));
      body(column, b.sub(column, first), live);
    });
  }

  /// The filters of a block, [K, channels of the block], so that a vector holds one tap.
  Value transposedFilters(KernelBuilder &b, Value first) const {
    Value filters = b.stackBuffer({taps, kConvChannels}, b.getF32Type());
    Value end = arith::MinUIOp::create(b, b.add(first, kConvChannels), b.idx(channels));
    b.loop(first, end, 1, [&](Value channel) {
      for (int64_t tap = 0; tap < taps; ++tap)
        b.store(b.loadF32(weight, {channel, b.idx(tap)}), filters,
                {b.idx(tap), b.sub(channel, first)});
    });
    return filters;
  }
};

} // namespace

void mica::cpu::emitCausalConv1d(KernelBuilder &b, ValueRange args, bool hasBias) {
  Conv conv(args, hasBias);
  Value rows = memref::DimOp::create(b, conv.positions, 0);
  b.loop(args[0], args[1], 1, [&](Value block) {
    Value first = b.mul(block, kConvChannels), filters = conv.transposedFilters(b, first);
    b.loop(b.idx(0), rows, 1, [&](Value row) {
      Value sequence = b.loadIndex(conv.sequences, row),
            position = b.loadIndex(conv.positions, row);
      auto at = [&](Value slot, Value column) {
        return SmallVector<Value>{conv.layer, sequence, slot, column};
      };
      conv.eachVector(b, first, [&](Value column, Value inBlock, Value live) {
        Value own = b.loadVector(conv.x, {row, column}, live);
        b.storeVector(own, conv.state, at(b.rem(position, conv.slots), column), live);
        Value sum = hasBias ? b.loadVector(conv.bias, column, live) : b.splat(0);
        for (int64_t tap = 0; tap < conv.taps; ++tap) {
          Value values = own;
          if (int64_t back = conv.taps - 1 - tap; back > 0) {
            // Inputs before position 0 are zero; the ring buffer may contain those of an earlier
            // sequence.
            Value slot = b.rem(b.sub(b.add(position, conv.slots), b.idx(back)), conv.slots);
            Value exists =
                arith::CmpIOp::create(b, arith::CmpIPredicate::uge, position, b.idx(back));
            values = arith::SelectOp::create(
                b, exists, b.loadVector(conv.state, at(slot, column), live), b.splat(0));
          }
          sum = b.fma(values, b.loadVector(filters, {b.idx(tap), inBlock}), sum);
        }
        b.storeVector(sum, conv.y, {row, column}, live);
      });
    });
  });
}
