//===- Tolerance.h - how far results may be off -----------------*- C++ -*-===//
#ifndef MICA_TESTS_UNIT_BACKENDS_CPU_LOWERING_TOLERANCE_H
#define MICA_TESTS_UNIT_BACKENDS_CPU_LOWERING_TOLERANCE_H

namespace mica::test {

/// How far |a - b| may be from zero, in parts of the largest |b|. Where a result is bf16, one unit
/// in the last place of the element is allowed besides.
struct Tolerance {
  /// Sums, products and functions of f32: a few dozen roundings of 2^-24 each, of which about the
  /// root of their number remains.
  constexpr Tolerance() : Tolerance(2e-6) {}
  constexpr Tolerance(double most) : Tolerance(most, most) {}
  constexpr Tolerance(double most, double usual, double size = 0)
      : most(most), usual(usual), size(size) {}

  double most;  ///< for each element
  double usual; ///< for the root mean square of all elements
  double size;  ///< about how large results are, for when all of them happen to be small
};

} // namespace mica::test

#endif // MICA_TESTS_UNIT_BACKENDS_CPU_LOWERING_TOLERANCE_H
