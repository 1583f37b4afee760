//===- IntegerPanel.cpp - some rows as integers, packed -------------------===//

#include "backends/cpu/pack/IntegerPanel.h"

#include "backends/cpu/pack/Panel.h"
#include "backends/cpu/pack/Tile.h"
#include "ir/Mica/Quantize.h"

#include <cmath>
#include <numeric>

using namespace mlir;

namespace mica::cpu {

RowTails::RowTails(const PackPlan &plan)
    : rows(plan.tailBytes() > 0 ? plan.integers().blocks * kBlockColumns : 0),
      scales(plan.matrices * rows), sums(plan.matrices * rows) {}

void RowTails::write(int64_t matrix, uint8_t *out) const {
  size_t bytes = rows * sizeof(float);
  std::memcpy(out, scales.data() + matrix * rows, bytes);
  std::memcpy(out + bytes, sums.data() + matrix * rows, bytes);
}

namespace {

/// The scale of a row and what the sum of its packed integers is.
struct RowTail {
  float scale;
  int32_t sum;
};

/// Rows of !mica.int8: [64][k, padded], a lane is 4 values.
class Int8Rows {
public:
  explicit Int8Rows(const QuantizedMatrix &parts) : stride(parts.padded), q(kTileRows * stride) {}

  RowTail set(int64_t row, ArrayRef<float> values) {
    MutableArrayRef<int8_t> integers(q.data() + row * stride, values.size());
    float scale = quantizeInt8(values, integers);
    return {scale, std::accumulate(integers.begin(), integers.end(), int32_t(0))};
  }

  void write(uint8_t *out) const {
    const auto *bytes = reinterpret_cast<const uint8_t *>(q.data());
    for (int64_t lane = 0; lane < stride / 4; lane += kTileLanes)
      transposeLanes(bytes + lane * 4, stride, kTileLanes, out + lane * kTileRows * 4);
  }

private:
  int64_t stride;
  std::vector<int8_t> q;
};

/// Rows of !mica.int4: a group of 32 values is 4 lanes of 8, and a multiplier.
class Int4Rows {
public:
  explicit Int4Rows(const QuantizedMatrix &parts)
      : groups(parts.padded / kGroup), groupBytes(parts.groupBytes), q(parts.padded),
        multipliers(groups, 1), halves(kTileRows * groups * kGroup / 2, 0x88),
        columns(groups * kTileRows, 1) {}

  RowTail set(int64_t row, ArrayRef<float> values) {
    std::fill(q.begin() + values.size(), q.end(), 8);
    float scale = quantizeInt4(
        values, MutableArrayRef(q).take_front(values.size()),
        MutableArrayRef(multipliers).take_front(roundUp(values.size(), kGroup) / kGroup));
    int32_t sum = 0;
    for (int64_t group = 0; group < groups; ++group) {
      const uint8_t *values = q.data() + group * kGroup;
      sum +=
          multipliers[group] * (std::accumulate(values, values + kGroup, 0) - 8 * int32_t(kGroup));
      columns[group * kTileRows + row] = multipliers[group];
      uint8_t *lanes = halves.data() + (row * groups + group) * kGroup / 2;
      for (int64_t lane = 0; lane < kGroup / 8; ++lane)
        for (int64_t i = 0; i < 4; ++i)
          lanes[4 * lane + i] = values[8 * lane + i] | values[8 * lane + 4 + i] << 4;
    }
    return {scale, sum};
  }

  void write(uint8_t *out) const {
    for (int64_t group = 0; group < groups; ++group, out += groupBytes) {
      std::memcpy(out, columns.data() + group * kTileRows, kTileRows);
      transposeLanes(halves.data() + group * kGroup / 2, groups * kGroup / 2, kGroup / 8,
                     out + kTileRows);
    }
  }

private:
  static constexpr int64_t kGroup = QuantizedRow::group;

  int64_t groups, groupBytes;
  std::vector<uint8_t> q;
  std::vector<int8_t> multipliers; ///< of the row that is being set
  std::vector<uint8_t> halves;     ///< [64][groups][16]
  std::vector<int8_t> columns;     ///< multipliers, [groups][64]
};

/// The integers of 32 values times 64 rows as lanes of 8 values of 4 bits each, or of 4 bytes.
template <bool fourBits> void packBlock(const int8_t *integers, uint8_t *lanes) {
  constexpr int64_t kGroup = BlockRow::group;
  if constexpr (!fourBits) {
    for (int64_t i = 0; i < kGroup; ++i)
      lanes[i] = static_cast<uint8_t>(integers[i] + 128);
    return;
  }
  auto nibble = [&](int64_t i) { return integers[i] + 8; };
  for (int64_t lane = 0; lane < kGroup / 8; ++lane)
    for (int64_t i = 0; i < 4; ++i)
      lanes[4 * lane + i] =
          static_cast<uint8_t>(nibble(8 * lane + i) | nibble(8 * lane + 4 + i) << 4);
}

/// Rows of !mica.block_int: blocks are taken apart, nothing is computed.
template <bool fourBits>
bool packBlocks(const PackPlan &plan, int64_t matrix, int64_t firstRow, uint8_t *out) {
  constexpr int64_t kGroup = BlockRow::group, kBytes = fourBits ? kGroup / 2 : kGroup,
                    kScales = kTileRows * sizeof(uint16_t);
  constexpr int8_t kZeros[kGroup] = {};
  std::array<SourceRow, kTileRows> rows{};
  for (int64_t row = 0; row < std::min(kTileRows, plan.rows - firstRow); ++row)
    rows[row] = plan.rowOf(matrix, firstRow + row);
  QuantizedMatrix parts = plan.integers();
  bool finite = true;
  for (int64_t group = 0; group < parts.padded / kGroup; ++group, out += parts.groupBytes) {
    std::array<uint8_t, kTileRows * kBytes> lanes;
    std::array<uint16_t, kTileRows> scales{};
    for (auto [row, source] : llvm::enumerate(rows)) {
      std::array<int8_t, kGroup> integers;
      if (source.bytes)
        scales[row] =
            source.blocks.split(source.bytes + group * source.blocks.bytes, integers.data());
      // The exponent of infinities and of what is no number.
      finite &= (scales[row] & 0x7c00) != 0x7c00;
      packBlock<fourBits>(source.bytes ? integers.data() : kZeros, &lanes[row * kBytes]);
    }
    std::memcpy(out, scales.data(), kScales);
    transposeLanes(lanes.data(), kBytes, kBytes / 4, out + kScales);
  }
  return finite;
}

template <typename Rows>
bool packRows(const PackPlan &plan, int64_t matrix, int64_t firstRow, uint8_t *out,
              RowTails &tails) {
  Rows rows(plan.integers());
  std::vector<float> values(plan.columns), scratch(plan.columns);
  bool finite = true;
  for (int64_t row = 0; row < std::min(kTileRows, plan.rows - firstRow); ++row) {
    SourceRow source = withoutBlocks(plan, plan.rowOf(matrix, firstRow + row), scratch.data());
    if (!source.bytes)
      continue;
    convertRow(plan, source, 0, plan.columns, reinterpret_cast<uint8_t *>(values.data()),
               WeightType::F32);
    RowTail tail = rows.set(row, values);
    finite &= std::isfinite(tail.scale);
    int64_t index = tails.indexOf(matrix, firstRow + row);
    tails.scales[index] = tail.scale;
    tails.sums[index] = tail.sum;
  }
  rows.write(out);
  return finite;
}

} // namespace

bool packIntegers(const PackPlan &plan, int64_t matrix, int64_t row, uint8_t *out,
                  RowTails &tails) {
  if (auto blocks = dyn_cast<BlockIntType>(plan.element))
    return blocks.getBits() == 4 ? packBlocks<true>(plan, matrix, row, out)
                                 : packBlocks<false>(plan, matrix, row, out);
  return isa<Int4Type>(plan.element) ? packRows<Int4Rows>(plan, matrix, row, out, tails)
                                     : packRows<Int8Rows>(plan, matrix, row, out, tails);
}

} // namespace mica::cpu
