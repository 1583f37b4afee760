//===- Quantize.cpp - rows of integers --------------------------------------===//

#include "ir/Mica/Quantize.h"

#include <bit>
#include <cmath>
#include <vector>

using namespace mlir;
using namespace mica;

// The same source for several generations of processors; the best one is chosen at run time.
// Products and sums are not contracted (see CMakeLists.txt), so that all of them round alike.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !__has_feature(address_sanitizer)
#define MICA_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define MICA_CLONES
#endif
#define MICA_INLINE __attribute__((always_inline)) inline

/// Added and subtracted again it rounds a number below 2^22 to an integer, ties to even.
static constexpr float kRounder = 0x1.8p23f;

static constexpr int64_t kGroup = QuantizedRow::group;

/// Rows whose largest magnitude is below have scales without an inverse and count as zero.
static constexpr float kSmallest = 0x1p-100f;

MICA_CLONES static float quantizeRow(const float *row, int8_t *q, int64_t count) {
  float largest = largestMagnitude(row, count), inverse = 127 / largest;
  if (!(largest >= kSmallest) || std::isinf(largest)) {
    std::fill_n(q, count, 0);
    return std::isfinite(largest) ? 0 : largest;
  }
  for (int64_t i = 0; i < count; ++i)
    q[i] = static_cast<int8_t>(static_cast<int32_t>(row[i] * inverse + kRounder - kRounder));
  return largest / 127;
}

float mica::quantizeInt8(ArrayRef<float> row, MutableArrayRef<int8_t> q) {
  return quantizeRow(row.data(), q.data(), row.size());
}

namespace {

/// One number for each of 16 groups, which are computed side by side.
typedef float Floats __attribute__((vector_size(64)));
constexpr int64_t kLanes = 16;

/// 16 groups, element by element, zero where the row ends.
struct GroupBlock {
  Floats x[kGroup], weight[kGroup]; ///< of the error of x
};

/// Sums over a group with integers q, weighted: of x * q and of q * q. Their quotient is the scale
/// of least error, and at any scale s the error is that of zeros minus 2 s xq - s^2 qq.
struct Correlation {
  Floats xq, qq;
};

/// Where the search puts the largest magnitude of a group among the integers, beyond them too.
constexpr float kEnds[] = {-8.6f, -8.2f, -7.8f, -7.4f, 6.6f, 7.0f, 7.4f, 7.8f};

/// Into how many parts the largest scale of a row may be divided: 9, 9.25 and so on up to 18.
constexpr float kFewestParts = 9, kPartsStep = 0.25f;
constexpr int kPartsTried = 37;

/// What is known of the groups of a row, 16 at a time.
struct GroupScales {
  Floats scale;     ///< of least error, with a sign
  Floats curvature; ///< the error at a scale s beside it grows by curvature * (s - scale)^2
};

} // namespace

static MICA_INLINE Floats splat(float value) { return Floats{} + value; }

static MICA_INLINE Floats rounded(Floats value) { return value + kRounder - kRounder; }

/// Integers of numbers that were divided by the scale.
static MICA_INLINE Floats integersOf(Floats scaled) {
  scaled = scaled < -8 ? splat(-8) : scaled;
  return rounded(scaled > 7 ? splat(7) : scaled);
}

/// Errors of large numbers count more.
static MICA_INLINE Floats weightOf(Floats x) { return x * x; }

static MICA_INLINE void load(GroupBlock &block, const float *row, int64_t count) {
  for (int64_t lane = 0; lane < kLanes; ++lane)
    for (int64_t i = 0; i < kGroup; ++i) {
      int64_t at = lane * kGroup + i;
      block.x[i][lane] = at < count ? row[at] : 0;
    }
  for (int64_t i = 0; i < kGroup; ++i)
    block.weight[i] = weightOf(block.x[i]);
}

/// The element of the largest magnitude of each group.
static MICA_INLINE Floats extremeOf(const GroupBlock &block) {
  Floats extreme = block.x[0];
  for (int64_t i = 1; i < kGroup; ++i)
    extreme = block.x[i] * block.x[i] > extreme * extreme ? block.x[i] : extreme;
  return extreme;
}

static MICA_INLINE Correlation correlate(const GroupBlock &block, Floats inverse) {
  Correlation sums{};
  for (int64_t i = 0; i < kGroup; ++i) {
    Floats q = integersOf(block.x[i] * inverse), weighted = block.weight[i] * q;
    sums.xq += block.x[i] * weighted;
    sums.qq += q * weighted;
  }
  return sums;
}

/// sum of weight * x * q over sum of weight * q * q, 0 where q is.
static MICA_INLINE Floats scaleOf(Correlation sums) {
  return sums.qq > 0 ? sums.xq / sums.qq : splat(0);
}

/// Tries scales around those by which the largest magnitude just fits, on the long side (-8) and on
/// the short one (7).
static MICA_INLINE GroupScales search(const GroupBlock &block) {
  Floats extreme = extremeOf(block), unit = extreme != 0 ? 1 / extreme : splat(0), gain{};
  GroupScales best{};
  for (float end : kEnds) {
    Correlation sums = correlate(block, unit * end);
    Floats scale = scaleOf(sums);
    auto better = scale * sums.xq > gain;
    gain = better ? scale * sums.xq : gain;
    best.scale = better ? scale : best.scale;
    best.curvature = better ? sums.qq : best.curvature;
  }
  return best;
}

/// The multiplier next to scale / rowScale.
static MICA_INLINE Floats multiplierFor(Floats scale, float inverse) {
  Floats magnitude = scale < 0 ? -scale : scale;
  magnitude = magnitude * inverse;
  magnitude = magnitude > 15 ? splat(15) : magnitude;
  magnitude = rounded(magnitude < 1 ? splat(1) : magnitude);
  return scale < 0 ? -magnitude : magnitude;
}

static MICA_INLINE float sum(const Floats &values) {
  float total = 0;
  for (int64_t lane = 0; lane < kLanes; ++lane)
    total += values[lane];
  return total;
}

/// The scale of the row whose multiples 1 to 15 come nearest to what the groups want.
static MICA_INLINE float chooseRowScale(const GroupScales *groups, int64_t blocks) {
  float largest = 0, best = 0, least = INFINITY;
  for (const GroupScales *block = groups; block != groups + blocks; ++block)
    for (int64_t lane = 0; lane < kLanes; ++lane)
      largest = std::max(largest, std::abs(block->scale[lane]));
  for (int i = 0; i < kPartsTried; ++i) {
    float scale = largest / (kFewestParts + static_cast<float>(i) * kPartsStep);
    Floats errors{};
    for (const GroupScales *block = groups; block != groups + blocks; ++block) {
      Floats off = block->scale - scale * multiplierFor(block->scale, 1 / scale);
      errors += block->curvature * off * off;
    }
    if (float error = sum(errors); error < least) {
      least = error;
      best = scale;
    }
  }
  return best;
}

/// The best of three neighbouring multipliers of each group, and what it adds to the sums of the
/// whole row.
static MICA_INLINE void refine(const GroupBlock &block, Floats &scale, float rowScale,
                               Correlation &row) {
  Floats start = multiplierFor(scale, 1 / rowScale), best = start, gain = splat(-INFINITY);
  Correlation of{};
  for (float step : {0.0f, -1.0f, 1.0f}) {
    Floats multiplier = start + step;
    Correlation sums = correlate(block, 1 / (multiplier * rowScale));
    sums.xq *= multiplier;
    sums.qq *= multiplier * multiplier;
    Floats candidate = rowScale * (2 * sums.xq - rowScale * sums.qq);
    auto better = (candidate > gain) & (multiplier * multiplier <= 15 * 15) & (multiplier != 0);
    gain = better ? candidate : gain;
    best = better ? multiplier : best;
    of.xq = better ? sums.xq : of.xq;
    of.qq = better ? sums.qq : of.qq;
  }
  row.xq += of.xq;
  row.qq += of.qq;
  scale = best;
}

static MICA_INLINE void store(const GroupBlock &block, const Floats &multipliers, float scale,
                              int64_t count, uint8_t *q, int8_t *out) {
  Floats inverse = 1 / (multipliers * scale);
  for (int64_t i = 0; i < kGroup; ++i) {
    Floats integers = integersOf(block.x[i] * inverse) + 8;
    for (int64_t lane = 0; lane < kLanes; ++lane)
      if (int64_t at = lane * kGroup + i; at < count)
        q[at] = static_cast<uint8_t>(integers[lane]);
  }
  for (int64_t lane = 0; lane < kLanes && lane * kGroup < count; ++lane)
    out[lane] = static_cast<int8_t>(multipliers[lane]);
}

MICA_CLONES static float quantizeGroups(const float *row, int64_t count, uint8_t *q,
                                        int8_t *multipliers, GroupScales *groups, int64_t blocks) {
  constexpr int64_t perBlock = kLanes * kGroup;
  GroupBlock block;
  for (int64_t i = 0; i < blocks; ++i) {
    load(block, row + i * perBlock, count - i * perBlock);
    groups[i] = search(block);
  }
  float scale = chooseRowScale(groups, blocks);
  Correlation sums{};
  for (int64_t i = 0; i < blocks; ++i) {
    load(block, row + i * perBlock, count - i * perBlock);
    refine(block, groups[i].scale, scale, sums);
  }
  scale = sum(sums.xq) / sum(sums.qq);
  for (int64_t i = 0; i < blocks; ++i) {
    load(block, row + i * perBlock, count - i * perBlock);
    store(block, groups[i].scale, scale, count - i * perBlock, q + i * perBlock,
          multipliers + i * kLanes);
  }
  return scale;
}

float mica::quantizeInt4(ArrayRef<float> row, MutableArrayRef<uint8_t> q,
                         MutableArrayRef<int8_t> multipliers) {
  float largest = largestMagnitude(row);
  if (!(largest >= kSmallest) || std::isinf(largest)) {
    llvm::fill(q, 8);
    llvm::fill(multipliers, 1);
    return std::isfinite(largest) ? 0 : largest;
  }
  std::vector<GroupScales> groups(llvm::divideCeil(multipliers.size(), kLanes));
  // Errors are weighed by fourth powers of the numbers: those must neither vanish nor overflow.
  constexpr int kUsual = 20;
  int exponent = std::ilogb(largest);
  std::vector<float> moved;
  if (std::abs(exponent) <= kUsual)
    exponent = 0;
  else
    for (float value : row)
      moved.push_back(std::ldexp(value, -exponent));
  float scale = quantizeGroups(moved.empty() ? row.data() : moved.data(), row.size(), q.data(),
                               multipliers.data(), groups.data(), groups.size());
  return std::ldexp(scale, exponent);
}

/// Rounds the numbers of a group to multiples of its largest magnitude / limit.
static void roundGroup(MutableArrayRef<float> row, float limit) {
  float largest = largestMagnitude(row), inverse = limit / largest, scale = largest / limit;
  if (!(largest >= kSmallest) || std::isinf(largest)) {
    llvm::fill(row, std::isfinite(largest) ? 0 : std::nanf(""));
    return;
  }
  for (float &value : row)
    value = scale * std::nearbyint(value * inverse);
}

void mica::roundToIntegers(Type element, MutableArrayRef<float> row) {
  if (isa<Int8Type>(element)) {
    SmallVector<int8_t> q(row.size());
    float scale = quantizeInt8(row, q);
    for (auto [value, integer] : llvm::zip_equal(row, q))
      value = scale * static_cast<float>(integer);
    return;
  }
  if (auto own = dyn_cast<BlockType>(element)) {
    const BlockFormat &format = *own.getFormat();
    std::vector<uint8_t> blocks(llvm::divideCeil(row.size(), format.elements) * format.bytes);
    if (!quantizeBlocks(format, row, {}, blocks)) {
      llvm::fill(row, std::nanf(""));
      return;
    }
    float values[kMaxBlockElements];
    for (size_t i = 0; i < row.size(); ++i) {
      if (i % format.elements == 0)
        decodeBlock(format, &blocks[i / format.elements * format.bytes], values);
      row[i] = values[i % format.elements];
    }
    return;
  }
  if (auto rows = dyn_cast<IntRowsType>(element)) {
    float limit = IntegerRowLayout::limitOf(rows.getLimbs());
    for (; !row.empty(); row = row.drop_front(std::min<size_t>(row.size(), rows.getGroup())))
      roundGroup(row.take_front(rows.getGroup()), limit);
    return;
  }
  SmallVector<uint8_t> q(row.size());
  SmallVector<int8_t> multipliers(llvm::divideCeil(row.size(), kGroup));
  float scale = quantizeInt4(row, q, multipliers);
  for (auto [i, value] : llvm::enumerate(row))
    value = scale * static_cast<float>(multipliers[i / kGroup] * (q[i] - 8));
}
