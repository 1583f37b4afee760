//===- Bounds.h - error bounds of programs ----------------------*- C++ -*-===//
#ifndef MICA_TOOLS_VERIFY_BOUNDS_H
#define MICA_TOOLS_VERIFY_BOUNDS_H

#include "passes/support/Precision.h"

namespace mica::tool {

/// The error bounds of a precision of weights or caches, whichever is coarser.
///
/// An op is compared with the interpreter with the program's own rows and the program's own
/// rounding: weights and rows become the same numbers, so that what a format loses is no part of
/// the error. What is left is the order in which f32 is summed and, after that, a number here and
/// there that lies in the middle between two of its type; and the weights of a softmax, which are
/// rounded to bf16 where they meet values: squared, a third of 2^-18, ten times which is the bound.
///
/// Logits are compared with the interpreter in f32, the format's loss included. Their bounds are
/// the design's. It has none for integers, as what 8 and 4 bits lose `mica eval` measures, and that
/// of bf16 is one of trained models: with random ids, or without training, a model is
/// sure of nothing, and the least difference decides.
struct Bounds {
  using Bound = std::optional<double>;

  Precision precision;
  double op;     ///< normalized squared error of an op
  Bound logits;  ///< largest difference of a logit relative to the largest one
  Bound kl;      ///< mean KL(reference || program) in nats
  Bound sameTop; ///< share of positions

  /// Why logits have no bound; only where they have none.
  llvm::StringRef reasonUnchecked =
      "the error of integers is expected, and measured by `mica eval`";

  void skipLogits(llvm::StringRef why) {
    if (!checksLogits())
      return;
    logits = kl = sameTop = std::nullopt;
    reasonUnchecked = why;
  }
  bool checksLogits() const { return logits || kl || sameTop; }
};
inline constexpr Bounds kBounds[] = {{Precision::F32, 1e-10, 1e-4, 1e-7, 0.99},
                                     {Precision::BF16, 1.3e-5, {}, 1e-3, 0.99},
                                     {Precision::Int8, 1.3e-5, {}, {}, {}},
                                     {Precision::Int4, 1.3e-5, {}, {}, {}}};

/// What an op may be off where program and reference hold numbers that were rounded differently
/// from each other, to `bits` at the coarsest. A step is 2^(1 - bits) of the largest number of a
/// row, which is about three times their root mean square, or of 32 numbers, as formats of fewer
/// than 8 bits have them, 2.2 times; and a number is off by a step's twelfth, squared. Eight times
/// that, for rows that are less even and products that cancel.
double boundOfRounding(double bits);

} // namespace mica::tool

#endif // MICA_TOOLS_VERIFY_BOUNDS_H
