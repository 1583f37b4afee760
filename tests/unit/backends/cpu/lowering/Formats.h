//===- Formats.h - what weights and rows are made of ------------*- C++ -*-===//
#ifndef MICA_TESTS_UNIT_BACKENDS_CPU_LOWERING_FORMATS_H
#define MICA_TESTS_UNIT_BACKENDS_CPU_LOWERING_FORMATS_H

#include "tests/unit/backends/cpu/lowering/Tolerance.h"
#include "tests/unit/backends/cpu/lowering/Words.h"

#include "llvm/ADT/StringRef.h"

#include <cmath>

namespace mica::test {

/// One way of storing the matrices of a model. Every table of products has all of them.
struct Format {
  const char *name;
  const char *argument; ///< rows as a function of a test receives them
  const char *rows;     ///< rows as they enter a product; where this is another type they are cast
  const char *weight;
  /// Of rows that the test's own kernels made, which may differ by a last place of f32: a number
  /// near the middle of two of the type `rows` falls to the other side, but few of them do. This is
  /// what one step of that type is of a product, and what one of about fifty is on average.
  Tolerance rounded;

  bool hasIntegers() const { return llvm::StringRef(weight).starts_with("!"); }
};

/// A product by {N} columns of {K} numbers. {operands} may be kBias, kResidual and a kernel.
inline constexpr const char *kLinear = R"(
  mica.weight @{name}.w : tensor<{N}x{K}x{weight}>
  mica.weight @{name}.b : tensor<{N}xf32>
  func.func @{name}({take}, %r: tensor<?x{N}xf32>) -> tensor<?x{N}xf32> {
    {cast}
    %w = mica.get_weight @{name}.w : tensor<{N}x{K}x{weight}>
    %b = mica.get_weight @{name}.b : tensor<{N}xf32>
    %y = mica.linear %x, %w {operands} : tensor<?x{K}x{rows}>, tensor<{N}x{K}x{weight}> -> tensor<?x{N}xf32>
    return %y : tensor<?x{N}xf32>
  })";
inline constexpr const char *kBias = "bias(%b : tensor<{N}xf32>)",
                            *kResidual = "residual(%r : tensor<?x{N}xf32>)",
                            *kBiasAndResidual =
                                "bias(%b : tensor<{N}xf32>) residual(%r : tensor<?x{N}xf32>)";

/// The same for each of {H} heads, whose rows have {D} numbers; {K} is {H}x{D}.
inline constexpr const char *kHeadLinear = R"(
  mica.weight @{name}.w : tensor<{H}x{N}x{D}x{weight}>
  func.func @{name}({take}) -> tensor<?x{H}x{N}xf32> {
    {cast}
    %w = mica.get_weight @{name}.w : tensor<{H}x{N}x{D}x{weight}>
    %y = mica.head_linear %x, %w : tensor<?x{K}x{rows}>, tensor<{H}x{N}x{D}x{weight}> -> tensor<?x{H}x{N}xf32>
    return %y : tensor<?x{H}x{N}xf32>
  })";

inline constexpr double kStepOfBf16 = 0x1p-8, kStepOfInt8 = 1.0 / 127;

/// A type of rows that multiply weights in blocks.
struct BlockRows {
  const char *name, *argument, *rows;
  Tolerance rounded;
};

inline constexpr BlockRows kBlockRows[] = {
    {"limb", "f32", "!mica.int_rows<limbs = 1, group = 32>", {kStepOfInt8, kStepOfInt8 / 20}},
    // The roundings of f32 are no longer far below the steps.
    {"limbs",
     "f32",
     "!mica.int_rows<limbs = 2, group = 32>",
     {1.0 / 32639, 1.0 / 32639 / 20 + 2e-6}},
    {"bf16", "bf16", "bf16", {kStepOfBf16, kStepOfBf16 / 20}},
    {"f32", "f32", "f32", 4e-6}};

/// The precisions of `--weights`; of integers Mica's own blocks, with the rows that they are given
/// by default.
inline constexpr Format kFormats[] = {
    {"f32", "f32", "f32", "f32", 4e-6},
    {"bf16", "bf16", "bf16", "bf16", {kStepOfBf16, kStepOfBf16 / 20}},
    {"int8", "f32", kBlockRows[1].rows, "!mica.block<int8_g32>", kBlockRows[1].rounded},
    // Offsets add as many roundings of f32 again.
    {"int4",
     "f32",
     kBlockRows[1].rows,
     "!mica.block<int4_g32>",
     {kBlockRows[1].rounded.most, 2 * kBlockRows[1].rounded.usual}},
};

/// Some formats of files with each of those types of rows, for tables that have one entry for each
/// kind of weight.
inline constexpr Format kBlockFormats[] = {
    {"q8_0", "f32", kBlockRows[1].rows, "!mica.block<q8_0>", kBlockRows[1].rounded},
    {"q4_0", "f32", kBlockRows[1].rows, "!mica.block<q4_0>", kBlockRows[1].rounded},
    {"q4_0_limb", "f32", kBlockRows[0].rows, "!mica.block<q4_0>", kBlockRows[0].rounded},
    {"q4_0_bf16", "bf16", "bf16", "!mica.block<q4_0>", kBlockRows[2].rounded}};

/// Of a product [T, k] x [n, k]^T of numbers between -1 and 1, whose sums are about sqrt(k) / 3.
/// Products of bf16 and of integers are exact, and so are sums of integers; what is left are k
/// additions of f32, or the roundings of the scales.
inline Tolerance toleranceOfProduct(int64_t k) {
  return {2e-6, 5e-7, std::sqrt(static_cast<double>(k)) / 3};
}

/// The same for numbers of a format: offsets of blocks are summed apart from the levels, both about
/// twice as large as their sum.
inline Tolerance toleranceOfProduct(const Format &format, int64_t k) {
  Tolerance product = toleranceOfProduct(k);
  double factor = format.hasIntegers() ? 2 : 1;
  return {factor * product.most, factor * product.usual, product.size};
}

/// Of activation(x G^T) * (x U^T).
inline Tolerance toleranceOfGatedProduct(int64_t k) {
  Tolerance product = toleranceOfProduct(k);
  return {2 * product.most, 2 * product.usual, product.size * product.size};
}
inline Tolerance toleranceOfGatedProduct(const Format &format, int64_t k) {
  Tolerance product = toleranceOfProduct(format, k);
  return {2 * product.most, 2 * product.usual, product.size * product.size};
}

/// The keys of a format. `{take}` declares an argument of rows [T, K], which are uneven where they
/// are rounded, `{cast}` makes %x of it.
inline Words wordsOf(const Format &format, bool uneven = true) {
  bool casts = llvm::StringRef(format.argument) != format.rows;
  std::string rounded = "%a: tensor<?x{K}x{argument}>";
  if (uneven)
    rounded += " {test.uneven}";
  return {
      {"take", casts ? rounded : "%x: tensor<?x{K}x{rows}>"},
      {"cast", casts ? "%x = mica.cast %a : tensor<?x{K}x{argument}> to tensor<?x{K}x{rows}>" : ""},
      {"format", format.name},
      {"argument", format.argument},
      {"rows", format.rows},
      {"weight", format.weight}};
}

} // namespace mica::test

#endif // MICA_TESTS_UNIT_BACKENDS_CPU_LOWERING_FORMATS_H
