//===- BlockReader.cpp - packed blocks in registers -----------------------===//

#include "backends/cpu/kernels/matmul/BlockReader.h"
#include "backends/cpu/kernels/matmul/Prefetch.h"
#include "backends/cpu/layout/LaneDepth.h"

using namespace mlir;
using namespace mica;
using namespace mica::cpu;

BlockReader::BlockReader(KernelBuilder &b, const PackedPanel &panel)
    : format(*panel.blocks), packed(format), b(b), memory(panel.memory), offset(panel.offset) {}

Value BlockReader::blockAt(Value block) const {
  return b.add(offset, b.mul(block, packed.blockBytes));
}

Value BlockReader::chunkAt(Value block, Value chunk) const {
  return b.add(b.add(block, packed.headerBytes), b.mul(chunk, packed.chunkBytes));
}

void BlockReader::prefetchHeader(Value block) const {
  prefetchBlocks(b, memory, block, packed.headerBytes);
}

void BlockReader::prefetchChunk(Value chunk) const {
  prefetchBlocks(b, memory, chunk, packed.chunkBytes);
}

Value BlockReader::load(Value at, Type element) const {
  return b.loadFromBytes(memory, at, element);
}

Value BlockReader::loadHeader(Value at) const {
  Type i32 = b.getI32Type();
  switch (format.scaleType) {
  case ScaleType::F16:
    return b.toF32(load(at, b.getF16Type()));
  case ScaleType::BF16:
    return b.toF32(load(at, b.getBF16Type()));
  case ScaleType::E8M0Half: {
    // 2^(e - 128): the two smallest are subnormal.
    Value e = arith::ExtUIOp::create(b, b.vec(i32), load(at, b.getI8Type()));
    Value normal = arith::ShLIOp::create(b, b.sub(e, b.splatInt(1, i32)), b.splatInt(23, i32));
    Value subnormal = arith::ShLIOp::create(b, b.splatInt(0x00200000, i32), e);
    Value isSmall = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, e, b.splatInt(2, i32));
    return b.bitcast(arith::SelectOp::create(b, isSmall, subnormal, normal), b.getF32Type());
  }
  }
  llvm_unreachable("all types of scales are handled above");
}

Value BlockReader::loadScales(Value block, Value column) const {
  return loadHeader(b.add(block, b.mul(column, packed.scaleBytes)));
}

Value BlockReader::loadOffsets(Value block, Value column) const {
  if (!format.hasOffsets())
    return {};
  Value offsets =
      loadHeader(b.add(b.add(block, packed.offsetAt), b.mul(column, packed.scaleBytes)));
  return format.offsetSign > 0 ? offsets : arith::NegFOp::create(b, offsets).getResult();
}

Value BlockReader::loadSubScales(Value chunk, Value column, int64_t group, bool ofOffsets) const {
  Type i8 = b.getI8Type(), i32 = b.getI32Type();
  bool nibbles = format.subScaleType == SubScaleType::Nibbles;
  int64_t at = group * PackedBlocks::kColumns + (ofOffsets && !nibbles ? packed.subOffsetAt : 0);
  Value bytes = load(b.add(b.add(chunk, at), column), i8);
  if (!nibbles)
    return b.toF32(arith::ExtSIOp::create(b, b.vec(i32), bytes));
  Value words = arith::ExtUIOp::create(b, b.vec(i32), bytes);
  return b.toF32(ofOffsets ? arith::ShRUIOp::create(b, words, b.splatInt(4, i32)).getResult()
                           : arith::AndIOp::create(b, words, b.splatInt(15, i32)).getResult());
}

Value BlockReader::stepOf(Value scales, Value chunk, Value column, int64_t group) const {
  if (!format.hasSubScales())
    return scales;
  return b.mulf(scales, loadSubScales(chunk, column, group, /*ofOffsets=*/false));
}

Value BlockReader::offsetOf(Value offsets, Value chunk, Value column, int64_t group) const {
  if (!offsets || !format.hasSubScales())
    return offsets;
  return b.mulf(offsets, loadSubScales(chunk, column, group, /*ofOffsets=*/true));
}

BlockReader::Lines BlockReader::linesOf(Value chunk, Value column) const {
  return {b.add(chunk, b.mul(column, 4)), SmallVector<Value>(format.low.width),
          SmallVector<Value>(format.high.width)};
}

/// Loads a quad's bits of a plane, shifted left by `up` bits in their bytes.
Value BlockReader::loadPlane(Lines &lines, bool isHigh, int64_t quad, int64_t up) const {
  Type i32 = b.getI32Type();
  const CodePlane &plane = isHigh ? format.high : format.low;
  int64_t perByte = 8 / plane.width, mask = ((1 << plane.width) - 1) << up, line = quad / perByte;
  Value &loaded = (isHigh ? lines.high : lines.low)[line];
  if (!loaded)
    loaded =
        load(b.add(lines.begin, isHigh ? packed.highLineAt(line) : packed.lowLineAt(line)), i32);
  Value bits = loaded;
  if (int64_t shift = plane.width * (quad % perByte) - up; shift > 0)
    bits = arith::ShRUIOp::create(b, bits, b.splatInt(shift, i32));
  else if (shift < 0)
    bits = arith::ShLIOp::create(b, bits, b.splatInt(-shift, i32));
  if (plane.width == 8)
    return bits;
  return arith::AndIOp::create(b, bits, b.splatInt(static_cast<int32_t>(mask * 0x01010101), i32));
}

Value BlockReader::loadCodes(Lines &lines, int64_t quad) const {
  // The high plane first, in the order of its lines.
  Value high;
  if (format.high.width != 0)
    high = loadPlane(lines, /*isHigh=*/true, quad, format.low.width);
  Value codes = loadPlane(lines, /*isHigh=*/false, quad, 0);
  if (high)
    codes = arith::OrIOp::create(b, codes, high);
  return b.bitcast(codes, b.getI8Type());
}

Value BlockReader::lookUpLevels(Value codes, int64_t added) const {
  return b.lookUp(codes, ArrayRef(format.levels, 16), added);
}

Value BlockReader::loadQuad(Lines &lines, int64_t quad) const {
  Value codes = loadCodes(lines, quad);
  return format.levels ? lookUpLevels(codes, format.unsignedBias()) : codes;
}

Value BlockReader::loadLevels(Lines &lines, int64_t quad) const {
  Value codes = loadCodes(lines, quad);
  // Tables contain signed levels, so there is no bias to subtract.
  if (format.levels)
    return lookUpLevels(codes, /*added=*/0);
  if (!isSigned())
    return codes;
  return b.sub(codes,
               b.splatInt(static_cast<int8_t>(format.unsignedBias()), b.getI8Type(), 4 * kLanes));
}

void BlockReader::eachElement(Value scales, Value offsets, Value chunk, Value column,
                              llvm::function_ref<void(int64_t, Value)> take) const {
  int64_t groups = groupsOfChunk();
  SmallVector<Value> steps, shifts;
  for (int64_t group = 0; group < groups; ++group) {
    steps.push_back(stepOf(scales, chunk, column, group));
    shifts.push_back(offsetOf(offsets, chunk, column, group));
  }
  Lines lines = linesOf(chunk, column);
  for (int64_t quad = 0; quad < PackedBlocks::kQuads; ++quad) {
    SmallVector<Value> levels = b.splitBytes(loadLevels(lines, quad), isSigned());
    int64_t group = quad * groups / PackedBlocks::kQuads;
    for (int64_t byte = 0; byte < 4; ++byte) {
      Value value = b.mulf(b.toF32(levels[byte]), steps[group]);
      if (shifts[group])
        value = b.addf(value, shifts[group]);
      take(4 * quad + byte, value);
    }
  }
}

void mica::cpu::expandBlocks(KernelBuilder &b, const PackedPanel &panel, int64_t k, Value from,
                             Value to, Value buffer, Value at) {
  constexpr int64_t kChunk = PackedBlocks::kChunk, kColumns = PackedBlocks::kColumns;
  BlockReader reader(b, panel);
  Type element = b.elementOf(buffer);
  int64_t depth = laneDepth(element), chunks = llvm::divideCeil(k, kChunk);
  // Expands 16 columns of a chunk of a block; elements starting at `live` are zero.
  auto expand = [&](Value block, Value begin, Value target, Value chunk, int64_t live) {
    for (int64_t column = 0; column < kColumns; column += kLanes) {
      Value first = b.idx(column);
      Value scales = reader.loadScales(begin, first), offsets = reader.loadOffsets(begin, first);
      Value chunkAt = reader.chunkAt(begin, chunk), even;
      int64_t end = expandedColumns(live, depth);
      reader.eachElement(scales, offsets, chunkAt, first, [&](int64_t i, Value values) {
        if (i >= end)
          return;
        if (i >= live)
          values = b.splat(0);
        if (depth == 2 && i % 2 == 0) {
          even = values;
          return;
        }
        if (depth == 2)
          values = b.pairsOfBf16(even, values);
        Value place = b.add(target, ((i / depth) * kColumns + column) * depth);
        b.storeVector(values, buffer, place);
      });
    }
  };
  int64_t perBlock = reader.packed.chunks, blockSize = perBlock * kChunk * kColumns;
  b.loop(from, to, 1, [&](Value block) {
    Value begin = reader.blockAt(block);
    Value target = b.add(at, b.mul(b.sub(block, from), blockSize));
    Value whole = b.sub(b.idx(k / kChunk), b.mul(block, perBlock));
    whole = arith::MinSIOp::create(b, whole, b.idx(perBlock));
    b.loop(b.idx(0), whole, 1, [&](Value chunk) {
      expand(block, begin, b.add(target, b.mul(chunk, kChunk * kColumns)), chunk, kChunk);
    });
    if (k % kChunk == 0)
      return;
    // The row ends within its last chunk.
    b.when(b.isEqual(block, b.idx((chunks - 1) / perBlock)), [&] {
      Value chunk = b.idx((chunks - 1) % perBlock);
      expand(block, begin, b.add(target, b.mul(chunk, kChunk * kColumns)), chunk, k % kChunk);
    });
  });
}
