//===- LibraryTest.cpp - oneDNN matmuls and their epilogues ---------------===//

#include "backends/cpu/dispatch/CostModel.h"
#include "backends/cpu/layout/SumOrder.h"
#include "tests/unit/backends/cpu/lowering/Formats.h"
#include "tests/unit/backends/cpu/lowering/KernelTest.h"

using namespace mica;
using namespace mica::test;

namespace {

/// Whether oneDNN adds in the order of sumSegment on this machine: with AMX, only in f32.
bool addsInSegments() { return !llvm::cantFail(cpu::describeTarget("native")).tiles; }

/// The formats that oneDNN supports on this machine without its reference implementation.
std::vector<Format> libraryFormats() {
  cpu::TargetDescription native = llvm::cantFail(cpu::describeTarget("native"));
  std::vector<Format> formats;
  for (const Format &format : kFormats)
    if (native.vectorBits == 512 && !format.hasIntegers() &&
        (native.bf16Dot || format.name != std::string("bf16")))
      formats.push_back(format);
  return formats;
}

KernelCase byLibrary(KernelCase row) {
  row.exactRows = addsInSegments();
  row.tolerance.max = 1e-5;
  return row;
}

/// Columns (panels have 1024), depth K, and the values that are added to the results.
struct Linear {
  const char *name;
  int n, k;
  const char *operands;
};
constexpr Linear kLinears[] = {{"single", 1, 32, kResidual},
                               {"residual", 65, 70, kResidual},
                               {"both", 1090, 70, kBiasAndResidual},
                               {"bias", 2100, 70, kBias}};

TEST_P(KernelTest, LibraryLinear) {
  std::vector<KernelCase> cases;
  for (const Format &format : libraryFormats())
    for (const Linear &linear : kLinears) {
      Words words = {{"case", linear.name},
                     {"operands", linear.operands + std::string(" kernel(onednn)")}};
      llvm::append_range(words, wordsOf(format));
      llvm::append_range(words, Words{{"K", linear.k}, {"N", linear.n}});
      cases.push_back(byLibrary(
          makeCase("library_{format}_{case}", kLinear, words, toleranceOfProduct(linear.k))));
    }
  check(cases);
}

TEST_P(KernelTest, LibraryGatedLinear) {
  std::vector<KernelCase> cases;
  for (const Format &format : libraryFormats())
    for (auto [inner, activation, result] :
         {std::tuple(33, "silu", format.argument), std::tuple(1100, "gelu_tanh", "f32")}) {
      Words words = {{"case", activation}, {"activation", activation}, {"result", result}};
      llvm::append_range(words, wordsOf(format));
      llvm::append_range(
          words, Words{{"both", 2 * roundUp(inner, kBlockColumns)}, {"N", inner}, {"K", 33}});
      cases.push_back(byLibrary(makeCase("library_gated_{format}_{case}", R"(
  mica.weight @{name}.w from ["{name}.g", "{name}.u"] interleave {test.rows = {N} : i64} : tensor<{both}x{K}x{weight}>
  func.func @{name}({take}) -> tensor<?x{N}x{result}> {
    {cast}
    %w = mica.get_weight @{name}.w : tensor<{both}x{K}x{weight}>
    %y = mica.gated_linear %x, %w {activation} kernel(onednn) : tensor<?x{K}x{rows}>, tensor<{both}x{K}x{weight}> -> tensor<?x{N}x{result}>
    return %y : tensor<?x{N}x{result}>
  })",
                                         words, toleranceOfGatedProduct(33))));
    }
  check(cases);
}

/// Results do not depend on whether a call is large enough for oneDNN.
TEST_P(KernelTest, GeneratedKernelsSumInTheOrderOfTheLibrary) {
  std::vector<KernelCase> cases;
  auto costs = cpu::KernelCosts::of(llvm::cantFail(describeTestTarget(GetParam())));
  for (const Format &format : libraryFormats()) {
    bool isBf16 = format.name == std::string("bf16");
    if (isBf16 ? !costs.onednnBf16 || !addsInSegments() : !costs.onednnF32)
      continue;
    for (int k : {96, 512, 514, 1024, 1026, 1600, 2500}) {
      Words words = wordsOf(format);
      llvm::append_range(words, Words{{"K", k}, {"N", 70}, {"both", 256}});
      // Three matmuls, one of them gated, are added.
      Tolerance gated = toleranceOfGatedProduct(k),
                sumTolerance{2 * gated.max, 2 * gated.usual, gated.size};
      KernelCase row = makeCase("segments_{format}_{K}", R"(
  mica.weight @{name}.w : tensor<{N}x{K}x{weight}>
  mica.weight @{name}.b : tensor<{N}xf32>
  mica.weight @{name}.gated from ["{name}.g", "{name}.u"] interleave {test.rows = {N} : i64} : tensor<{both}x{K}x{weight}>
  func.func @{name}({take}, %r: tensor<?x{N}xf32>) -> (tensor<?x{N}xf32>, tensor<?x{N}xf32>) {
    {cast}
    %w = mica.get_weight @{name}.w : tensor<{N}x{K}x{weight}>
    %b = mica.get_weight @{name}.b : tensor<{N}xf32>
    %gated = mica.get_weight @{name}.gated : tensor<{both}x{K}x{weight}>
    %l = mica.linear %x, %w residual(%r : tensor<?x{N}xf32>) kernel(onednn) : tensor<?x{K}x{rows}>, tensor<{N}x{K}x{weight}> -> tensor<?x{N}xf32>
    %m = mica.linear %x, %w bias(%b : tensor<{N}xf32>) residual(%l : tensor<?x{N}xf32>) kernel(onednn) : tensor<?x{K}x{rows}>, tensor<{N}x{K}x{weight}> -> tensor<?x{N}xf32>
    %n = mica.gated_linear %x, %gated silu kernel(onednn) : tensor<?x{K}x{rows}>, tensor<{both}x{K}x{weight}> -> tensor<?x{N}xf32>
    %o = mica.add %m, %n : tensor<?x{N}xf32>
    %p = mica.linear %x, %w residual(%r : tensor<?x{N}xf32>) kernel(generated) : tensor<?x{K}x{rows}>, tensor<{N}x{K}x{weight}> -> tensor<?x{N}xf32>
    %q = mica.linear %x, %w bias(%b : tensor<{N}xf32>) residual(%p : tensor<?x{N}xf32>) kernel(generated) : tensor<?x{K}x{rows}>, tensor<{N}x{K}x{weight}> -> tensor<?x{N}xf32>
    %s = mica.gated_linear %x, %gated silu kernel(generated) : tensor<?x{K}x{rows}>, tensor<{both}x{K}x{weight}> -> tensor<?x{N}xf32>
    %t = mica.add %q, %s : tensor<?x{N}xf32>
    return %o, %t : tensor<?x{N}xf32>, tensor<?x{N}xf32>
  })",
                                words, sumTolerance);
      row.exactRows = false; // oneDNN sums a single row in another order
      row.equalResults = true;
      cases.push_back(row);
    }
  }
  check(cases);
}

} // namespace
