//===- Tolerance.h - error tolerances ---------------------------*- C++ -*-===//
#ifndef MICA_TESTS_UNIT_BACKENDS_CPU_LOWERING_TOLERANCE_H
#define MICA_TESTS_UNIT_BACKENDS_CPU_LOWERING_TOLERANCE_H

namespace mica::test {

/// The maximum of |a - b| relative to the maximum of |b|. If a result is bf16, another unit in the
/// last place of the element is allowed.
struct Tolerance {
  /// Sums, products and functions of f32: a few dozen rounding errors of 2^-24 each, whose sum
  /// grows with the root of their number.
  constexpr Tolerance() : Tolerance(2e-6) {}
  constexpr Tolerance(double max) : Tolerance(max, max) {}
  constexpr Tolerance(double max, double usual, double size = 0)
      : max(max), usual(usual), size(size) {}

  double max;   ///< for each element
  double usual; ///< for the root mean square of all elements
  double size;  ///< approximate magnitude of results, in case all of them happen to be small
  /// Magnitude of a bias or a residual, which a row's results may cancel. Unlike `size`, it does
  /// not depend on the magnitude of the row's arguments.
  double addend = 0;
};

} // namespace mica::test

#endif // MICA_TESTS_UNIT_BACKENDS_CPU_LOWERING_TOLERANCE_H
