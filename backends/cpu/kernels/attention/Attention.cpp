//===- Attention.cpp - attention over the caches -------------------------------------===//

#include "backends/cpu/kernels/attention/Attention.h"
#include "backends/cpu/features/PagesInTurn.h"

#include "backends/cpu/kernels/attention/LimbRows.h"
#include "backends/cpu/kernels/attention/Softmax.h"
#include "backends/cpu/kernels/matmul/AmxTile.h"
#include "backends/cpu/kernels/matmul/Tile.h"

#include <numbers>
#include <numeric>

using namespace mlir;
using namespace mica;
using namespace mica::cpu;

/// Pairs of a row and a query head that meet a block together: 4 times 4 vectors of scores.
static constexpr int64_t kPairs = 4;

static int64_t valuesOf(const AttentionSpec &spec) {
  return roundUp(spec.values.getHeadDim(), kHeadDimUnit);
}

int64_t AttentionSpec::stateWidth() const { return SoftmaxStates::widthFor(valuesOf(*this)); }

namespace {

/// How the positions that a row sees are cut: chunk i is [i * size, (i + 1) * size), whatever the
/// window. A row before position 0 sees nothing; it has one chunk, which is empty.
class Chunks {
public:
  Chunks(KernelBuilder &b, const AttentionSpec &spec) : b(b), spec(spec) {}

  Value firstSeen(Value position) const {
    if (!spec.window)
      return b.idx(0);
    return arith::MaxSIOp::create(b, b.sub(b.add(position, 1), b.idx(*spec.window)), b.idx(0));
  }
  /// Positions of a chunk.
  Value size(Value position) const {
    int64_t chunk = spec.tiling.getChunk(), longest = chunk * AttentionSpec::kMostChunks;
    Value seen = b.sub(b.add(position, 1), firstSeen(position));
    Value times = b.div(b.add(seen, longest - 1), longest);
    return b.mul(arith::MaxUIOp::create(b, times, b.idx(1)), chunk);
  }
  Value first(Value position) const {
    return arith::DivUIOp::create(b, firstSeen(position), size(position));
  }
  /// Behind the last one.
  Value end(Value position) const {
    Value last = arith::MaxSIOp::create(b, position, b.idx(0));
    return b.add(arith::DivUIOp::create(b, last, size(position)), 1);
  }
  Value count(Value position) const { return b.sub(end(position), first(position)); }

private:
  KernelBuilder &b;
  const AttentionSpec &spec;
};

/// Consecutive rows of one sequence, none at a lower position than the one before it, with chunks
/// of one size, and query heads that share a key/value head.
struct Run {
  Value part; ///< number of these query heads
  Value head; ///< of keys and values
  Value first, rows;
  Value sequence;
  Value firstPosition, lastPosition;
  Value chunkSize;
};

/// A block of positions, as a run sees it.
struct Block {
  Value number;
  Value first;        ///< position
  Value liveGroups;   ///< groups of positions before those that no row of the run sees
  Value onBorder;     ///< whether some row does not see all of it
  Value streams = {}; ///< whether its keys and values come from memory, with more behind them
};

/// 16 vectors of 16 words, as a matrix transposed: halves trade places, then their halves.
SmallVector<Value> transposed(KernelBuilder &b, SmallVector<Value> rows) {
  for (int64_t half = kLanes / 2; half > 0; half /= 2)
    for (int64_t i = 0; i < kLanes; ++i) {
      if (i & half)
        continue;
      SmallVector<int64_t> upper, lower;
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        upper.push_back(lane & half ? kLanes + lane - half : lane);
        lower.push_back(lane & half ? kLanes + lane : lane + half);
      }
      Value first = rows[i], second = rows[i + half];
      rows[i] = vector::ShuffleOp::create(b, first, second, upper);
      rows[i + half] = vector::ShuffleOp::create(b, first, second, lower);
    }
  return rows;
}

/// The first elements of all vectors, then the second ones, and so on; 1, 2 or 4 vectors.
Value interleaved(KernelBuilder &b, ArrayRef<Value> vectors) {
  if (vectors.size() == 1)
    return vectors.front();
  SmallVector<Value> even, odd;
  for (auto [i, vector] : llvm::enumerate(vectors))
    (i % 2 == 0 ? even : odd).push_back(vector);
  return vector::InterleaveOp::create(b, interleaved(b, even), interleaved(b, odd));
}

/// Emits the softmax of one chunk for all pairs of a row and a query head of a run. A pair's
/// numbers are added in an order that is the same in any run: all its operations are its own, and
/// blocks that only other rows see do not change them, because hidden scores have weights of
/// exactly zero.
class ChunkEmitter {
public:
  ChunkEmitter(KernelBuilder &b, ValueRange args, const AttentionSpec &spec)
      : b(b), spec(spec), chunks(b, spec), q(args[2]), kCache(args[3]), vCache(args[4]),
        layer(args[5]), sequences(args[6]), positions(args[7]), group(spec.headsOfTask()),
        block(spec.keys.getLayout().getBlock()), inTileOrder(b.target.tiles && fitsTiles()),
        inTiles(inTileOrder && spec.tiling.getRows() > 1),
        pairs(inTiles ? roundUp(spec.tiling.getRows() * group, RowTiles::kTileRows)
                      : spec.tiling.getRows() * group),
        seen(b.stackBuffer({pairs}, b.getI32Type())), states(makeStates()) {
    int64_t width = roundUp(spec.keys.getHeadDim(), kHeadDimUnit);
    if (meetsBytes(spec.keys))
      queryLimbs.emplace(b, pairs, width, LimbRows::Signs::Both);
    else
      queries = b.stackBuffer({pairs, width}, factorType(spec.keys.getElementType()));
    int64_t together = inTiles ? pairs : kPairs;
    if (meetsBytes(spec.values))
      weightLimbs.emplace(b, together, block, LimbRows::Signs::None);
    else
      weights = b.stackBuffer({together, block}, factorType(spec.values.getElementType()));
    if (spec.valuesInKeys)
      turned = b.stackBuffer({block * valuesOf(spec)}, b.elementOf(kCache));
    if (inTiles) {
      scores = b.stackBuffer({pairs, block}, b.getF32Type());
      corrections = b.stackBuffer({pairs}, b.getF32Type());
    }
  }

  /// States of all pairs of a run, on the stack.
  SoftmaxStates makeStates() {
    return {b, b.stackBuffer({pairs, spec.stateWidth()}, b.getF32Type()), valuesOf(spec)};
  }

  Value positionOf(Value row) { return b.loadIndex(positions, row); }

  /// Begins with the rows [first, first + rows): loads their queries of part `part` of all heads.
  Run begin(Value part, Value first, Value rows) {
    Run run{part,
            spec.parts() == 1 ? part : b.div(part, spec.parts()),
            first,
            rows,
            b.loadIndex(sequences, first),
            positionOf(first),
            {},
            {}};
    run.lastPosition = positionOf(b.sub(b.add(first, rows), b.idx(1)));
    run.chunkSize = chunks.size(run.firstPosition);
    eachPair(run, [&](Value pair, Value row, Value queryHead) {
      b.store(b.load(positions, row), seen, pair);
      auto load = [&](Value column, Value live) {
        return b.loadVector(q, {row, queryHead, column}, live);
      };
      int64_t headDim = spec.keys.getHeadDim();
      if (!queryLimbs)
        return b.eachVector(headDim, [&](Value column, Value live) {
          b.storeVector(load(column, live), queries, {pair, column});
        });
      SmallVector<Value> query;
      for (int64_t column = 0; column < headDim; column += kLanes)
        query.push_back(
            load(b.idx(column), column + kLanes <= headDim ? Value() : b.idx(headDim - column)));
      queryLimbs->store(pair, query);
    });
    return run;
  }

  /// Calls `body(pair, row, query head)` for all pairs of a run.
  void eachPair(const Run &run, llvm::function_ref<void(Value, Value, Value)> body) {
    b.loop(b.idx(0), run.rows, 1, [&](Value r) {
      b.loop(group, [&](Value h) {
        body(b.add(b.mul(r, group), h), b.add(run.first, r), b.add(b.mul(run.part, group), h));
      });
    });
  }

  /// Whether a row belongs to the run of the row before it.
  Value continuesRun(Value row) {
    Value before = b.sub(row, b.idx(1)), from = positionOf(before), to = positionOf(row);
    auto holds = [&](arith::CmpIPredicate predicate, Value x, Value y) -> Value {
      return arith::CmpIOp::create(b, predicate, x, y);
    };
    using enum arith::CmpIPredicate;
    Value neighbours = arith::AndIOp::create(
        b, holds(eq, b.load(sequences, before), b.load(sequences, row)), holds(sle, from, to));
    return arith::AndIOp::create(b, neighbours, holds(eq, chunks.size(from), chunks.size(to)));
  }

  /// `states` become those of chunk `number`.
  void emit(const Run &run, Value number) {
    eachPair(run, [&](Value pair, Value, Value) { states.clear(pair); });
    Value begin = arith::MulIOp::create(b, number, run.chunkSize);
    Value end = arith::MinUIOp::create(b, b.add(begin, run.chunkSize), b.add(run.lastPosition, 1));
    begin = arith::MaxUIOp::create(b, begin, chunks.firstSeen(run.firstPosition));
    b.loop(b.div(begin, block), b.div(b.add(end, block - 1), block), 1, [&](Value blockNumber) {
      Block at = blockAt(run, blockNumber);
      if (spec.valuesInKeys)
        turnValues(run, at);
      if (inTiles)
        return emitBlockInTiles(run, at);
      eachPairTile(run, [&](Value pair, int64_t count) {
        at.streams = streamsAt(run, at, pair);
        emitBlock(run, at, pair, count);
      });
    });
  }

private:
  /// Whether tile registers could multiply by both caches: pairs of bf16 in whole steps.
  bool fitsTiles() const {
    constexpr int64_t step = 2 * kTileGroups;
    return b.elementOf(q).isBF16() && spec.keys.getElementType().isBF16() &&
           spec.values.getElementType().isBF16() && block % step == 0 &&
           roundUp(spec.keys.getHeadDim(), kHeadDimUnit) % step == 0;
  }

  /// What queries and weights of the softmax are stored as, where they meet a cache of `element`:
  /// as the cache's elements, if the target multiplies pairs of those fast, else as f32.
  Type factorType(Type element) const {
    bool fast = inTiles || (b.target.bf16Dot && b.target.fastBf16Dot && !inTileOrder);
    return element.isBF16() && fast ? element : b.getF32Type();
  }

  /// Whether the integers of a cache are multiplied as such; else they become f32.
  bool meetsBytes(KvCacheType cache) const {
    return isQuantized(cache.getElementType()) && b.target.int8Dot;
  }

  Block blockAt(const Run &run, Value number) {
    Value first = b.mul(number, block);
    int64_t depth = spec.values.getLayout().getDepth();
    Value live = arith::MinUIOp::create(b, b.sub(b.add(run.lastPosition, 1), first), b.idx(block));
    Value onBorder = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, run.firstPosition,
                                           b.add(first, block - 1));
    if (spec.window)
      onBorder = arith::OrIOp::create(b, onBorder,
                                      arith::CmpIOp::create(b, arith::CmpIPredicate::ult, first,
                                                            chunks.firstSeen(run.lastPosition)));
    return {number, first, b.div(b.add(live, depth - 1), depth), onBorder};
  }

  /// Single rows read a cache once; the first pairs of a block bring it from memory. Null where the
  /// target does not ask ahead.
  Value streamsAt(const Run &run, const Block &at, Value pair) {
    if (!b.target.prefetchPages || spec.tiling.getRows() > 1)
      return {};
    // Where what is asked for would be, there must be positions.
    KvCacheType keys = spec.keys;
    Type element = isQuantized(keys.getElementType()) ? b.getI8Type() : keys.getElementType();
    int64_t blockBytes = keys.getPhysicalShape().back() * element.getIntOrFloatBitWidth() / 8;
    int64_t positions = rt::pages_in_turn::chunk * block / blockBytes;
    Value more = arith::CmpIOp::create(b, arith::CmpIPredicate::ule, b.add(at.first, positions),
                                       run.lastPosition);
    return arith::AndIOp::create(b, more, b.isEqual(pair, b.idx(0)));
  }

  /// Calls `body(first pair, pairs)` for tiles of the run's pairs.
  void eachPairTile(const Run &run, llvm::function_ref<void(Value, int64_t)> body) {
    auto tiles = [&](Value from, Value to, int64_t count) {
      b.loop(from, to, count, [&](Value pair) { body(pair, count); });
    };
    if (spec.tiling.getRows() > 1) {
      Value all = b.mul(run.rows, group), whole = b.mul(b.div(all, kPairs), kPairs);
      tiles(b.idx(0), whole, kPairs);
      return tiles(whole, all, 1);
    }
    // One row: as few tiles as possible, of about the same size.
    int64_t count = roundUp(group, kPairs) / kPairs, least = group / count, larger = group % count;
    Value border = b.idx(larger * (least + 1));
    if (larger)
      tiles(b.idx(0), border, least + 1);
    tiles(border, b.idx(group), least);
  }

  /// Adds a block to the softmaxes of `count` pairs.
  void emitBlock(const Run &run, const Block &at, Value pair, int64_t count) {
    int64_t vectors = block / kLanes;
    SmallVector<Value> corrections,
        scores = shaped(run, at, pair, multiplyKeys(run, at, pair, count));
    scores = b.changeWhen(at.onBorder, scores, [&] { return hide(at, pair, scores); });
    PackedPanel values = panelOfValues(run, at), scaled = panelOfScales(run, at);
    for (int64_t i = 0; i < count; ++i) {
      ArrayRef<Value> own = ArrayRef(scores).slice(i * vectors, vectors);
      Value drop = states.raiseMaximum(b.add(pair, i), own, log2PerScore());
      corrections.push_back(emitExp2(b, b.broadcast(drop)));
      weigh(scaled, b.add(pair, i), own, corrections.back(), b.idx(i));
    }
    addValues(values, at, pair, corrections);
  }

  /// Adds a block to the softmaxes of all pairs of a run.
  void emitBlockInTiles(const Run &run, const Block &at) {
    int64_t width = roundUp(spec.keys.getHeadDim(), kHeadDimUnit), vectors = block / kLanes;
    constexpr int64_t rows = RowTiles::kTileRows, groups = kTileGroups;
    Value count = b.mul(run.rows, group), tiles = b.div(b.add(count, rows - 1), rows);
    RowTiles{queries, tiles, b.idx(width / (2 * groups)), panelOfKeys(run, at)}.emit(
        b, scores, block, /*accumulate=*/false);
    auto load = [&](Value pair) {
      SmallVector<Value> own;
      for (int64_t v = 0; v < vectors; ++v)
        own.push_back(b.loadVector(scores, {pair, b.idx(v * kLanes)}));
      return own;
    };
    auto change = [&](auto function) {
      b.loop(b.idx(0), count, 1, [&](Value pair) {
        for (auto [v, score] : llvm::enumerate(function(pair, load(pair))))
          b.storeVector(score, scores, {pair, b.idx(v * kLanes)});
      });
    };
    if (spec.softcap || spec.slopes)
      change([&](Value pair, SmallVector<Value> own) { return shaped(run, at, pair, own); });
    b.when(at.onBorder, [&] {
      change([&](Value pair, SmallVector<Value> own) { return hide(at, pair, own); });
    });
    // Each pass over the pairs leaves them independent of each other for the next one.
    b.loop(b.idx(0), count, 1, [&](Value pair) {
      b.store(states.raiseMaximum(pair, load(pair), log2PerScore()), corrections, pair);
    });
    b.loop(b.idx(0), count, kLanes, [&](Value pair) {
      b.storeVector(emitExp2(b, b.loadVector(corrections, pair)), corrections, pair);
    });
    PackedPanel values = panelOfValues(run, at), scaled = panelOfScales(run, at);
    b.loop(b.idx(0), count, 1, [&](Value pair) {
      Value correction = b.broadcast(b.load(corrections, pair));
      weigh(scaled, pair, load(pair), correction, pair);
      b.loop(b.idx(0), b.idx(valuesOf(spec)), kLanes, [&](Value column) {
        states.storeSum(b.mulf(states.loadSum(pair, column), correction), pair, column);
      });
    });
    Value steps = b.div(b.add(at.liveGroups, groups - 1), groups);
    RowTiles{weights, tiles, steps, values}.emit(b, states.memory(), valuesOf(spec),
                                                 /*accumulate=*/true);
  }

  /// Of a score behind the soft-cap and the slopes, which are of scaled scores.
  float log2PerScore() const {
    bool isScaled = spec.softcap || spec.slopes;
    return static_cast<float>((isScaled ? 1 : spec.scale) * std::numbers::log2e);
  }

  /// Scores [pairs][vectors] of the pairs from `pair` on behind the soft-cap and the slopes.
  SmallVector<Value> shaped(const Run &run, const Block &at, Value pair, ArrayRef<Value> scores) {
    SmallVector<Value> result(scores);
    if (spec.softcap)
      llvm::transform(result, result.begin(), [&](Value score) { return cap(score); });
    if (!spec.slopes)
      return result;
    int64_t vectors = block / kLanes;
    for (auto [number, score] : llvm::enumerate(result)) {
      int64_t i = number / vectors, v = number % vectors;
      score = addDistance(run, score, b.add(pair, i), b.add(at.first, v * kLanes));
    }
    return result;
  }

  /// Scores [pairs][vectors] of the pairs from `pair` on, hidden where they are not seen.
  SmallVector<Value> hide(const Block &at, Value pair, ArrayRef<Value> scores) {
    SmallVector<Value> masked;
    Value hidden = b.splat(hiddenScore(log2PerScore())), position;
    for (auto [number, score] : llvm::enumerate(scores)) {
      int64_t vectors = block / kLanes, i = number / vectors, v = number % vectors;
      if (v == 0)
        position = b.loadIndex(seen, b.add(pair, i));
      masked.push_back(arith::SelectOp::create(b, seenFrom(position, b.add(at.first, v * kLanes)),
                                               score, hidden));
    }
    return masked;
  }

  /// Adds the weights of a pair's scores of a block to its softmax, and stores them, times what the
  /// values need, in row `row`. The scales of integers stand in `scaled`.
  void weigh(const PackedPanel &scaled, Value pair, ArrayRef<Value> scores, Value correction,
             Value row) {
    SmallVector<Value> found = states.addWeights(pair, scores, log2PerScore(), correction);
    for (auto [v, weight] : llvm::enumerate(found))
      weight = factorOf(weight, scaled, v * kLanes);
    if (weightLimbs)
      return weightLimbs->store(row, found);
    for (auto [v, weight] : llvm::enumerate(found))
      b.storeVector(weight, weights, {row, b.idx(v * kLanes)});
  }

  PackedPanel panelOfKeys(const Run &run, const Block &at) {
    PackedPanel panel = panelOf(b, kCache, {layer, run.sequence, run.head, at.number}, block,
                                spec.keys.getLayout().getDepth());
    panel.streams = at.streams;
    return panel;
  }
  PackedPanel panelOfValues(const Run &run, const Block &at) {
    if (spec.valuesInKeys)
      return {turned, b.idx(0), valuesOf(spec), spec.values.getLayout().getDepth()};
    PackedPanel panel = panelOf(b, vCache, {layer, run.sequence, run.head, at.number},
                                valuesOf(spec), spec.values.getLayout().getDepth());
    panel.streams = at.streams;
    return panel;
  }

  /// [elements / depth][positions][depth], a block of keys, becomes [positions / depth][elements]
  /// [depth], one of values: as far as rows see it, in whole steps of tile registers.
  void turnValues(const Run &run, const Block &at) {
    PackedPanel keys = panelOfKeys(run, at);
    keys.streams = {};
    int64_t depth = keys.depth, values = valuesOf(spec), step = 2 * kLanes;
    Value groups = b.add(at.liveGroups, step / depth - 1);
    Value live = b.mul(b.div(groups, step / depth), step);
    int64_t square = kLanes * depth, whole = values / square * square;
    b.loop(b.idx(0), live, kLanes, [&](Value position) {
      b.loop(b.idx(0), b.idx(whole), square,
             [&](Value element) { turnSquare(keys, position, element, square); });
      if (whole != values)
        turnSquare(keys, position, b.idx(whole), values - whole);
    });
  }

  /// 16 positions times `count` elements, up to 16 groups of them: a group is a word of 32 bits.
  void turnSquare(const PackedPanel &keys, Value position, Value element, int64_t count) {
    int64_t depth = keys.depth, values = valuesOf(spec);
    Type part = b.getIntegerType(32 / static_cast<unsigned>(depth));
    SmallVector<Value> words(kLanes, b.splatInt(0, b.getI32Type()));
    for (int64_t group = 0; group < count / depth; ++group) {
      Value row = b.mul(b.add(b.div(element, depth), group), block);
      Value at = b.add(keys.offset, b.mul(b.add(row, position), depth));
      words[group] = b.bitcast(b.loadRaw(keys.memory, at, kLanes * depth), b.getI32Type());
    }
    words = transposed(b, std::move(words));
    for (int64_t first = 0; first < kLanes; first += depth) {
      SmallVector<Value> together;
      for (int64_t i = 0; i < depth; ++i)
        together.push_back(b.bitcast(words[first + i], part));
      Value group = b.add(b.div(position, depth), first / depth);
      Value at = b.mul(b.add(b.mul(group, values), element), depth);
      Value row = b.bitcast(interleaved(b, together), b.elementOf(turned));
      if (count != kLanes * depth)
        row = vector::ExtractStridedSliceOp::create(b, row, ArrayRef<int64_t>{0}, count * depth,
                                                    ArrayRef<int64_t>{1});
      vector::StoreOp::create(b, row, turned, at);
    }
  }

  /// Where the scales of a block of values stand.
  PackedPanel panelOfScales(const Run &run, const Block &at) {
    return spec.valuesInKeys ? panelOfKeys(run, at) : panelOfValues(run, at);
  }

  /// What the values of 16 positions from `first` on are multiplied by: weights of the softmax,
  /// times the scales of integers.
  Value factorOf(Value weight, const PackedPanel &scaled, int64_t first) {
    Type element = spec.values.getElementType();
    if (isQuantized(element))
      return b.mulf(weight, loadScales(scaled, spec.valuesInKeys ? spec.keys : spec.values, first));
    // Rounded to what they meet, however they are stored: targets differ in the order of sums
    // alone.
    return b.toF32(b.fromF32(weight, element));
  }

  /// The scales of 16 positions from `first` on of a block of integers.
  Value loadScales(const PackedPanel &block, KvCacheType cache, int64_t first) {
    return b.loadFromBytes(block.memory, b.add(block.offset, cache.getScaleOffset(first)),
                           b.getF32Type());
  }

  /// Lanes of the vector of positions from `first` on that a row at `position` sees.
  Value seenFrom(Value position, Value first) {
    // Lane i is seen while first + i <= position, and, with a window, while first + i > position -
    // window.
    Value past = b.maskOf(b.sub(b.add(position, 1), first));
    if (!spec.window)
      return past;
    Value forgotten = b.maskOf(b.sub(b.sub(b.add(position, 1), b.idx(*spec.window)), first));
    Value all = arith::ConstantOp::create(b, DenseElementsAttr::get(b.vec(b.getI1Type()), true));
    return arith::AndIOp::create(b, past, arith::XOrIOp::create(b, forgotten, all));
  }

  /// The scaled score of 16 keys from `first` on, less the slope of the pair's head times their
  /// distance.
  Value addDistance(const Run &run, Value score, Value pair, Value first) {
    memref::GlobalOp slopes = spec.slopes;
    Value table = memref::GetGlobalOp::create(b, slopes.getType(), slopes.getSymName());
    Value slope = b.load(table, b.add(b.mul(run.part, group), b.rem(pair, group)));
    Value position = b.loadIndex(seen, pair);
    Value distance = arith::IndexCastOp::create(b, b.getI32Type(), b.sub(first, position));
    SmallVector<int32_t> lanes(kLanes);
    std::iota(lanes.begin(), lanes.end(), 0);
    Value steps = arith::ConstantOp::create(
        b, DenseElementsAttr::get(b.vec(b.getI32Type()), ArrayRef<int32_t>(lanes)));
    Value distances = arith::SIToFPOp::create(b, b.vecF32(), b.add(b.broadcast(distance), steps));
    if (!spec.softcap)
      score = b.mulf(score, b.splat(static_cast<float>(spec.scale)));
    return b.fma(distances, b.broadcast(slope), score);
  }

  Value cap(Value score) {
    Value limit = b.splat(static_cast<float>(*spec.softcap));
    Value share = b.mulf(score, b.splat(static_cast<float>(spec.scale / *spec.softcap)));
    return b.mulf(limit, math::TanhOp::create(b, share));
  }

  // The two places where a block of a cache meets the registers.

  /// How many vectors `count` rows of a product may have: accumulators leave half of the registers
  /// for what is multiplied, or a quarter where the two values of a pair are summed apart.
  int64_t vectorsFor(int64_t count, const std::optional<LimbRows> &limbs) const {
    int64_t accumulators = limbs ? LimbRows::kLimbs * count : inTileOrder ? 2 * count : count;
    return std::max<int64_t>(1, b.target.registers() / 2 / accumulators);
  }

  /// q k^T of `count` pairs with the block: [pairs][vectors of positions].
  SmallVector<Value> multiplyKeys(const Run &run, const Block &at, Value pair, int64_t count) {
    int64_t depth = spec.keys.getLayout().getDepth();
    PackedPanel panel = panelOfKeys(run, at);
    int64_t padded = roundUp(spec.keys.getHeadDim(), depth), vectors = block / kLanes;
    SmallVector<Value> scores(count * vectors);
    auto multiply = [&](Value position, int64_t together) {
      Value groups = b.idx(padded / depth);
      if (queryLimbs)
        return queryLimbs->multiply(panel, groups, pair, count, position, together);
      ProductTile tile{queries, padded, groups, /*partial=*/false, panel, position, together};
      for (int64_t i = 0; i < count; ++i)
        tile.rows.push_back({b.add(pair, i)});
      tile.asTiles = inTileOrder;
      return emitTile(b, tile);
    };
    for (int64_t first = 0; first < vectors;) {
      int64_t together = std::min(vectors - first, vectorsFor(count, queryLimbs));
      if (first > 0)
        panel.streams = {};
      SmallVector<Value> found = multiply(b.idx(first * kLanes), together);
      for (int64_t i = 0; i < count; ++i)
        llvm::copy(ArrayRef(found).slice(i * together, together),
                   scores.begin() + i * vectors + first);
      first += together;
    }
    if (isQuantized(spec.keys.getElementType()))
      for (int64_t v = 0; v < vectors; ++v) {
        Value scales = loadScales(panel, spec.keys, v * kLanes);
        for (int64_t i = 0; i < count; ++i)
          scores[i * vectors + v] = b.mulf(scores[i * vectors + v], scales);
      }
    return scores;
  }

  /// sums = sums * correction + weights * values of the block, as many columns at once as fit the
  /// registers.
  void addValues(PackedPanel panel, const Block &at, Value pair, ArrayRef<Value> corrections) {
    auto count = static_cast<int64_t>(corrections.size());
    auto addColumns = [&](Value column, int64_t vectors) {
      if (panel.streams)
        panel.streams = arith::AndIOp::create(b, at.streams, b.isEqual(column, b.idx(0)));
      SmallVector<Value> sums;
      for (int64_t i = 0; i < count; ++i)
        for (int64_t v = 0; v < vectors; ++v) {
          Value sum = states.loadSum(b.add(pair, i), b.add(column, v * kLanes));
          sums.push_back(b.mulf(sum, corrections[i]));
        }
      if (weightLimbs) {
        SmallVector<Value> added =
            weightLimbs->multiply(panel, at.liveGroups, b.idx(0), count, column, vectors);
        for (auto [sum, product] : llvm::zip_equal(sums, added))
          sum = b.addf(sum, product);
      } else {
        ProductTile tile{weights, block, at.liveGroups, /*partial=*/false, panel, column, vectors};
        for (int64_t i = 0; i < count; ++i)
          tile.rows.push_back({b.idx(i)});
        tile.inits = std::move(sums);
        tile.asTiles = inTileOrder;
        sums = emitTile(b, tile);
      }
      for (int64_t i = 0; i < count; ++i)
        for (int64_t v = 0; v < vectors; ++v)
          states.storeSum(sums[i * vectors + v], b.add(pair, i), b.add(column, v * kLanes));
    };
    int64_t vectors = valuesOf(spec) / kLanes,
            together = std::min(vectors, vectorsFor(count, weightLimbs));
    int64_t whole = vectors / together * together;
    b.loop(b.idx(0), b.idx(whole * kLanes), together * kLanes,
           [&](Value column) { addColumns(column, together); });
    if (whole != vectors)
      addColumns(b.idx(whole * kLanes), vectors - whole);
  }

  KernelBuilder &b;
  const AttentionSpec &spec;
  Chunks chunks;
  Value q, kCache, vCache, layer, sequences, positions;
  int64_t group, block;
  bool inTileOrder; ///< whether sums are made as tile registers make them
  bool inTiles;     ///< whether those do
  int64_t pairs;    ///< the most of a run, with room for whole tiles
  // On the stack.
  Value seen;                                      ///< the last position that a pair sees
  Value queries, weights;                          ///< where they are multiplied as floats
  Value scores, corrections;                       ///< f32 [pairs, block], [pairs]; with tiles
  Value turned;                                    ///< a block of values that stand in the keys
  std::optional<LimbRows> queryLimbs, weightLimbs; ///< where they meet bytes

public:
  SoftmaxStates states; ///< of the chunk at hand, one per pair
};

/// y[row, head] = the means of a state; `sinks` is null where there are none.
void storeMeans(KernelBuilder &b, const AttentionSpec &spec, SoftmaxStates &states, ValueRange at,
                Value sinks, Value y, Value row, Value head) {
  if (sinks)
    states.addScore(at, b.mulf(b.loadF32(sinks, head), b.f32(std::numbers::log2e_v<float>)));
  states.eachMean(at, spec.values.getHeadDim(), [&](Value column, Value live, Value mean) {
    b.storeVector(mean, y, {row, head, column}, live);
  });
}

Value isLess(KernelBuilder &b, Value x, Value y) {
  return arith::CmpIOp::create(b, arith::CmpIPredicate::ult, x, y);
}

/// Calls `body(first, rows)` for the runs among the rows [from, to).
void eachRun(KernelBuilder &b, ChunkEmitter &chunk, Value from, Value to,
             llvm::function_ref<void(Value, Value)> body) {
  b.hop(from, to, [&](Value first) {
    Value next = b.add(first, 1);
    Value end =
        b.carry(next, to, 1, next, [&](Value row, ValueRange carried) -> SmallVector<Value> {
          Value reached = b.isEqual(carried[0], row);
          Value more = arith::AndIOp::create(b, reached, chunk.continuesRun(row));
          return {arith::SelectOp::create(b, more, b.add(row, 1), carried[0])};
        })[0];
    body(first, b.sub(end, first));
    return end;
  });
}

/// The number of the tile that task `number` of `count` takes. Later tiles see more positions:
/// first and last ones alternate, so that any range of tasks is about the same work per task.
Value tileOfTask(KernelBuilder &b, Value number, Value count) {
  Value half = b.div(number, 2), fromEnd = b.sub(b.sub(count, b.idx(1)), half);
  Value even = b.isEqual(b.rem(number, 2), b.idx(0));
  return arith::SelectOp::create(b, even, half, fromEnd);
}

} // namespace

void mica::cpu::emitAttention(KernelBuilder &b, ValueRange args, const AttentionSpec &spec) {
  ChunkEmitter chunk(b, args, spec);
  SoftmaxStates whole = chunk.makeStates();
  Value rows = memref::DimOp::create(b, args[2], 0), y = args.back();
  Value sinks = spec.sinks ? args[8] : Value();
  int64_t ofTile = spec.tiling.getRows();
  Value tiles = b.div(b.add(rows, ofTile - 1), ofTile);
  b.loop(args[0], args[1], 1, [&](Value task) {
    Value part = arith::DivUIOp::create(b, task, tiles);
    Value tile = tileOfTask(b, arith::RemUIOp::create(b, task, tiles), tiles);
    Value from = b.mul(tile, ofTile);
    Value to = arith::MinUIOp::create(b, b.add(from, ofTile), rows);
    eachRun(b, chunk, from, to, [&](Value first, Value count) {
      Run run = chunk.begin(part, first, count);
      chunk.eachPair(run, [&](Value pair, Value, Value) { whole.clear(pair); });
      Chunks chunks(b, spec);
      b.loop(chunks.first(run.firstPosition), chunks.end(run.lastPosition), 1, [&](Value number) {
        chunk.emit(run, number);
        chunk.eachPair(run,
                       [&](Value pair, Value, Value) { whole.merge(pair, chunk.states, pair); });
      });
      chunk.eachPair(run, [&](Value pair, Value row, Value queryHead) {
        storeMeans(b, spec, whole, pair, sinks, y, row, queryHead);
      });
    });
  });
}

void mica::cpu::emitAttentionChunks(KernelBuilder &b, ValueRange args, const AttentionSpec &spec) {
  ChunkEmitter chunk(b, args, spec);
  Chunks chunks(b, spec);
  Value rows = memref::DimOp::create(b, args[2], 0), most = args[8], parts = args[args.size() - 2],
        y = args.back();
  Value sinks = spec.sinks ? args[9] : Value();
  SoftmaxStates partStates(b, parts, valuesOf(spec));
  b.loop(args[0], args[1], 1, [&](Value task) {
    // Rows are the innermost: those of one sequence read the same chunk one after the other.
    Value row = arith::RemUIOp::create(b, task, rows), rest = arith::DivUIOp::create(b, task, rows);
    Value number = arith::RemUIOp::create(b, rest, most);
    Value part = arith::DivUIOp::create(b, rest, most);
    Value position = chunk.positionOf(row), count = chunks.count(position);
    b.when(isLess(b, number, count), [&] {
      Run run = chunk.begin(part, row, b.idx(1));
      chunk.emit(run, b.add(chunks.first(position), number));
      Value several = isLess(b, b.idx(1), count);
      chunk.eachPair(run, [&](Value pair, Value, Value queryHead) {
        b.either(
            several, [&] { partStates.copyFrom({row, number, queryHead}, chunk.states, pair); },
            [&] { storeMeans(b, spec, chunk.states, pair, sinks, y, row, queryHead); });
      });
    });
  });
}

void mica::cpu::emitAttentionCombine(KernelBuilder &b, ValueRange args, const AttentionSpec &spec) {
  Value positions = args[2], parts = args[3], y = args.back();
  Value sinks = spec.sinks ? args[4] : Value();
  Chunks chunks(b, spec);
  SoftmaxStates partStates(b, parts, valuesOf(spec));
  SoftmaxStates whole(b, b.stackBuffer({spec.stateWidth()}, b.getF32Type()), valuesOf(spec));
  b.loop(args[0], args[1], 1, [&](Value task) {
    Value row = b.div(task, spec.heads), head = b.rem(task, spec.heads);
    Value count = chunks.count(b.loadIndex(positions, row));
    b.when(isLess(b, b.idx(1), count), [&] {
      whole.clear({});
      b.loop(b.idx(0), count, 1,
             [&](Value number) { whole.merge({}, partStates, {row, number, head}); });
      storeMeans(b, spec, whole, {}, sinks, y, row, head);
    });
  });
}

Value mica::cpu::emitChunkCount(KernelBuilder &b, Value position, const AttentionSpec &spec) {
  return Chunks(b, spec).count(position);
}
