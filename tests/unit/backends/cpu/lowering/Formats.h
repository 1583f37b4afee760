//===- Formats.h - formats of weights and activations -----------*- C++ -*-===//
#ifndef MICA_TESTS_UNIT_BACKENDS_CPU_LOWERING_FORMATS_H
#define MICA_TESTS_UNIT_BACKENDS_CPU_LOWERING_FORMATS_H

#include "tests/unit/backends/cpu/lowering/Tolerance.h"
#include "tests/unit/backends/cpu/lowering/Words.h"

#include "llvm/ADT/StringRef.h"

#include <cmath>

namespace mica::test {

/// A storage format of a model's matrices. Every table of matmuls tests all formats.
struct Format {
  const char *name;
  const char *argument; ///< type of the rows that a test function takes
  const char *rows;     ///< type of a matmul's rows; they are cast to it if it differs from
                        ///< `argument`
  const char *weight;
  /// For rows computed by the test's own kernels, which may differ in the last bit of f32: a number
  /// near the middle of two values of the type `rows` may be rounded to the other value. This
  /// tolerance covers the effect of one such step on a matmul, and on average one in fifty.
  Tolerance rounded;

  bool hasIntegers() const { return llvm::StringRef(weight).starts_with("!"); }
};

/// A matmul with a weight [{N}, {K}]. {operands} may be kBias, kResidual and a kernel.
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

/// The same for each of {H} heads, whose rows have {D} elements; {K} is {H}x{D}.
inline constexpr const char *kHeadLinear = R"(
  mica.weight @{name}.w : tensor<{H}x{N}x{D}x{weight}>
  func.func @{name}({take}) -> tensor<?x{H}x{N}xf32> {
    {cast}
    %w = mica.get_weight @{name}.w : tensor<{H}x{N}x{D}x{weight}>
    %y = mica.head_linear %x, %w : tensor<?x{K}x{rows}>, tensor<{H}x{N}x{D}x{weight}> -> tensor<?x{H}x{N}xf32>
    return %y : tensor<?x{H}x{N}xf32>
  })";

inline constexpr double kStepOfBf16 = 0x1p-8, kStepOfInt8 = 1.0 / 127;

/// An activation type of matmuls with block-quantized weights.
struct BlockRows {
  const char *name, *argument, *rows;
  Tolerance rounded;
};

inline constexpr BlockRows kBlockRows[] = {
    {"int8", "f32", "!mica.int_rows<bits = 8, group = 32>", {kStepOfInt8, kStepOfInt8 / 20}},
    // The rounding errors of f32 are no longer negligible compared to the steps.
    {"int16",
     "f32",
     "!mica.int_rows<bits = 16, group = 32>",
     {1.0 / 32639, 1.0 / 32639 / 20 + 2e-6}},
    {"bf16", "bf16", "bf16", {kStepOfBf16, kStepOfBf16 / 20}},
    {"f32", "f32", "f32", 4e-6}};

/// The precisions of `--weights`; for integers Mica's own blocks, with their default activation
/// types.
inline constexpr Format kFormats[] = {
    {"f32", "f32", "f32", "f32", 4e-6},
    {"bf16", "bf16", "bf16", "bf16", {kStepOfBf16, kStepOfBf16 / 20}},
    {"int8", "f32", kBlockRows[1].rows, "!mica.block<int8_g32>", kBlockRows[1].rounded},
    // Offsets add the same number of f32 rounding errors again.
    {"int4",
     "f32",
     kBlockRows[1].rows,
     "!mica.block<int4_g32>",
     {kBlockRows[1].rounded.max, 2 * kBlockRows[1].rounded.usual}},
};

/// Some block formats of files with each of those activation types, for tables with an entry for
/// each class of weights.
inline constexpr Format kBlockFormats[] = {
    {"q8_0", "f32", kBlockRows[1].rows, "!mica.block<q8_0>", kBlockRows[1].rounded},
    {"q4_0", "f32", kBlockRows[1].rows, "!mica.block<q4_0>", kBlockRows[1].rounded},
    {"q4_0_int8", "f32", kBlockRows[0].rows, "!mica.block<q4_0>", kBlockRows[0].rounded},
    {"q4_0_bf16", "bf16", "bf16", "!mica.block<q4_0>", kBlockRows[2].rounded}};

/// For a matmul [T, k] x [n, k]^T of numbers in [-1, 1], whose results are about sqrt(k) / 3.
/// Products of bf16 and of integers are exact, and so are sums of integers; what remains are k
/// additions of f32, or the rounding of the scales.
inline Tolerance toleranceOfProduct(int64_t k) {
  return {2e-6, 5e-7, std::sqrt(static_cast<double>(k)) / 3};
}

/// The same for numbers of a format: offsets of blocks are summed separately from the levels; both
/// sums are about twice as large as the result.
inline Tolerance toleranceOfProduct(const Format &format, int64_t k) {
  Tolerance product = toleranceOfProduct(k);
  double factor = format.hasIntegers() ? 2 : 1;
  return {factor * product.max, factor * product.usual, product.size};
}

/// For activation(x G^T) * (x U^T).
inline Tolerance toleranceOfGatedProduct(int64_t k) {
  Tolerance product = toleranceOfProduct(k);
  return {2 * product.max, 2 * product.usual, product.size * product.size};
}
inline Tolerance toleranceOfGatedProduct(const Format &format, int64_t k) {
  Tolerance product = toleranceOfProduct(format, k);
  return {2 * product.max, 2 * product.usual, product.size * product.size};
}

/// The placeholders of a format. `{take}` declares an argument with rows [T, K], which are uneven
/// if they are rounded, `{cast}` computes %x from it.
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
