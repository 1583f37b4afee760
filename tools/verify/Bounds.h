//===- Bounds.h - error bounds of programs ----------------------*- C++ -*-===//
#ifndef MICA_TOOLS_VERIFY_BOUNDS_H
#define MICA_TOOLS_VERIFY_BOUNDS_H

#include "passes/support/Precision.h"

namespace mica::tool {

/// The error bounds of a precision of weights or caches, whichever is coarser.
///
/// An op is compared with the interpreter on the program's own rows with the program's own
/// rounding: weights and rows are equal, so that quantization does not contribute to the error.
/// What remains is the order of f32 sums, which may change the rounding of a result that is near
/// the middle between two values; and softmax weights, which are rounded to bf16 before they are
/// multiplied by values: squared, a third of 2^-18; the bound is ten times that.
///
/// Logits are compared with the f32 interpreter, including the loss of the format. Their bounds are
/// those of the design. There is none for integers, because `mica eval` measures the loss of 8 and
/// 4 bits; that of bf16 applies to trained models: with random ids or without training, no token is
/// likely, and the smallest difference decides.
struct Bounds {
  using Bound = std::optional<double>;

  Precision precision;
  double op;     ///< normalized squared error of an op
  Bound logits;  ///< largest difference of a logit relative to the largest one
  Bound kl;      ///< mean KL(reference || program) in nats
  Bound sameTop; ///< share of positions

  /// Why logits have no bound, if they have none.
  llvm::StringRef reasonUnchecked = "quantization changes them (measure with `mica eval`)";

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

/// The bound of an op if program and reference contain weights that were rounded to different
/// formats, the coarser one with `bits`. A step is 2^(1 - bits) of the maximum of a row, which is
/// about three times its root mean square, or of 32 numbers, as in formats with fewer than 8 bits,
/// 2.2 times; the mean square error is a twelfth of a step squared. The bound is eight times that,
/// for less uniform rows and for cancellation in dot products.
double boundOfRounding(double bits);

} // namespace mica::tool

#endif // MICA_TOOLS_VERIFY_BOUNDS_H
