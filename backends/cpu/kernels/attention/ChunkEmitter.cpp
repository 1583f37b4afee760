//===- ChunkEmitter.cpp - the softmax of a chunk of positions -------------===//

#include "backends/cpu/kernels/attention/ChunkEmitter.h"

#include "backends/cpu/features/InterleavedPages.h"
#include "backends/cpu/kernels/attention/CacheBlock.h"
#include "backends/cpu/kernels/attention/ValuesInKeys.h"
#include "backends/cpu/kernels/matmul/AmxTile.h"
#include "backends/cpu/kernels/matmul/Tile.h"

using namespace mlir;
using namespace mica;
using namespace mica::cpu;

ChunkEmitter::ChunkEmitter(KernelBuilder &b, ValueRange args, const AttentionSpec &spec)
    : b(b), spec(spec), chunks(b, spec), q(args[2]), kCache(args[3]), vCache(args[4]),
      layer(args[5]), sequences(args[6]), positions(args[7]), group(spec.headsOfTask()),
      block(spec.keys.getLayout().getBlock()), inTileOrder(b.target.tiles && fitsTiles()),
      inTiles(inTileOrder && spec.tiling.getRows() > 1),
      pairs(inTiles ? roundUp(spec.tiling.getRows() * group, RowTiles::kTileRows)
                    : spec.tiling.getRows() * group),
      seen(b.stackBuffer({pairs}, b.getI32Type())), shaping(b, spec, seen), states(makeStates()) {
  int64_t width = roundUp(spec.keys.getHeadDim(), kHeadDimUnit);
  if (usesInt8Dot(spec.keys))
    queryRows.emplace(b, pairs, width, HighLowRows::Signs::Both);
  else
    queries = b.stackBuffer({pairs, width}, factorType(spec.keys.getElementType()));
  int64_t together = inTiles ? pairs : kPairsOfTile;
  if (usesInt8Dot(spec.values))
    weightRows.emplace(b, together, block, HighLowRows::Signs::None);
  else
    weights = b.stackBuffer({together, block}, factorType(spec.values.getElementType()));
  if (spec.valuesInKeys)
    transposed = b.stackBuffer({block * valuesOf(spec)}, b.elementOf(kCache));
  if (inTiles) {
    scores = b.stackBuffer({pairs, block}, b.getF32Type());
    corrections = b.stackBuffer({pairs}, b.getF32Type());
  }
}

RowRun ChunkEmitter::begin(Value part, Value first, Value rows) {
  RowRun run{part,
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
    if (!queryRows)
      return b.eachVector(headDim, [&](Value column, Value live) {
        b.storeVector(load(column, live), queries, {pair, column});
      });
    SmallVector<Value> query;
    for (int64_t column = 0; column < headDim; column += kLanes)
      query.push_back(
          load(b.idx(column), column + kLanes <= headDim ? Value() : b.idx(headDim - column)));
    queryRows->store(pair, query);
  });
  return run;
}

void ChunkEmitter::eachPair(const RowRun &run, llvm::function_ref<void(Value, Value, Value)> body) {
  b.loop(b.idx(0), run.rows, 1, [&](Value r) {
    b.loop(group, [&](Value h) {
      body(b.add(b.mul(r, group), h), b.add(run.first, r), b.add(b.mul(run.part, group), h));
    });
  });
}

Value ChunkEmitter::continuesRun(Value row) {
  Value before = b.sub(row, b.idx(1)), from = positionOf(before), to = positionOf(row);
  auto holds = [&](arith::CmpIPredicate predicate, Value x, Value y) -> Value {
    return arith::CmpIOp::create(b, predicate, x, y);
  };
  using enum arith::CmpIPredicate;
  Value neighbors = arith::AndIOp::create(
      b, holds(eq, b.load(sequences, before), b.load(sequences, row)), holds(sle, from, to));
  return arith::AndIOp::create(b, neighbors, holds(eq, chunks.size(from), chunks.size(to)));
}

void ChunkEmitter::emit(const RowRun &run, Value number) {
  eachPair(run, [&](Value pair, Value, Value) { states.clear(pair); });
  Value begin = arith::MulIOp::create(b, number, run.chunkSize);
  Value end = arith::MinUIOp::create(b, b.add(begin, run.chunkSize), b.add(run.lastPosition, 1));
  begin = arith::MaxUIOp::create(b, begin, chunks.firstSeen(run.firstPosition));
  b.loop(b.div(begin, block), b.div(b.add(end, block - 1), block), 1, [&](Value blockNumber) {
    PositionBlock at = blockAt(run, blockNumber);
    if (spec.valuesInKeys)
      transposeValuesOf(run, at);
    if (inTiles)
      return emitBlockInTiles(run, at);
    eachPairTile(run, [&](Value pair, int64_t count) {
      at.streams = streamsAt(run, at, pair);
      emitBlock(run, at, pair, count);
    });
  });
}

bool ChunkEmitter::fitsTiles() const {
  constexpr int64_t step = 2 * kTileGroups;
  return b.elementOf(q).isBF16() && spec.keys.getElementType().isBF16() &&
         spec.values.getElementType().isBF16() && block % step == 0 &&
         roundUp(spec.keys.getHeadDim(), kHeadDimUnit) % step == 0;
}

Type ChunkEmitter::factorType(Type element) const {
  bool fast = inTiles || (b.target.bf16Dot && b.target.fastBf16Dot && !inTileOrder);
  return element.isBF16() && fast ? element : b.getF32Type();
}

PositionBlock ChunkEmitter::blockAt(const RowRun &run, Value number) {
  Value first = b.mul(number, block);
  int64_t depth = spec.values.getLayout().getDepth();
  Value live = arith::MinUIOp::create(b, b.sub(b.add(run.lastPosition, 1), first), b.idx(block));
  Value needsMask = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, run.firstPosition,
                                          b.add(first, block - 1));
  if (spec.window)
    needsMask = arith::OrIOp::create(b, needsMask,
                                     arith::CmpIOp::create(b, arith::CmpIPredicate::ult, first,
                                                           chunks.firstSeen(run.lastPosition)));
  Value inValues = spec.valuesInKeys ? Value() : indexOfBlock(b, vCache, spec.values, number);
  return {indexOfBlock(b, kCache, spec.keys, number), inValues, first,
          b.div(b.add(live, depth - 1), depth), needsMask};
}

Value ChunkEmitter::streamsAt(const RowRun &run, const PositionBlock &at, Value pair) {
  if (!b.target.prefetchPages || spec.tiling.getRows() > 1)
    return {};
  // The prefetched addresses must contain positions.
  KvCacheType keys = spec.keys;
  Type element = isQuantized(keys.getElementType()) ? b.getI8Type() : keys.getElementType();
  int64_t blockBytes = keys.getPhysicalShape().back() * element.getIntOrFloatBitWidth() / 8;
  int64_t positions = rt::interleaved_pages::chunk * block / blockBytes;
  Value more = arith::CmpIOp::create(b, arith::CmpIPredicate::ule, b.add(at.first, positions),
                                     run.lastPosition);
  return arith::AndIOp::create(b, more, b.isEqual(pair, b.idx(0)));
}

void ChunkEmitter::eachPairTile(const RowRun &run, llvm::function_ref<void(Value, int64_t)> body) {
  auto tiles = [&](Value from, Value to, int64_t count) {
    b.loop(from, to, count, [&](Value pair) { body(pair, count); });
  };
  if (spec.tiling.getRows() > 1) {
    Value all = b.mul(run.rows, group), whole = b.mul(b.div(all, kPairsOfTile), kPairsOfTile);
    tiles(b.idx(0), whole, kPairsOfTile);
    return tiles(whole, all, 1);
  }
  // A single row: as few tiles as possible, of about the same size.
  int64_t count = roundUp(group, kPairsOfTile) / kPairsOfTile, smaller = group / count,
          numLarger = group % count;
  Value end = b.idx(numLarger * (smaller + 1));
  if (numLarger)
    tiles(b.idx(0), end, smaller + 1);
  tiles(end, b.idx(group), smaller);
}

void ChunkEmitter::emitBlock(const RowRun &run, const PositionBlock &at, Value pair,
                             int64_t count) {
  int64_t vectors = block / kLanes;
  SmallVector<Value> corrections,
      scores = shaping.shaped(run.part, at, pair, multiplyKeys(run, at, pair, count));
  scores = b.changeWhen(at.needsMask, scores, [&] { return shaping.hide(at, pair, scores); });
  PackedPanel values = panelOfValues(run, at), scaled = panelOfScales(run, at);
  for (int64_t i = 0; i < count; ++i) {
    ArrayRef<Value> own = ArrayRef(scores).slice(i * vectors, vectors);
    Value drop = states.raiseMaximum(b.add(pair, i), own, shaping.log2PerScore());
    corrections.push_back(emitExp2(b, b.broadcast(drop)));
    accumulateWeights(scaled, b.add(pair, i), own, corrections.back(), b.idx(i));
  }
  addValues(values, at, pair, corrections);
}

void ChunkEmitter::emitBlockInTiles(const RowRun &run, const PositionBlock &at) {
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
    change([&](Value pair, SmallVector<Value> own) {
      return shaping.shaped(run.part, at, pair, own);
    });
  b.when(at.needsMask, [&] {
    change([&](Value pair, SmallVector<Value> own) { return shaping.hide(at, pair, own); });
  });
  // In each pass over the pairs, iterations are independent of each other.
  b.loop(b.idx(0), count, 1, [&](Value pair) {
    b.store(states.raiseMaximum(pair, load(pair), shaping.log2PerScore()), corrections, pair);
  });
  b.loop(b.idx(0), count, kLanes, [&](Value pair) {
    b.storeVector(emitExp2(b, b.loadVector(corrections, pair)), corrections, pair);
  });
  PackedPanel values = panelOfValues(run, at), scaled = panelOfScales(run, at);
  b.loop(b.idx(0), count, 1, [&](Value pair) {
    Value correction = b.broadcast(b.load(corrections, pair));
    accumulateWeights(scaled, pair, load(pair), correction, pair);
    b.loop(b.idx(0), b.idx(valuesOf(spec)), kLanes, [&](Value column) {
      states.storeSum(b.mulf(states.loadSum(pair, column), correction), pair, column);
    });
  });
  Value steps = b.div(b.add(at.liveGroups, groups - 1), groups);
  RowTiles{weights, tiles, steps, values}.emit(b, states.memory(), valuesOf(spec),
                                               /*accumulate=*/true);
}

void ChunkEmitter::accumulateWeights(const PackedPanel &scaled, Value pair, ArrayRef<Value> scores,
                                     Value correction, Value row) {
  SmallVector<Value> found = states.addWeights(pair, scores, shaping.log2PerScore(), correction);
  for (auto [v, weight] : llvm::enumerate(found))
    weight = factorOf(weight, scaled, v * kLanes);
  if (weightRows)
    return weightRows->store(row, found);
  for (auto [v, weight] : llvm::enumerate(found))
    b.storeVector(weight, weights, {row, b.idx(v * kLanes)});
}

PackedPanel ChunkEmitter::panelOfKeys(const RowRun &run, const PositionBlock &at) {
  PackedPanel panel = panelOf(b, kCache, {layer, run.sequence, run.head, at.inKeys}, block,
                              spec.keys.getLayout().getDepth());
  panel.streams = at.streams;
  return panel;
}

PackedPanel ChunkEmitter::panelOfValues(const RowRun &run, const PositionBlock &at) {
  if (spec.valuesInKeys)
    return {transposed, b.idx(0), valuesOf(spec), spec.values.getLayout().getDepth()};
  PackedPanel panel = panelOf(b, vCache, {layer, run.sequence, run.head, at.inValues},
                              valuesOf(spec), spec.values.getLayout().getDepth());
  panel.streams = at.streams;
  return panel;
}

void ChunkEmitter::transposeValuesOf(const RowRun &run, const PositionBlock &at) {
  PackedPanel keys = panelOfKeys(run, at);
  keys.streams = {};
  transposeValues(b, keys, at.liveGroups, transposed, valuesOf(spec));
}

Value ChunkEmitter::factorOf(Value weight, const PackedPanel &scaled, int64_t first) {
  Type element = spec.values.getElementType();
  if (isQuantized(element))
    return b.mulf(weight, loadScales(scaled, spec.valuesInKeys ? spec.keys : spec.values, first));
  // Rounded to the element type of the values, whatever their storage, so that targets differ only
  // in the order of sums.
  return b.toF32(b.fromF32(weight, element));
}

Value ChunkEmitter::loadScales(const PackedPanel &block, KvCacheType cache, int64_t first) {
  return b.loadFromBytes(block.memory, b.add(block.offset, cache.getScaleOffset(first)),
                         b.getF32Type());
}

int64_t ChunkEmitter::vectorsFor(int64_t count, const std::optional<HighLowRows> &rows) const {
  int64_t accumulators = rows ? HighLowRows::kHalves * count : inTileOrder ? 2 * count : count;
  return std::max<int64_t>(1, b.registers() / 2 / accumulators);
}

SmallVector<Value> ChunkEmitter::multiplyKeys(const RowRun &run, const PositionBlock &at,
                                              Value pair, int64_t count) {
  int64_t depth = spec.keys.getLayout().getDepth();
  PackedPanel panel = panelOfKeys(run, at);
  int64_t padded = roundUp(spec.keys.getHeadDim(), depth), vectors = block / kLanes;
  SmallVector<Value> scores(count * vectors);
  auto multiply = [&](Value position, int64_t together) {
    Value groups = b.idx(padded / depth);
    if (queryRows)
      return queryRows->multiply(panel, groups, pair, count, position, together);
    ProductTile tile{queries, padded, groups, /*partial=*/false, panel, position, together};
    for (int64_t i = 0; i < count; ++i)
      tile.rows.push_back({b.add(pair, i)});
    tile.asTiles = inTileOrder;
    return emitProductTile(b, tile);
  };
  for (int64_t first = 0; first < vectors;) {
    int64_t together = std::min(vectors - first, vectorsFor(count, queryRows));
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

void ChunkEmitter::addValues(PackedPanel panel, const PositionBlock &at, Value pair,
                             ArrayRef<Value> corrections) {
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
    if (weightRows) {
      SmallVector<Value> added =
          weightRows->multiply(panel, at.liveGroups, b.idx(0), count, column, vectors);
      for (auto [sum, product] : llvm::zip_equal(sums, added))
        sum = b.addf(sum, product);
    } else {
      ProductTile tile{weights, block, at.liveGroups, /*partial=*/false, panel, column, vectors};
      for (int64_t i = 0; i < count; ++i)
        tile.rows.push_back({b.idx(i)});
      tile.inits = std::move(sums);
      tile.asTiles = inTileOrder;
      sums = emitProductTile(b, tile);
    }
    for (int64_t i = 0; i < count; ++i)
      for (int64_t v = 0; v < vectors; ++v)
        states.storeSum(sums[i * vectors + v], b.add(pair, i), b.add(column, v * kLanes));
  };
  int64_t vectors = valuesOf(spec) / kLanes,
          together = std::min(vectors, vectorsFor(count, weightRows));
  int64_t whole = vectors / together * together;
  b.loop(b.idx(0), b.idx(whole * kLanes), together * kLanes,
         [&](Value column) { addColumns(column, together); });
  if (whole != vectors)
    addColumns(b.idx(whole * kLanes), vectors - whole);
}
