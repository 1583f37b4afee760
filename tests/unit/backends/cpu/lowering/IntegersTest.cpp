//===- IntegersTest.cpp - rows of integers -----------------------------===//

#include "tests/unit/backends/cpu/lowering/Formats.h"
#include "tests/unit/backends/cpu/lowering/KernelTest.h"

using namespace mica;
using namespace mica::test;

namespace {

/// The formats whose rows are integers.
std::vector<Format> integerFormats() {
  std::vector<Format> formats;
  llvm::copy_if(kFormats, std::back_inserter(formats),
                [](const Format &format) { return format.hasIntegers(); });
  return formats;
}

/// A group and a rest of less than a vector, as many as need no padding, a rest behind those that
/// is a vector and one more.
constexpr int kDepths[] = {47, 64, 145};

/// What makes rows of integers: %q of the argument %x: tensor<?x{K}x{given}>.
struct Maker {
  const char *name, *given, *text;
  bool isExact; ///< whether the numbers that are rounded are those of the interpreter
};
constexpr Maker kMakers[] = {
    {"cast", "f32", "%q = mica.cast %x : tensor<?x{K}xf32> to tensor<?x{K}x!mica.int8>", true},
    {"narrow", "bf16", "%q = mica.cast %x : tensor<?x{K}xbf16> to tensor<?x{K}x!mica.int8>", true},
    {"rmsnorm", "f32", R"(
    %g = mica.get_weight @{name}.g : tensor<{K}xf32>
    %q = mica.rmsnorm %x, %g eps(1.0e-03) gain_offset(1.0) : tensor<?x{K}xf32>, tensor<{K}xf32> -> tensor<?x{K}x!mica.int8>)",
     false},
    {"layernorm", "f32", R"(
    %g = mica.get_weight @{name}.g : tensor<{K}xf32>
    %b = mica.get_weight @{name}.b : tensor<{K}xf32>
    %q = mica.layernorm %x, %g bias(%b : tensor<{K}xf32>) eps(1.0e-03)
        : tensor<?x{K}xf32>, tensor<{K}xf32> -> tensor<?x{K}x!mica.int8>)",
     false},
};

/// Every kernel that writes rows of integers, and both that read them: integers, sums of groups and
/// scales.
TEST_P(IntegerKernelTest, RowsOfIntegers) {
  std::vector<KernelCase> cases;
  for (const Format &format : integerFormats())
    for (const Maker &maker : kMakers)
      for (int k : kDepths) {
        Words words = wordsOf(format);
        llvm::append_range(
            words,
            Words{{"maker", maker.name}, {"make", maker.text}, {"given", maker.given}, {"K", k}});
        // `make` has keys of its own.
        std::string name = fill("rows_{format}_{maker}_{K}", words);
        words.emplace_back("name", name);
        cases.push_back(makeCase(name, R"(
  mica.weight @{name}.w : tensor<21x{K}x{weight}>
  mica.weight @{name}.g : tensor<{K}xf32>
  mica.weight @{name}.b : tensor<{K}xf32>
  func.func @{name}(%x: tensor<?x{K}x{given}> {test.uneven}) -> tensor<?x21xf32> {
    {make}
    %w = mica.get_weight @{name}.w : tensor<21x{K}x{weight}>
    %y = mica.linear %q, %w : tensor<?x{K}x!mica.int8>, tensor<21x{K}x{weight}> -> tensor<?x21xf32>
    return %y : tensor<?x21xf32>
  })",
                                 words, maker.isExact ? toleranceOfProduct(k) : format.rounded));
      }
  check(cases);
}

} // namespace
