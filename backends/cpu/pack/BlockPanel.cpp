//===- BlockPanel.cpp - panels of block-quantized weights -----------------===//

#include "backends/cpu/pack/BlockPanel.h"

#include "backends/cpu/pack/Elements.h"
#include "backends/cpu/pack/TransposeLanes.h"
#include "ir/Quantize/Quantize.h"
#include "ir/Quantize/ScaleRange.h"

using namespace mlir;

namespace mica::cpu {

namespace {

/// Writes a plane of a chunk: bits [down, down + width) of each code, as lines of [64][4] bytes at
/// `lineAt`. `codes` are those of 64 rows, [64][32].
void packPlane(const uint8_t *codes, int64_t width, int64_t down,
               llvm::function_ref<uint8_t *(int64_t)> lineAt) {
  constexpr int64_t kChunk = PackedBlocks::kChunk;
  if (width == 0)
    return;
  int64_t perByte = 8 / width, lineBytes = kChunk / perByte;
  auto mask = static_cast<uint8_t>((1 << width) - 1);
  std::array<uint8_t, kTileRows * kChunk> lanes{};
  for (int64_t row = 0; row < kTileRows; ++row)
    for (int64_t i = 0; i < kChunk; ++i) {
      int64_t quad = i / 4;
      lanes[row * lineBytes + quad / perByte * 4 + i % 4] |= static_cast<uint8_t>(
          (codes[row * kChunk + i] >> down & mask) << width * (quad % perByte));
    }
  std::array<uint8_t, kTileRows * kChunk> lines;
  transposeLanes(lanes.data(), lineBytes, width, lines.data());
  for (int64_t line = 0; line < width; ++line)
    std::memcpy(lineAt(line), &lines[line * PackedBlocks::kLineBytes], PackedBlocks::kLineBytes);
}

/// Packs blocks of 64 rows.
class BlockPacker {
public:
  explicit BlockPacker(const BlockFormat &format)
      : format(format), packed(format), parts(kTileRows) {}

  /// Packs a block of 64 rows and writes `chunks` chunks of it. Null rows are zeros. Returns
  /// false if a scale is not finite.
  bool pack(ArrayRef<const uint8_t *> blocks, int64_t chunks, uint8_t *out) {
    bool finite = true;
    for (auto [part, block] : llvm::zip_equal(parts, blocks)) {
      part = {};
      if (block)
        splitBlock(format, block, part);
      else
        llvm::fill(part.codes, static_cast<uint8_t>(format.levels ? 0 : format.bias));
      finite &= scaleRangeOf(format, part) == ScaleRange::Finite;
    }
    for (int64_t row = 0; row < kTileRows; ++row) {
      storeScale(parts[row].scale, out + row * packed.scaleBytes);
      if (format.hasOffsets())
        storeScale(parts[row].offset, out + packed.offsetAt + row * packed.scaleBytes);
    }
    out += packed.headerBytes;
    for (int64_t chunk = 0; chunk < chunks; ++chunk, out += packed.chunkBytes)
      packChunk(chunk, out);
    return finite;
  }

private:
  void storeScale(uint16_t bits, uint8_t *out) const {
    out[0] = static_cast<uint8_t>(bits);
    if (packed.scaleBytes == 2)
      out[1] = static_cast<uint8_t>(bits >> 8);
  }

  void packChunk(int64_t chunk, uint8_t *out) const {
    constexpr int64_t kChunk = PackedBlocks::kChunk;
    std::array<uint8_t, kTileRows * kChunk> codes;
    for (int64_t row = 0; row < kTileRows; ++row) {
      const BlockParts &part = parts[row];
      std::memcpy(&codes[row * kChunk], part.codes + chunk * kChunk, kChunk);
      for (int64_t group = 0; group < packed.groups; ++group) {
        int64_t index = chunk * packed.groups + group, at = group * kTileRows + row;
        auto scale = static_cast<uint8_t>(part.scales[index]),
             offset = static_cast<uint8_t>(part.offsets[index]);
        if (format.subScaleType == SubScaleType::Nibbles) {
          out[at] = static_cast<uint8_t>(scale | offset << 4);
          continue;
        }
        out[at] = scale;
        if (format.hasOffsets())
          out[packed.subOffsetAt + at] = offset;
      }
    }
    packPlane(codes.data(), format.low.width, 0,
              [&](int64_t line) { return out + packed.lowLineAt(line); });
    packPlane(codes.data(), format.high.width, format.low.width,
              [&](int64_t line) { return out + packed.highLineAt(line); });
  }

  const BlockFormat &format;
  PackedBlocks packed;
  std::vector<BlockParts> parts; ///< of 64 rows
};

/// The importance of columns that are multiplied by factors, by which the activations were divided.
class ScaledImportance {
public:
  explicit ScaledImportance(int64_t columns) : columns(columns) {}

  /// Valid until the next call.
  ArrayRef<float> of(const SourceRow &row) {
    if (!row.importance || !row.factors)
      return {row.importance, row.importance ? static_cast<size_t>(columns) : 0};
    if (row.importance != from || row.factors != factors) {
      from = row.importance;
      factors = row.factors;
      scaled.resize(columns);
      for (int64_t i = 0; i < columns; ++i)
        scaled[i] = from[i] / (factors[i] * factors[i]);
    }
    return scaled;
  }

private:
  int64_t columns;
  const float *from = nullptr, *factors = nullptr;
  std::vector<float> scaled;
};

} // namespace

bool packBlocks(const PackPlan &plan, int64_t matrix, int64_t firstRow, uint8_t *out) {
  const BlockFormat &format = *plan.blocks();
  PackedBlocks packed(format);
  BlockPacker packer(format);
  std::array<SourceRow, kTileRows> rows{};
  for (int64_t row = 0; row < std::min(kTileRows, plan.rows - firstRow); ++row)
    rows[row] = plan.rowOf(matrix, firstRow + row);
  // Unquantized rows are first quantized to whole blocks.
  int64_t blocks = llvm::divideCeil(plan.columns, format.elements),
          rowBytes = blocks * format.bytes;
  bool finite = true;
  std::vector<uint8_t> quantized;
  if (format.isOwn) {
    quantized.resize(kTileRows * rowBytes);
    std::vector<float> values(plan.columns), scratch(plan.columns);
    ScaledImportance importance(plan.columns);
    for (auto [index, row] : llvm::enumerate(rows)) {
      SourceRow source = withoutBlocks(plan, row, scratch.data());
      if (!source.bytes)
        continue;
      convertRow(source, 0, plan.columns, reinterpret_cast<uint8_t *>(values.data()),
                 WeightType::F32);
      uint8_t *into = quantized.data() + index * rowBytes;
      finite &=
          quantizeBlocks(format, values, importance.of(source), MutableArrayRef(into, rowBytes));
      row.bytes = into;
    }
  }
  int64_t chunks = llvm::divideCeil(plan.columns, PackedBlocks::kChunk);
  for (int64_t block = 0; block < blocks; ++block, chunks -= packed.chunks) {
    std::array<const uint8_t *, kTileRows> starts{};
    for (auto [start, row] : llvm::zip_equal(starts, rows))
      start = row.bytes ? row.bytes + block * format.bytes : nullptr;
    finite &= packer.pack(starts, std::min(chunks, packed.chunks), out + block * packed.blockBytes);
  }
  return finite;
}

} // namespace mica::cpu
