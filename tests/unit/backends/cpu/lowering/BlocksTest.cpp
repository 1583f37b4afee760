//===- BlocksTest.cpp - weights of integers with a scale for each block -----===//

#include "tests/unit/backends/cpu/lowering/Formats.h"
#include "tests/unit/backends/cpu/lowering/KernelTest.h"

using namespace mica;
using namespace mica::test;

namespace {

/// For each format and each of `sizes` (keys N and K, and `make`, which has keys of its own).
std::vector<KernelCase> casesOf(const char *name, std::initializer_list<Words> sizes,
                                const char *text, bool gated = false) {
  std::vector<KernelCase> cases;
  for (const Format &format : kBlockFormats)
    for (const Words &size : sizes) {
      Words words = wordsOf(format);
      llvm::append_range(words, size);
      // Of at most 160 columns.
      Tolerance tolerance = gated ? toleranceOfGatedProduct(160) : toleranceOfProduct(160);
      cases.push_back(makeCase(name, text, words, tolerance));
    }
  return cases;
}

/// One group; several, in pairs and not; blocks of 64 rows that are whole and that are not; one
/// row.
TEST_P(IntegerKernelTest, LinearOfBlocks) {
  check(casesOf("linear_{format}_{N}x{K}",
                {{{"N", 65}, {"K", 32}}, {{"N", 17}, {"K", 160}}, {{"N", 1}, {"K", 32}}}, R"(
  mica.weight @{name}.w : tensor<{N}x{K}x{weight}>
  mica.weight @{name}.b : tensor<{N}xf32>
  func.func @{name}({take}, %r: tensor<?x{N}xf32>) -> tensor<?x{N}xf32> {
    {cast}
    %w = mica.get_weight @{name}.w : tensor<{N}x{K}x{weight}>
    %b = mica.get_weight @{name}.b : tensor<{N}xf32>
    %y = mica.linear %x, %w bias(%b : tensor<{N}xf32>) residual(%r : tensor<?x{N}xf32>) : tensor<?x{K}x{rows}>, tensor<{N}x{K}x{weight}> -> tensor<?x{N}xf32>
    return %y : tensor<?x{N}xf32>
  })"));
}

TEST_P(IntegerKernelTest, GatedLinearOfBlocks) {
  check(casesOf("gated_{format}_{N}x{K}",
                {{{"N", 67}, {"both", 256}, {"K", 96}}, {{"N", 1}, {"both", 128}, {"K", 32}}}, R"(
  mica.weight @{name}.w from ["{name}.g", "{name}.u"] interleave {test.rows = {N} : i64} : tensor<{both}x{K}x{weight}>
  func.func @{name}({take}) -> tensor<?x{N}xf32> {
    {cast}
    %w = mica.get_weight @{name}.w : tensor<{both}x{K}x{weight}>
    %y = mica.gated_linear %x, %w relu : tensor<?x{K}x{rows}>, tensor<{both}x{K}x{weight}> -> tensor<?x{N}xf32>
    return %y : tensor<?x{N}xf32>
  })",
                /*gated=*/true));
}

TEST_P(IntegerKernelTest, HeadLinearOfBlocks) {
  check(casesOf("head_linear_{format}_{N}",
                {{{"N", 24}, {"D", 32}, {"K", "3x32"}}, {{"N", 1}, {"D", 32}, {"K", "3x32"}}}, R"(
  mica.weight @{name}.w : tensor<3x{N}x{D}x{weight}>
  func.func @{name}({take}) -> tensor<?x3x{N}xf32> {
    {cast}
    %w = mica.get_weight @{name}.w : tensor<3x{N}x{D}x{weight}>
    %y = mica.head_linear %x, %w : tensor<?x{K}x{rows}>, tensor<3x{N}x{D}x{weight}> -> tensor<?x3x{N}xf32>
    return %y : tensor<?x3x{N}xf32>
  })"));
}

/// The rows of a table are the checkpoint's numbers.
TEST_P(IntegerKernelTest, TablesOfBlocks) {
  std::vector<KernelCase> cases = casesOf("table_{format}", {{{"V", 97}, {"K", 96}}}, R"(
  mica.weight @{name}.w : tensor<{V}x{K}x{weight}>
  func.func @{name}(%tokens: tensor<?xi32> {test.below = {V} : i64}) -> tensor<?x{K}xf32> {
    %w = mica.get_weight @{name}.w : tensor<{V}x{K}x{weight}>
    %y = mica.embedding %tokens, %w : tensor<?xi32>, tensor<{V}x{K}x{weight}> -> tensor<?x{K}xf32>
    return %y : tensor<?x{K}xf32>
  })");
  for (KernelCase &table : cases)
    table.tolerance = 0;
  llvm::append_range(cases, casesOf("lm_head_{format}", {{{"V", 97}, {"K", 96}}}, R"(
  func.func @{name}({take}) -> tensor<?x{V}xf32> {
    {cast}
    %w = mica.get_weight @table_{format}.w : tensor<{V}x{K}x{weight}>
    %y = mica.lm_head %x, %w : tensor<?x{K}x{rows}>, tensor<{V}x{K}x{weight}> -> tensor<?x{V}xf32>
    return %y : tensor<?x{V}xf32>
  })"));
  check(cases);
}

/// Norms that make rows in blocks; experts, whose inner rows are made between their products:
/// both with rows, and the first without any.
TEST_P(IntegerKernelTest, MakersOfBlocks) {
  std::vector<KernelCase> cases = casesOf("norms_{format}", {{{"K", 96}}}, R"(
  mica.weight @{name}.g : tensor<{K}xf32>
  mica.weight @{name}.w : tensor<21x{K}x{weight}>
  func.func @{name}(%x: tensor<?x{K}xf32> {test.uneven}) -> (tensor<?x21xf32>, tensor<?x21xf32>) {
    %g = mica.get_weight @{name}.g : tensor<{K}xf32>
    %w = mica.get_weight @{name}.w : tensor<21x{K}x{weight}>
    %p = mica.rmsnorm %x, %g eps(1.0e-03) : tensor<?x{K}xf32>, tensor<{K}xf32> -> tensor<?x{K}x{rows}>
    %q = mica.layernorm %x, %g eps(1.0e-03) : tensor<?x{K}xf32>, tensor<{K}xf32> -> tensor<?x{K}x{rows}>
    %y = mica.linear %p, %w : tensor<?x{K}x{rows}>, tensor<21x{K}x{weight}> -> tensor<?x21xf32>
    %z = mica.linear %q, %w : tensor<?x{K}x{rows}>, tensor<21x{K}x{weight}> -> tensor<?x21xf32>
    return %y, %z : tensor<?x21xf32>, tensor<?x21xf32>
  })");
  llvm::append_range(cases, casesOf("experts_{format}_{inner}x{K}",
                                    {{{"K", 64}, {"inner", 96}, {"both", 256}, {"among", "[0, 1]"}},
                                     {{"K", 32}, {"inner", 32}, {"both", 128}, {"among", "[1]"}}},
                                    R"(
  mica.weight @{name}.up from ["{name}.g0", "{name}.u0", "{name}.g1", "{name}.u1"] stack parts(2) {test.rows = {inner} : i64}
      : tensor<2x{both}x{K}x{weight}>
  mica.weight @{name}.down from ["{name}.d0", "{name}.d1"] stack : tensor<2x{K}x{inner}x{weight}>
  func.func @{name}({take}, %w: tensor<?x1xf32>, %e: tensor<?x1xi32> {test.among = {among}}) -> tensor<?x{K}xf32> {
    {cast}
    %up = mica.get_weight @{name}.up : tensor<2x{both}x{K}x{weight}>
    %down = mica.get_weight @{name}.down : tensor<2x{K}x{inner}x{weight}>
    %y = mica.moe_experts %x, %w, %e, %up, %down relu inner({inner}) : tensor<?x{K}x{rows}>, tensor<?x1xf32>,
        tensor<?x1xi32>, tensor<2x{both}x{K}x{weight}>, tensor<2x{K}x{inner}x{weight}> -> tensor<?x{K}xf32>
    return %y : tensor<?x{K}xf32>
  })"));
  for (KernelCase &row : cases)
    row.tolerance = kBlockFormats[0].rounded;
  check(cases);
}

} // namespace
