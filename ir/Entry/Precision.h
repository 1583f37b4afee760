//===- Precision.h - numeric formats of weights and caches ------*- C++ -*-===//
//
// One row per precision of weights and caches, by the name that options and manifests use. The
// compiler adds types and measured costs in passes/support/Precision.cpp.
//
// Free of LLVM and MLIR.
//
//===----------------------------------------------------------------------===//

#ifndef MICA_IR_ENTRY_PRECISION_H
#define MICA_IR_ENTRY_PRECISION_H

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace mica {

/// Integer weights use Mica's own block formats, integer caches !mica.int8. In the order of
/// kPrecisions.
enum class Precision { F32, BF16, Int8, Int4 };

struct PrecisionInfo {
  Precision precision;
  std::string_view name;
  bool isInteger;         ///< integers with scales; else floats
  int64_t cacheBytes = 0; ///< of an element of a cache; 0: not supported by caches
};

inline constexpr std::array<PrecisionInfo, 4> kPrecisions{{
    {Precision::F32, "f32", false, 4},
    {Precision::BF16, "bf16", false, 2},
    {Precision::Int8, "int8", true, 1},
    {Precision::Int4, "int4", true},
}};

constexpr const PrecisionInfo &infoOf(Precision precision) {
  return kPrecisions[static_cast<size_t>(precision)];
}

/// The precision with this name, or nullopt.
constexpr std::optional<Precision> precisionNamed(std::string_view name) {
  for (const PrecisionInfo &info : kPrecisions)
    if (info.name == name)
      return info.precision;
  return std::nullopt;
}

} // namespace mica

#endif // MICA_IR_ENTRY_PRECISION_H
