//===- QuantizeBlocks.cpp - quantization to Mica's own block formats ------===//
//
// Fits 16 groups of 32 elements in parallel, one per vector lane. The scale (and offset) of a group
// is searched: several grids around the tightest one that covers the group are tried, each followed
// by a least-squares fit of scale and offset for the resulting codes. Then the scales of a block
// are rounded to integer multiples of one number; neighboring multiples are tried, choosing the
// codes again for each.
//
//===----------------------------------------------------------------------===//

#include "ir/Quantize/Quantize.h"

#include "ir/Quantize/TargetClones.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

using namespace llvm;
using namespace mica;

#define MICA_INLINE __attribute__((always_inline)) inline

namespace {

/// One number per group.
typedef float Floats __attribute__((vector_size(64)));
constexpr int kLanes = 16, kGroup = 32;

/// The elements of 16 groups and the weights of their errors.
struct Groups {
  Floats x[kGroup], weight[kGroup];
};

/// x ~ scale * q + offset, and the weighted sum of squared errors.
struct Fit {
  Floats scale, offset, error;
};

/// The integers [min, max] that codes represent, and whether the format has offsets.
struct Grid {
  float min, max;
  bool hasOffset;
};

/// The differences in length between the grids that are tried and the tightest one, in units of its
/// step.
constexpr float kSteps[] = {-1.2f, -1.0f, -0.8f, -0.6f, -0.4f, -0.2f, 0.0f,
                            0.2f,  0.4f,  0.6f,  0.8f,  1.0f,  1.4f};

/// Adding and subtracting this rounds a number below 2^22 to an integer, ties to even.
constexpr float kRounder = 0x1.8p23f;

/// The largest sub-scale, which is stored as a signed byte.
constexpr float kMaxSubScale = 127;

MICA_INLINE Floats splat(float value) { return Floats{} + value; }
MICA_INLINE Floats rounded(Floats x) { return x + kRounder - kRounder; }
MICA_INLINE Floats maxOf(Floats a, Floats b) { return a > b ? a : b; }
MICA_INLINE Floats minOf(Floats a, Floats b) { return a < b ? a : b; }
MICA_INLINE Floats absOf(Floats a) { return a < 0 ? -a : a; }

MICA_INLINE Floats codeOf(Floats x, Floats inverse, Floats offset, const Grid &grid) {
  Floats q = rounded((x - offset) * inverse);
  return minOf(maxOf(q, splat(grid.min)), splat(grid.max));
}

/// The least-squares scale and offset for the codes of a grid.
MICA_INLINE Fit fitLeastSquares(const Groups &groups, Floats inverse, Floats offset,
                                const Grid &grid) {
  Floats w{}, wx{}, wxx{}, wq{}, wqq{}, wxq{};
  for (int i = 0; i < kGroup; ++i) {
    Floats x = groups.x[i], q = codeOf(x, inverse, offset, grid), weighted = groups.weight[i] * q;
    w += groups.weight[i];
    wx += groups.weight[i] * x;
    wxx += groups.weight[i] * x * x;
    wq += weighted;
    wqq += weighted * q;
    wxq += weighted * x;
  }
  Fit fit{};
  if (grid.hasOffset) {
    Floats determinant = w * wqq - wq * wq;
    fit.scale = determinant > 0 ? (w * wxq - wq * wx) / determinant : splat(0);
    fit.offset = w > 0 ? (wx - fit.scale * wq) / w : splat(0);
  } else {
    fit.scale = wqq > 0 ? wxq / wqq : splat(0);
  }
  fit.error = wxx - fit.scale * wxq - fit.offset * wx;
  return fit;
}

MICA_INLINE void takeBetter(Fit &best, const Fit &fit) {
  auto better = fit.error < best.error;
  best.scale = better ? fit.scale : best.scale;
  best.offset = better ? fit.offset : best.offset;
  best.error = better ? fit.error : best.error;
}

MICA_INLINE Fit searchScales(const Groups &groups, const Grid &grid) {
  Floats smallest = groups.x[0], largest = groups.x[0];
  for (int i = 1; i < kGroup; ++i) {
    smallest = minOf(smallest, groups.x[i]);
    largest = maxOf(largest, groups.x[i]);
  }
  Fit best{Floats{}, Floats{}, splat(INFINITY)};
  // Without an offset, the extreme element is mapped to the longer end of the grid, whatever its
  // sign.
  Floats extreme = absOf(smallest) > largest ? smallest : largest;
  Floats range = grid.hasOffset ? largest - smallest : extreme;
  float length = grid.hasOffset ? grid.max - grid.min : grid.min;
  for (float step : kSteps) {
    float steps = grid.hasOffset ? length + step : length - step;
    Floats inverse = range != 0 ? steps / range : splat(0);
    takeBetter(best, fitLeastSquares(groups, inverse, grid.hasOffset ? smallest : Floats{}, grid));
  }
  for (int i = 0; i < 2; ++i) {
    Floats inverse = best.scale != 0 ? 1 / best.scale : splat(0);
    takeBetter(best, fitLeastSquares(groups, inverse, best.offset, grid));
  }
  best.error = best.error < INFINITY ? best.error : splat(0);
  return best;
}

/// The weighted squared error of the best codes for a scale and an offset.
MICA_INLINE Floats errorOf(const Groups &groups, Floats scale, Floats offset, const Grid &grid) {
  Floats inverse = scale != 0 ? 1 / scale : splat(0), error{};
  for (int i = 0; i < kGroup; ++i) {
    Floats off = groups.x[i] - (scale * codeOf(groups.x[i], inverse, offset, grid) + offset);
    error += groups.weight[i] * off * off;
  }
  return error;
}

/// Rounds to bf16 away from zero, so that multiples of the result still reach the number.
uint16_t bf16AwayFromZero(float value) {
  return static_cast<uint16_t>((std::bit_cast<uint32_t>(value) + 0xffff) >> 16);
}
float floatOf(uint16_t bf16) { return std::bit_cast<float>(uint32_t(bf16) << 16); }

/// The scales of 16 groups as integer multiples of one number per block.
struct Multiples {
  uint16_t scale[kLanes], offset[kLanes]; ///< bf16 bits, of each group's block
  Floats scales, offsets;                 ///< integers
  Floats unit, offsetUnit;                ///< values of `scale` and `offset`
};

/// The nearest multiple of `unit` within the range of sub-scales.
MICA_INLINE Floats multipleOf(Floats value, Floats unit) {
  Floats quotient = unit != 0 ? rounded(value / unit) : splat(0);
  return minOf(maxOf(quotient, splat(-kMaxSubScale)), splat(kMaxSubScale));
}

/// Rounds the scales of 16 groups; every `perBlock` consecutive lanes are a block.
static MICA_INLINE Multiples roundScales(const Groups &groups, const Fit &fit, const Grid &grid,
                                         int perBlock) {
  Multiples result{};
  for (int first = 0; first < kLanes; first += perBlock) {
    float scale = 0, offset = 0;
    for (int lane = first; lane < first + perBlock; ++lane) {
      scale = std::max(scale, std::abs(fit.scale[lane]));
      offset = std::max(offset, std::abs(fit.offset[lane]));
    }
    for (int lane = first; lane < first + perBlock; ++lane) {
      result.scale[lane] = bf16AwayFromZero(scale / kMaxSubScale);
      result.offset[lane] = bf16AwayFromZero(offset / kMaxSubScale);
      result.unit[lane] = floatOf(result.scale[lane]);
      result.offsetUnit[lane] = floatOf(result.offset[lane]);
    }
  }
  Floats scales = multipleOf(fit.scale, result.unit),
         offsets = multipleOf(-fit.offset, result.offsetUnit), bestError = splat(INFINITY);
  for (float step : {0.0f, -1.0f, 1.0f})
    for (float shift : {0.0f, -1.0f, 1.0f}) {
      if (shift != 0 && !grid.hasOffset)
        continue;
      Floats candidate = scales + step, candidateOffset = offsets + shift;
      Floats error =
          errorOf(groups, candidate * result.unit, -candidateOffset * result.offsetUnit, grid);
      auto better = (error < bestError) & (absOf(candidate) <= kMaxSubScale) &
                    (absOf(candidateOffset) <= kMaxSubScale) & (candidate != 0);
      bestError = better ? error : bestError;
      result.scales = better ? candidate : result.scales;
      result.offsets = better ? candidateOffset : result.offsets;
    }
  return result;
}

/// Loads 16 groups of a row beginning at `first`, with zeros after its end. With importance, the
/// weight of an error is the importance of its column: the sum is then the expected squared error
/// of the dot product, if columns are uncorrelated. (Weights that also grow with the magnitude, as
/// in llama.cpp, gave a higher KL divergence.) Without importance, the weight of an error is the
/// magnitude of the element plus the root mean square of its group.
MICA_INLINE void loadGroups(Groups &groups, const float *row, const float *importance,
                            int64_t first, int64_t count) {
  for (int lane = 0; lane < kLanes; ++lane) {
    float squares = 0;
    for (int i = 0; i < kGroup; ++i) {
      int64_t at = first + lane * kGroup + i;
      float x = at < count ? row[at] : 0;
      groups.x[i][lane] = x;
      squares += x * x;
    }
    float root = std::sqrt(squares / kGroup);
    for (int i = 0; i < kGroup; ++i) {
      int64_t at = first + lane * kGroup + i;
      float x = groups.x[i][lane], weight = std::abs(x) + root;
      if (importance && at < count)
        weight = importance[at];
      groups.weight[i][lane] = at < count ? weight : 0;
    }
  }
}

/// Chooses the codes, counted from zero, for rounded scales.
MICA_INLINE void chooseCodes(const Groups &groups, const Multiples &multiples, const Grid &grid,
                             Floats *codes) {
  Floats scale = multiples.scales * multiples.unit,
         offset = -multiples.offsets * multiples.offsetUnit,
         inverse = scale != 0 ? 1 / scale : splat(0);
  for (int i = 0; i < kGroup; ++i)
    codes[i] = codeOf(groups.x[i], inverse, offset, grid) - grid.min;
}

} // namespace

/// Stores the block whose first group is lane `lane`.
static void storeBlock(const BlockFormat &format, const Multiples &multiples, const Floats *codes,
                       int lane, uint8_t *block) {
  BlockParts parts = {};
  parts.scale = multiples.scale[lane];
  parts.offset = multiples.offset[lane];
  for (int group = 0; group < format.groups(); ++group) {
    parts.scales[group] = static_cast<int8_t>(multiples.scales[lane + group]);
    parts.offsets[group] = static_cast<int8_t>(multiples.offsets[lane + group]);
    for (int i = 0; i < kGroup; ++i)
      parts.codes[group * kGroup + i] = static_cast<uint8_t>(codes[i][lane + group]);
  }
  joinBlock(format, parts, block);
}

// Cloned functions pass vectors only by reference: the calling convention for values differs
// between targets.
MICA_CLONES static void quantizeGroups(const BlockFormat &format, const Grid &grid,
                                       const float *row, const float *importance, int64_t count,
                                       uint8_t *blocks) {
  constexpr int64_t kTogether = int64_t(kLanes) * kGroup;
  Groups groups;
  int perBlock = format.groups();
  for (int64_t first = 0; first < count; first += kTogether) {
    loadGroups(groups, row, importance, first, count);
    Multiples multiples = roundScales(groups, searchScales(groups, grid), grid, perBlock);
    Floats codes[kGroup];
    chooseCodes(groups, multiples, grid, codes);
    for (int lane = 0; lane < kLanes; lane += perBlock) {
      if (first + lane * kGroup >= count)
        return;
      storeBlock(format, multiples, codes, lane, blocks);
      blocks += format.bytes;
    }
  }
}

bool mica::quantizeBlocks(const BlockFormat &format, ArrayRef<float> row,
                          ArrayRef<float> importance, MutableArrayRef<uint8_t> blocks) {
  float largest = largestMagnitude(row);
  if (!std::isfinite(largest))
    return false;
  auto count = static_cast<int64_t>(row.size());
  // Weighted squares must neither underflow nor overflow: rows with unusual magnitudes are scaled
  // by a power of two, and the scales of their blocks are scaled back.
  constexpr int kMaxExactExponent = 20;
  int exponent = largest > 0 ? std::ilogb(largest) : 0;
  std::vector<float> scaled;
  if (std::abs(exponent) > kMaxExactExponent)
    for (float value : row)
      scaled.push_back(std::ldexp(value, -exponent));
  Grid grid{-static_cast<float>(format.bias),
            static_cast<float>((1 << format.codeBits()) - 1 - format.bias), format.hasOffsets()};
  quantizeGroups(format, grid, scaled.empty() ? row.data() : scaled.data(),
                 importance.empty() ? nullptr : importance.data(), count, blocks.data());
  if (scaled.empty())
    return true;
  for (size_t at = 0; at < blocks.size(); at += format.bytes) {
    BlockParts parts = {};
    splitBlock(format, &blocks[at], parts);
    parts.scale = bf16AwayFromZero(std::ldexp(floatOf(parts.scale), exponent));
    parts.offset = bf16AwayFromZero(std::ldexp(floatOf(parts.offset), exponent));
    joinBlock(format, parts, &blocks[at]);
  }
  return true;
}
