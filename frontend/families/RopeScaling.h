//===- RopeScaling.h - scalings of rope -------------------------*- C++ -*-===//
//
// The numbers of each kind of rope scaling, and its attribute in the dialect. RopeKinds.h has how
// they are read.
//
//===----------------------------------------------------------------------===//
#ifndef MICA_FRONTEND_FAMILIES_ROPESCALING_H
#define MICA_FRONTEND_FAMILIES_ROPESCALING_H

#include "ir/Mica/Mica.h"

#include "llvm/ADT/STLExtras.h"

#include <cstdint>
#include <variant>
#include <vector>

namespace mica {

/// Divides inv_freq by `factor`.
struct LinearScaling {
  static constexpr bool followsLength = false;
  double factor;

  RopeScalingAttr attribute(mlir::MLIRContext *context) const;
};

/// YaRN: interpolates the dimensions between the corrections of `betaFast` and `betaSlow`
/// rotations; cos and sin are multiplied by `attentionFactor`. `original` is the context length
/// before scaling, `highLimit` the largest value of the ramp's upper end (transformers: D - 1,
/// MiniMind: D/2 - 1), `truncate` whether the ramp's ends are rounded outwards to whole dimensions.
struct YarnScaling {
  static constexpr bool followsLength = false;
  double factor, betaFast, betaSlow, attentionFactor;
  int64_t original, highLimit;
  bool truncate = true;

  RopeScalingAttr attribute(mlir::MLIRContext *context) const;
};

/// Llama 3: scales by wavelength, with smooth interpolation between the two frequency factors.
struct Llama3Scaling {
  static constexpr bool followsLength = false;
  double factor, lowFrequency, highFrequency;
  int64_t original;

  RopeScalingAttr attribute(mlir::MLIRContext *context) const;
};

/// Factors for each pair: short ones up to the original context, long ones for longer texts.
struct LongRopeScaling {
  static constexpr bool followsLength = true;
  std::vector<double> shortFactors, longFactors;
  double attentionFactor;
  int64_t original;

  RopeScalingAttr attribute(mlir::MLIRContext *context) const;
};

/// theta grows with sequences that are longer than the original context.
struct DynamicScaling {
  static constexpr bool followsLength = true;
  double factor;
  int64_t original;

  RopeScalingAttr attribute(mlir::MLIRContext *context) const;
};

/// Divides the first `pairs` frequencies by `factor`; the other pairs are not rotated.
struct ProportionalScaling {
  static constexpr bool followsLength = false;
  int64_t pairs;
  double factor;

  RopeScalingAttr attribute(mlir::MLIRContext *context) const;
};

using RopeScaling = std::variant<std::monostate, LinearScaling, YarnScaling, Llama3Scaling,
                                 LongRopeScaling, DynamicScaling, ProportionalScaling>;

struct RopeConfig {
  double theta = 10000;
  int64_t dimensions = 0; ///< number of rotated elements of a head, at most D; 0: no rope
  Pairing pairing = Pairing::Half;
  RopeScaling scaling;
  double scoreMultiplier = 1; ///< factor of the attention scale

  /// Whether frequencies depend on the sequence length.
  bool followsLength() const {
    return std::visit(llvm::makeVisitor([](std::monostate) { return false; },
                                        [](const auto &kind) { return kind.followsLength; }),
                      scaling);
  }
  /// The attribute of the scaling; null for none.
  RopeScalingAttr scalingAttribute(mlir::MLIRContext *context) const {
    return std::visit(llvm::makeVisitor([](std::monostate) { return RopeScalingAttr(); },
                                        [&](const auto &kind) { return kind.attribute(context); }),
                      scaling);
  }
};

} // namespace mica

#endif // MICA_FRONTEND_FAMILIES_ROPESCALING_H
