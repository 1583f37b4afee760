//===- LibraryTest.cpp - products by oneDNN and what follows them ----------===//

#include "tests/unit/backends/cpu/lowering/Formats.h"
#include "tests/unit/backends/cpu/lowering/KernelTest.h"

using namespace mica;
using namespace mica::test;

namespace {

/// The formats that oneDNN multiplies on this machine without its reference implementation.
std::vector<Format> libraryFormats() {
  cpu::TargetDescription native = llvm::cantFail(cpu::describeTarget("native"));
  std::vector<Format> formats;
  for (const Format &format : kFormats)
    if (native.vectorBits == 512 && (native.avx512Bf16 || format.name != std::string("bf16")) &&
        (native.vnni || !format.hasIntegers()))
      formats.push_back(format);
  return formats;
}

/// Which tile oneDNN takes depends on the number of rows; sums of integers do not.
KernelCase byLibrary(KernelCase row, const Format &format) {
  row.exactRows = format.hasIntegers();
  row.tolerance.most = 1e-5;
  return row;
}

/// Columns, of which panels have 1024, their depth, and what is added to them.
struct Linear {
  const char *name;
  int n, k;
  const char *operands;
};
constexpr Linear kLinears[] = {
    {"single", 1, 32, "residual(%r : tensor<?x{N}xf32>)"},
    {"residual", 65, 70, "residual(%r : tensor<?x{N}xf32>)"},
    {"both", 1090, 70, "bias(%b : tensor<{N}xf32>) residual(%r : tensor<?x{N}xf32>)"},
    {"bias", 2100, 70, "bias(%b : tensor<{N}xf32>)"}};

/// A case of a product by oneDNN: `weights` and the function `text`. With `both` one by a generated
/// kernel besides, of integers, which end alike whoever sums them.
void addCases(bool both, std::vector<KernelCase> &cases, const std::string &weights,
              const std::string &text, const Format &format, const Words &words,
              const Tolerance &tolerance) {
  auto with = [&](const char *kernel) {
    Words own = {{"kernel", kernel}};
    llvm::append_range(own, words);
    return own;
  };
  std::string name = "{kernel}_{format}_{case}";
  KernelCase library = byLibrary(makeCase(name, weights + text, with("onednn"), tolerance), format);
  cases.push_back(library);
  if (!both || !format.hasIntegers())
    return;
  cases.push_back(makeCase(name, text, with("generated"), tolerance));
  cases.back().sameAs = library.name;
}

TEST_P(KernelTest, LinearByALibrary) {
  std::vector<KernelCase> cases;
  for (const Format &format : libraryFormats())
    for (const Linear &linear : kLinears) {
      Words words = {{"case", linear.name}, {"operands", linear.operands}};
      llvm::append_range(words, wordsOf(format));
      llvm::append_range(words, Words{{"K", linear.k}, {"N", linear.n}});
      addCases(linear.n == 1090, cases, R"(
  mica.weight @{format}_{case}.w : tensor<{N}x{K}x{weight}>
  mica.weight @{format}_{case}.b : tensor<{N}xf32>)",
               R"(
  func.func @{name}({take}, %r: tensor<?x{N}xf32>) -> tensor<?x{N}xf32> {
    {cast}
    %w = mica.get_weight @{format}_{case}.w : tensor<{N}x{K}x{weight}>
    %b = mica.get_weight @{format}_{case}.b : tensor<{N}xf32>
    %y = mica.linear %x, %w {operands} kernel({kernel}) : tensor<?x{K}x{rows}>, tensor<{N}x{K}x{weight}> -> tensor<?x{N}xf32>
    return %y : tensor<?x{N}xf32>
  })",
               format, words, toleranceOfProduct(linear.k));
    }
  check(cases);
}

TEST_P(KernelTest, GatedLinearByALibrary) {
  std::vector<KernelCase> cases;
  for (const Format &format : libraryFormats())
    for (auto [inner, activation, result] :
         {std::tuple(33, "silu", format.argument), std::tuple(1100, "gelu_tanh", "f32")}) {
      Words words = {{"case", activation}, {"activation", activation}, {"result", result}};
      llvm::append_range(words, wordsOf(format));
      llvm::append_range(
          words, Words{{"both", 2 * roundUp(inner, kBlockColumns)}, {"N", inner}, {"K", 33}});
      addCases(inner == 33, cases, R"(
  mica.weight @{format}_{case}.w from ["{format}_{case}.g", "{format}_{case}.u"] interleave {test.rows = {N} : i64} : tensor<{both}x{K}x{weight}>)",
               R"(
  func.func @{name}({take}) -> tensor<?x{N}x{result}> {
    {cast}
    %w = mica.get_weight @{format}_{case}.w : tensor<{both}x{K}x{weight}>
    %y = mica.gated_linear %x, %w {activation} kernel({kernel}) : tensor<?x{K}x{rows}>, tensor<{both}x{K}x{weight}> -> tensor<?x{N}x{result}>
    return %y : tensor<?x{N}x{result}>
  })",
               format, words, toleranceOfGatedProduct(33));
    }
  check(cases);
}

} // namespace
