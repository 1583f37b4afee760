//===- Formats.h - what weights and rows are made of -----------------------===//
#ifndef MICA_TESTS_UNIT_BACKENDS_CPU_LOWERING_FORMATS_H
#define MICA_TESTS_UNIT_BACKENDS_CPU_LOWERING_FORMATS_H

#include "tests/unit/backends/cpu/lowering/KernelTest.h"

namespace mica::test {

/// One way of storing the matrices of a model. Every table of products has all of them.
struct Format {
  const char *name;
  const char *argument; ///< rows as a function of a test receives them
  const char *rows;     ///< rows as they enter a product; where this is another type they are cast
  const char *weight;
  double tolerance; ///< of a product
  /// Of two products one after the other, where what is in between is rounded to `rows`: a number
  /// near the middle of two may fall to the other side.
  double twiceTolerance;
};

inline constexpr Format kFormats[] = {
    {"f32", "f32", "f32", "f32", 2e-6, 4e-6},
    {"bf16", "bf16", "bf16", "bf16", 2e-6, 4e-3},
};

/// The keys of a format. `{take}` declares an argument of rows [T, K], `{cast}` makes %x of it.
inline Words wordsOf(const Format &format) {
  bool casts = llvm::StringRef(format.argument) != format.rows;
  return {
      {"take", casts ? "%a: tensor<?x{K}x{argument}>" : "%x: tensor<?x{K}x{rows}>"},
      {"cast", casts ? "%x = mica.cast %a : tensor<?x{K}x{argument}> to tensor<?x{K}x{rows}>" : ""},
      {"format", format.name},
      {"argument", format.argument},
      {"rows", format.rows},
      {"weight", format.weight}};
}

} // namespace mica::test

#endif // MICA_TESTS_UNIT_BACKENDS_CPU_LOWERING_FORMATS_H
