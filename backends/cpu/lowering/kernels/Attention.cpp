//===- Attention.cpp - attention over the caches -------------------------------------===//

#include "backends/cpu/lowering/kernels/Kernels.h"
#include "backends/cpu/lowering/kernels/Tile.h"

using namespace mlir;
using namespace mica;
using namespace mica::cpu;

namespace {

/// Stands for minus infinity in maxima: exp(kHidden - x) is zero, and kHidden - kHidden is no NaN.
constexpr float kHidden = -1.0e30f;

/// Emits attention of one row and one key/value head.
class AttentionEmitter {
public:
  AttentionEmitter(KernelBuilder &b, ValueRange args, const AttentionSpec &spec)
      : b(b), spec(spec), q(args[2]), kCache(args[3]), vCache(args[4]), layer(args[5]),
        sequences(args[6]), positions(args[7]), y(args[8]),
        group(spec.heads / spec.keys.getHeads()), block(spec.keys.getLayout().getBlock()),
        depth(spec.keys.getLayout().getDepth()),
        padded(roundUp(spec.keys.getHeadDim(), kHeadDimUnit)) {
    // As many query heads at once as divide the group and keep their scores in registers.
    heads = 4;
    while (group % heads != 0)
      --heads;
    weights = b.stackBuffer({heads, block}, spec.values.getElementType());
    sums = b.stackBuffer({heads, padded}, b.getF32Type());
  }

  void emit(Value task) {
    row = b.div(task, spec.keys.getHeads());
    kvHead = b.rem(task, spec.keys.getHeads());
    sequence = b.loadIndex(sequences, row);
    position = b.loadIndex(positions, row);
    b.loop(b.idx(0), b.idx(group), heads,
           [&](Value first) { emitHeads(b.add(b.mul(kvHead, group), first)); });
  }

private:
  /// Attention of the query heads [head, head + heads).
  void emitHeads(Value head) {
    for (int64_t h = 0; h < heads; ++h)
      b.loop(b.idx(0), b.idx(padded), kLanes,
             [&](Value column) { b.storeVector(b.splat(0), sums, {b.idx(h), column}); });
    SmallVector<Value> state(heads, b.f32(kHidden));
    state.append(heads, b.f32(0));
    state =
        b.carry(firstBlock(), b.add(b.div(position, block), 1), 1, state,
                [&](Value number, ValueRange carried) { return emitBlock(head, number, carried); });
    for (int64_t h = 0; h < heads; ++h) {
      Value factor = b.broadcast(b.divf(b.f32(1), state[heads + h]));
      b.eachVector(spec.keys.getHeadDim(), [&](Value column, Value live) {
        b.storeVector(b.mulf(b.loadVector(sums, {b.idx(h), column}), factor), y,
                      {row, b.add(head, h), column}, live);
      });
    }
  }

  Value firstBlock() {
    if (!spec.window)
      return b.idx(0);
    Value first =
        arith::MaxSIOp::create(b, b.sub(b.add(position, 1), b.idx(*spec.window)), b.idx(0));
    return b.div(first, block);
  }

  /// One step of the online softmax: (maxima, sums) of the blocks so far become those with this
  /// block.
  SmallVector<Value> emitBlock(Value head, Value number, ValueRange carried) {
    int64_t vectors = block / kLanes;
    ProductTile scores = tileOver(
        b, q, spec.keys.getHeadDim(),
        {panelOf(b, kCache, {layer, sequence, kvHead, number}, block, depth)}, b.idx(0), vectors);
    for (int64_t h = 0; h < heads; ++h)
      scores.rows.push_back({row, b.add(head, h)});
    SmallVector<Value> products = scores.emit(b), next(2 * heads);
    SmallVector<Value> corrections;
    for (int64_t h = 0; h < heads; ++h) {
      SmallVector<Value> masked, visible;
      for (int64_t v = 0; v < vectors; ++v) {
        visible.push_back(visibleIn(number, v));
        Value score =
            cap(b.mulf(products[h * vectors + v], b.splat(static_cast<float>(spec.scale))));
        masked.push_back(arith::SelectOp::create(b, visible.back(), score, b.splat(kHidden)));
      }
      Value maximum = masked[0];
      for (Value vector : ArrayRef<Value>(masked).drop_front())
        maximum = b.maxf(maximum, vector);
      next[h] = b.maxf(carried[h], b.reduceMax(maximum));
      corrections.push_back(b.exp(b.broadcast(b.subf(carried[h], next[h]))));
      Value shift = b.broadcast(next[h]), total = b.splat(0);
      for (int64_t v = 0; v < vectors; ++v) {
        Value weight = b.exp(b.subf(masked[v], shift));
        weight = arith::SelectOp::create(b, visible[v], weight, b.splat(0));
        total = b.addf(total, weight);
        b.storeVector(weight, weights, {b.idx(h), b.idx(v * kLanes)});
      }
      Value correction = vector::ExtractOp::create(b, corrections.back(), 0);
      next[heads + h] = b.addf(b.mulf(carried[heads + h], correction), b.reduceAdd(total));
    }
    addValues(number, corrections);
    return next;
  }

  /// Lanes of vector `v` of a block that the row sees.
  Value visibleIn(Value number, int64_t v) {
    Value first = b.add(b.mul(number, block), v * kLanes);
    // Lane i is seen while first + i <= position, and, with a window, while first + i > position -
    // window.
    Value seen = b.maskOf(b.sub(b.add(position, 1), first));
    if (!spec.window)
      return seen;
    Value hidden = b.maskOf(b.sub(b.sub(b.add(position, 1), b.idx(*spec.window)), first));
    Value all = arith::ConstantOp::create(b, DenseElementsAttr::get(b.vec(b.getI1Type()), true));
    return arith::AndIOp::create(b, seen, arith::XOrIOp::create(b, hidden, all));
  }

  Value cap(Value score) {
    if (!spec.softcap)
      return score;
    Value limit = b.splat(static_cast<float>(*spec.softcap));
    return b.mulf(limit, math::TanhOp::create(b, b.divf(score, limit)));
  }

  /// sums = sums * correction + weights * values of the block, as many heads at once as fit the
  /// registers.
  void addValues(Value number, ArrayRef<Value> corrections) {
    PackedPanel panel = panelOf(b, vCache, {layer, sequence, kvHead, number}, padded, depth);
    int64_t vectors = std::min<int64_t>(padded / kLanes, 16);
    while ((padded / kLanes) % vectors != 0)
      --vectors;
    int64_t together = heads;
    while (together > 1 && (together * vectors > 16 || heads % together != 0))
      --together;
    // Positions behind the row's own have weight zero: whole groups may be left out.
    Value inBlock =
        arith::MinUIOp::create(b, b.sub(b.add(position, 1), b.mul(number, block)), b.idx(block));
    Value groups = b.div(b.add(inBlock, depth - 1), depth);
    for (int64_t first = 0; first < heads; first += together)
      b.loop(b.idx(0), b.idx(padded), vectors * kLanes, [&](Value column) {
        ProductTile tile{weights, block, groups, /*partial=*/false, {panel}, column, vectors};
        for (int64_t h = first; h < first + together; ++h) {
          tile.rows.push_back({b.idx(h)});
          for (int64_t v = 0; v < vectors; ++v)
            tile.inits.push_back(
                b.mulf(b.loadVector(sums, {b.idx(h), b.add(column, v * kLanes)}), corrections[h]));
        }
        SmallVector<Value> results = tile.emit(b);
        for (int64_t h = 0; h < together; ++h)
          for (int64_t v = 0; v < vectors; ++v)
            b.storeVector(results[h * vectors + v], sums,
                          {b.idx(first + h), b.add(column, v * kLanes)});
      });
  }

  KernelBuilder &b;
  const AttentionSpec &spec;
  Value q, kCache, vCache, layer, sequences, positions, y;
  int64_t group, block, depth, padded, heads;
  Value weights, sums;                   ///< on the stack
  Value row, kvHead, sequence, position; ///< of the task
};

} // namespace

void mica::cpu::emitAttention(KernelBuilder &b, ValueRange args, const AttentionSpec &spec) {
  AttentionEmitter emitter(b, args, spec);
  b.loop(args[0], args[1], 1, [&](Value task) { emitter.emit(task); });
}
