//===- Positions.cpp - rope and appends to caches -------------------------===//

#include "backends/cpu/kernels/attention/Positions.h"

#include "backends/cpu/kernels/attention/CacheBlock.h"
#include "backends/cpu/kernels/rows/Int8Row.h"

#include <cmath>
#include <numbers>

using namespace mlir;
using namespace mica;
using namespace mica::cpu;

static VectorType wideType(KernelBuilder &b) { return b.vec(b.getF64Type()); }

static Value wide(KernelBuilder &b, double value) {
  return arith::ConstantOp::create(b, DenseElementsAttr::get(wideType(b), value));
}

/// x => c[0] + c[1] x + c[2] x^2 + ...
static Value polynomial(KernelBuilder &b, Value x, ArrayRef<double> coefficients) {
  Value sum = wide(b, coefficients.back());
  for (double coefficient : llvm::reverse(coefficients.drop_back()))
    sum = b.fma(sum, x, wide(b, coefficient));
  return sum;
}

/// ln(x) of normal numbers in f64, to 1e-12: frequencies are rounded to f32 once.
static Value logarithm(KernelBuilder &b, Value x) {
  auto bits = b.vec(b.getI64Type());
  auto integers = [&](int64_t value) { return b.splatInt(value, b.getI64Type()); };
  // x = 2^e m with m in [sqrt(1/2), sqrt(2)); ln(m) = 2 artanh(t) of t = (m - 1) / (m + 1).
  constexpr int64_t rootOfHalf = 0x3fe6a09e667f3bcd, mantissa = (int64_t(1) << 52) - 1;
  Value above = b.sub(arith::BitcastOp::create(b, bits, x), integers(rootOfHalf));
  Value exponent = arith::ShRSIOp::create(b, above, integers(52));
  Value m = arith::BitcastOp::create(
      b, wideType(b),
      b.add(arith::AndIOp::create(b, above, integers(mantissa)), integers(rootOfHalf)));
  Value t = b.divf(b.subf(m, wide(b, 1)), b.addf(m, wide(b, 1)));
  SmallVector<double> coefficients;
  for (int i = 1; i <= 15; i += 2)
    coefficients.push_back(2.0 / i);
  return b.fma(arith::SIToFPOp::create(b, wideType(b), exponent), wide(b, std::numbers::ln2),
               b.mulf(t, polynomial(b, b.mulf(t, t), coefficients)));
}

/// e^x in f64, to 1e-12, for |x| < 700.
static Value exponential(KernelBuilder &b, Value x) {
  auto bits = b.vec(b.getI64Type());
  Value doublings = math::RoundEvenOp::create(b, b.mulf(x, wide(b, std::numbers::log2e)));
  Value rest = b.fma(doublings, wide(b, -std::numbers::ln2), x);
  SmallVector<double> coefficients{1};
  for (int i = 1; i <= 11; ++i)
    coefficients.push_back(coefficients.back() / i);
  Value power =
      b.add(arith::FPToSIOp::create(b, bits, doublings), b.splatInt(1023, b.getI64Type()));
  power = arith::ShLIOp::create(b, power, b.splatInt(52, b.getI64Type()));
  return b.mulf(polynomial(b, rest, coefficients), arith::BitcastOp::create(b, wideType(b), power));
}

/// Calls `body(row, column, live, cosine, sine)` for the angles position * frequency of the rows
/// [begin, end), 16 frequencies at a time; `positionOf` and `frequencyOf` compute them as f32.
static void eachAngle(KernelBuilder &b, ValueRange args, int64_t pairs,
                      llvm::function_ref<Value(Value)> positionOf,
                      llvm::function_ref<Value(Value, Value, Value)> frequencyOf,
                      llvm::function_ref<void(Value, Value, Value, Value, Value)> body) {
  b.loop(args[0], args[1], 1, [&](Value row) {
    Value position = arith::SIToFPOp::create(b, b.getF32Type(), positionOf(row));
    b.eachVector(pairs, [&](Value column, Value live) {
      // The angle is rounded to f32, as in the reference implementations; its remainder modulo 2 pi
      // needs f64.
      Value angle = arith::ExtFOp::create(
          b, wideType(b), b.mulf(b.broadcast(position), frequencyOf(row, column, live)));
      Value turns = math::RoundEvenOp::create(b, b.mulf(angle, wide(b, 0.5 / std::numbers::pi)));
      Value rest = b.subf(angle, b.mulf(turns, wide(b, 2 * std::numbers::pi)));
      Value reduced = arith::TruncFOp::create(b, b.vecF32(), rest);
      body(row, column, live, math::CosOp::create(b, reduced), math::SinOp::create(b, reduced));
    });
  });
}

/// Frequencies of a sequence of `length` positions that is longer than the threshold: exp(i (-2 / D
/// ln(theta) - 2 / (D - 2) ln(s))) with s = growth * length / threshold - (growth - 1).
static Value grownFrequencies(KernelBuilder &b, const RopeSpec &spec, Value length, Value column) {
  Value share = b.mulf(b.broadcast(arith::SIToFPOp::create(b, b.getF64Type(), length)),
                       wide(b, spec.growth / static_cast<double>(*spec.lengthThreshold)));
  Value grown = logarithm(b, b.maxf(b.subf(share, wide(b, spec.growth - 1)), wide(b, 1)));
  auto pairs = static_cast<double>(spec.pairs);
  Value each = b.fma(grown, wide(b, -1 / (pairs - 1)), wide(b, -std::log(spec.theta) / pairs));
  SmallVector<double> lanes;
  for (int64_t lane = 0; lane < kLanes; ++lane)
    lanes.push_back(static_cast<double>(lane));
  Value ofLanes =
      arith::ConstantOp::create(b, DenseElementsAttr::get(wideType(b), ArrayRef(lanes)));
  Value first = arith::SIToFPOp::create(b, b.getF64Type(),
                                        arith::IndexCastOp::create(b, b.getI64Type(), column));
  Value exponent = b.mulf(b.addf(b.broadcast(first), ofLanes), each);
  return arith::TruncFOp::create(b, b.vecF32(), exponential(b, exponent));
}

void mica::cpu::emitRopeTable(KernelBuilder &b, ValueRange args, const RopeSpec &spec) {
  Value positions = args[2], y = args.back();
  memref::GlobalOp frequencies = spec.frequencies;
  Value table = memref::GetGlobalOp::create(b, frequencies.getType(), frequencies.getSymName());
  auto frequencyOf = [&](Value row, Value column, Value live) -> Value {
    if (!spec.lengthThreshold)
      return b.loadVector(table, column, live);
    Value length = b.load(args[3], row);
    Value isLong = arith::CmpIOp::create(
        b, arith::CmpIPredicate::sgt, length,
        arith::ConstantIntOp::create(b, b.getI32Type(), *spec.lengthThreshold));
    if (spec.growth > 0)
      return arith::SelectOp::create(b, isLong, grownFrequencies(b, spec, length, column),
                                     b.loadVector(table, column, live));
    Value set = arith::SelectOp::create(b, isLong, b.idx(spec.pairs), b.idx(0));
    return b.loadVector(table, b.add(set, column), live);
  };
  eachAngle(
      b, args, spec.pairs, [&](Value row) { return b.load(positions, row); }, frequencyOf,
      [&](Value row, Value column, Value live, Value cosine, Value sine) {
        b.storeVector(b.mulf(cosine, b.splat(spec.amplitude)), y, {row, b.idx(0), column}, live);
        b.storeVector(b.mulf(sine, b.splat(spec.amplitude)), y, {row, b.idx(1), column}, live);
      });
}

void mica::cpu::emitSinusoid(KernelBuilder &b, ValueRange args, memref::GlobalOp frequencies,
                             int64_t offset, std::optional<int64_t> paddingIdx) {
  Value positions = args[2], y = args[3];
  int64_t count = frequencies.getType().getDimSize(0);
  Value table = memref::GetGlobalOp::create(b, frequencies.getType(), frequencies.getSymName());
  auto positionOf = [&](Value row) {
    Value number = b.load(positions, row);
    if (offset == 0)
      return number;
    return b.add(number, arith::ConstantIntOp::create(b, b.getI32Type(), offset));
  };
  // The factor of the sines of a row: 0 in the padding row.
  auto factorOf = [&](Value row) -> Value {
    Value isPadding =
        arith::CmpIOp::create(b, arith::CmpIPredicate::eq, positionOf(row),
                              arith::ConstantIntOp::create(b, b.getI32Type(), *paddingIdx));
    return arith::SelectOp::create(b, isPadding, b.splat(0), b.splat(1));
  };
  eachAngle(
      b, args, count, positionOf,
      [&](Value, Value column, Value live) { return b.loadVector(table, column, live); },
      [&](Value row, Value column, Value live, Value cosine, Value sine) {
        if (paddingIdx) {
          Value factor = factorOf(row);
          sine = b.mulf(sine, factor);
          cosine = b.mulf(cosine, factor);
        }
        b.storeVector(sine, y, {row, column}, live);
        b.storeVector(cosine, y, {row, b.add(column, count)}, live);
      });
}

void mica::cpu::emitConcatHeads(KernelBuilder &b, ValueRange args) {
  Value y = args[4];
  b.loop(args[0], args[1], 1, [&](Value row) {
    b.loop(cast<MemRefType>(y.getType()).getDimSize(1), [&](Value head) {
      int64_t begin = 0;
      for (Value part : {args[2], args[3]}) {
        auto type = cast<MemRefType>(part.getType());
        Value from = type.getDimSize(1) == 1 ? b.idx(0) : head;
        b.eachVector(type.getDimSize(2), [&](Value column, Value live) {
          b.storeVector(b.loadVector(part, {row, from, column}, live), y,
                        {row, head, b.add(column, begin)}, live);
        });
        begin += type.getDimSize(2);
      }
    });
  });
}

namespace {

/// One head of x: its address, and the factors of its elements before rotation.
struct Head {
  Value buffer;
  SmallVector<Value> leading; ///< indices of the head
  Value offset;               ///< first column of the head
  Value scale;                ///< vector, or null without a norm
  Value normWeight;           ///< norm weight [D], or null without a norm
  float weightOffset = 0;     ///< added to the norm weight

  SmallVector<Value> at(KernelBuilder &b, Value column) const {
    SmallVector<Value> index(leading);
    index.push_back(b.add(offset, column));
    return index;
  }

  Value load(KernelBuilder &b, Value column, Value live, int64_t lanes = kLanes) const {
    Value value = b.loadVector(buffer, at(b, column), live, lanes);
    if (!scale)
      return value;
    Value factor =
        lanes == kLanes ? scale : b.broadcast(vector::ExtractOp::create(b, scale, 0), lanes);
    Value weights = b.loadVector(normWeight, column, live, lanes);
    if (weightOffset != 0)
      weights = b.addf(weights, b.broadcast(b.f32(weightOffset), lanes));
    return b.mulf(b.mulf(value, factor), weights);
  }
};

/// Stores a part of a rotated head.
using StoreVector = llvm::function_ref<void(Value vector, Value column, Value live)>;

/// (a cos - b sin, b cos + a sin) for the pairs of `columns` consecutive columns of the table.
std::pair<Value, Value> rotate(KernelBuilder &b, Value first, Value second, Value cosine,
                               Value sine) {
  return {b.subf(b.mulf(first, cosine), b.mulf(second, sine)),
          b.addf(b.mulf(second, cosine), b.mulf(first, sine))};
}

/// Rotates a head of `headDim` elements by row `row` of `table` [T, 2, pairs].
void rotateHead(KernelBuilder &b, const Head &head, int64_t headDim, Value table, Value row,
                Pairing pairing, StoreVector store) {
  int64_t pairs = cast<MemRefType>(table.getType()).getDimSize(2);
  b.eachVector(pairs, [&](Value column, Value live) {
    Value cosine = b.loadVector(table, {row, b.idx(0), column}, live);
    Value sine = b.loadVector(table, {row, b.idx(1), column}, live);
    if (pairing == Pairing::Half) {
      Value other = b.add(column, pairs);
      auto [first, second] =
          rotate(b, head.load(b, column, live), head.load(b, other, live), cosine, sine);
      store(first, column, live);
      store(second, other, live);
      return;
    }
    Value even = b.mul(column, 2), liveBoth = live ? b.mul(live, 2) : Value();
    auto parts = vector::DeinterleaveOp::create(b, head.load(b, even, liveBoth, 2 * kLanes));
    auto [first, second] = rotate(b, parts.getRes1(), parts.getRes2(), cosine, sine);
    store(vector::InterleaveOp::create(b, first, second), even, liveBoth);
  });
  // Elements after the rotary dimensions are not rotated.
  if (int64_t rest = headDim - 2 * pairs)
    b.eachVector(rest, [&](Value column, Value live) {
      Value unrotated = b.add(column, 2 * pairs);
      store(head.load(b, unrotated, live), unrotated, live);
    });
}

/// rsqrt(mean of squares + eps) of a head as a vector.
Value headScale(KernelBuilder &b, const Head &head, int64_t headDim, double eps) {
  Value squares = b.eachVector(headDim, b.splat(0), [&](Value column, Value live, Value sum) {
    Value values = b.loadVector(head.buffer, head.at(b, column), live);
    return b.fma(values, values, sum);
  });
  return b.inverseRootOfMean(squares, headDim, eps);
}

/// One position of a cache.
class CacheSlot {
public:
  CacheSlot(KernelBuilder &b, Value cache, KvCacheType type, Value layer, Value sequence,
            Value position)
      : cache(cache), type(type), inBlock(b.rem(position, type.getLayout().getBlock())),
        layer(layer), sequence(sequence),
        block(indexOfBlock(b, cache, type, b.div(position, type.getLayout().getBlock()))) {}

  /// The indices of an element in the block of the position.
  SmallVector<Value> at(Value head, Value element) const {
    return {layer, sequence, head, block, element};
  }

  Value cache;
  KvCacheType type;
  Value inBlock; ///< index of the position in its block

private:
  Value layer, sequence, block;
};

/// Scatters the elements of a head; see #mica.kv_layout for the formulas.
void scatterHead(KernelBuilder &b, const CacheSlot &slot, Value number,
                 llvm::function_ref<Value(Value)> element) {
  KvCacheType type = slot.type;
  KvLayoutAttr layout = type.getLayout();
  int64_t block = layout.getBlock(), depth = layout.getDepth(),
          padded = roundUp(type.getHeadDim(), kHeadDimUnit);
  bool keys = layout.getKind() == KvKind::Keys;
  Value inBlock = slot.inBlock;
  b.loop(type.getHeadDim(), [&](Value d) {
    Value group = b.div(keys ? d : inBlock, depth), lane = b.rem(keys ? d : inBlock, depth);
    Value column = keys ? inBlock : d;
    Value place = b.add(b.mul(b.add(b.mul(group, keys ? block : padded), column), depth), lane);
    b.store(element(d), slot.cache, slot.at(number, place));
  });
}

/// Stores head `number`, rounded to the element type of the cache, and its scale if those are
/// integers.
void appendHead(KernelBuilder &b, const CacheSlot &slot, Value number, const Head &head) {
  KvCacheType type = slot.type;
  int64_t headDim = type.getHeadDim();
  if (!isQuantized(type.getElementType()))
    return scatterHead(b, slot, number, [&](Value d) {
      return b.fromF32(b.loadF32(head.buffer, head.at(b, d)), type.getElementType());
    });
  auto load = [&](Value column, Value live) { return head.load(b, column, live); };
  Int8Row row(b, headDim, load);
  Type i8 = b.getI8Type();
  Value integers = b.stackBuffer({roundUp(headDim, kLanes)}, i8);
  b.eachVector(headDim, [&](Value column, Value live) {
    b.storeVector(arith::TruncIOp::create(b, b.vec(i8), row.integers(column, live)), integers,
                  column);
  });
  scatterHead(b, slot, number, [&](Value d) { return b.load(integers, d); });
  Value scales = b.idx(type.getScaleOffset(0));
  storeAsBytes(b, row.scale, slot.cache, slot.at(number, b.add(scales, b.mul(slot.inBlock, 4))));
}

} // namespace

void mica::cpu::emitRope(KernelBuilder &b, ValueRange args, Pairing pairing) {
  Value x = args[2], table = args[3], y = args[4];
  ArrayRef<int64_t> shape = cast<MemRefType>(x.getType()).getShape();
  b.loop(args[0], args[1], 1, [&](Value row) {
    b.loop(shape[1], [&](Value h) {
      Head head{x, {row, h}, b.idx(0), {}, {}};
      rotateHead(b, head, shape[2], table, row, pairing,
                 [&](Value vector, Value column, Value live) {
                   b.storeVector(vector, y, {row, h, column}, live);
                 });
    });
  });
}

void mica::cpu::emitKvAppend(KernelBuilder &b, ValueRange args, KvCacheType cache) {
  Value x = args[2], sequences = args[3], positions = args[4], layer = args[5], target = args[6];
  b.loop(args[0], args[1], 1, [&](Value row) {
    CacheSlot slot(b, target, cache, layer, b.loadIndex(sequences, row),
                   b.loadIndex(positions, row));
    b.loop(cache.getHeads(),
           [&](Value h) { appendHead(b, slot, h, Head{x, {row, h}, b.idx(0), {}, {}}); });
  });
}

void mica::cpu::emitQkvAppend(KernelBuilder &b, ValueRange args, const QkvAppendSpec &spec) {
  Value table = args[3], sequences = args[4], positions = args[5], layer = args[6];
  Value qNorm = spec.eps ? args[7] : Value(), kNorm = spec.eps ? args[8] : Value();
  Value q = args[args.size() - 3], kCache = args[args.size() - 2], vCache = args[args.size() - 1];
  int64_t headDim = spec.keys.getHeadDim(), groups = spec.keys.getHeads();
  SmallVector<Value> products{args[2]};
  llvm::append_range(products, args.drop_back(3).take_back(spec.parts));
  // The matmul result that contains the heads starting at `first`, and the index of that head in
  // it.
  auto partOf = [&](int64_t first) {
    int64_t begin = 0;
    for (Value product : products) {
      int64_t heads = cast<MemRefType>(product.getType()).getDimSize(1) / headDim;
      if (first < begin + heads)
        return std::pair(product, first - begin);
      begin += heads;
    }
    llvm_unreachable("the verifier has counted the heads");
  };
  auto headAt = [&](Value row, int64_t first, Value number, Value normWeight) {
    auto [product, own] = partOf(first);
    Head head{product, {row},      b.mul(b.add(number, own), headDim),
              {},      normWeight, spec.weightOffset};
    if (spec.eps)
      head.scale = headScale(b, head, headDim, *spec.eps);
    return head;
  };
  // Keys are rotated in a buffer of whole vectors and scattered from there.
  Value rotated = b.stackBuffer({headDim}, b.getF32Type());
  b.loop(args[0], args[1], 1, [&](Value row) {
    Value sequence = b.loadIndex(sequences, row), position = b.loadIndex(positions, row);
    CacheSlot keys(b, kCache, spec.keys, layer, sequence, position),
        values(b, vCache, spec.values, layer, sequence, position);
    b.loop(spec.heads, [&](Value h) {
      rotateHead(b, headAt(row, 0, h, qNorm), headDim, table, row, spec.pairing,
                 [&](Value vector, Value column, Value live) {
                   b.storeVector(vector, q, {row, h, column}, live);
                 });
    });
    b.loop(groups, [&](Value g) {
      Head head = headAt(row, spec.heads, g, kNorm);
      rotateHead(b, head, headDim, table, row, spec.pairing,
                 [&](Value vector, Value column, Value live) {
                   b.storeVector(vector, rotated, column, live);
                 });
      appendHead(b, keys, g, Head{rotated, {}, b.idx(0), {}, {}});
      auto [product, own] = partOf(spec.heads + groups);
      appendHead(b, values, g, Head{product, {row}, b.mul(b.add(g, own), headDim), {}, {}});
    });
  });
}
