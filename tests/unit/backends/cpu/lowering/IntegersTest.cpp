//===- IntegersTest.cpp - rows of integers, and products by oneDNN ---------===//

#include "tests/unit/backends/cpu/lowering/Formats.h"

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

/// A vector and a rest, a group and a rest of less than a vector, as many as need no padding, a
/// rest behind those.
constexpr int kDepths[] = {17, 47, 64, 130};

/// What makes rows of integers: %q of the argument %x: tensor<?x{given}xf32>.
struct Maker {
  const char *name, *text;
  bool isExact; ///< whether the numbers that are rounded are those of the interpreter
};
constexpr Maker kMakers[] = {
    {"cast", "%q = mica.cast %x : tensor<?x{K}xf32> to tensor<?x{K}x!mica.int8>", true},
    {"rmsnorm", R"(
    %g = mica.get_weight @{name}.g : tensor<{K}xf32>
    %q = mica.rmsnorm %x, %g eps(1.0e-03) gain_offset(1.0) : tensor<?x{K}xf32>, tensor<{K}xf32> -> tensor<?x{K}x!mica.int8>)",
     false},
    {"layernorm", R"(
    %g = mica.get_weight @{name}.g : tensor<{K}xf32>
    %b = mica.get_weight @{name}.b : tensor<{K}xf32>
    %q = mica.layernorm %x, %g bias(%b : tensor<{K}xf32>) eps(1.0e-03)
        : tensor<?x{K}xf32>, tensor<{K}xf32> -> tensor<?x{K}x!mica.int8>)",
     false},
    {"glu", "%q = mica.glu %x gelu : tensor<?x{given}xf32> -> tensor<?x{K}x!mica.int8>", false}};

/// Every kernel that writes rows of integers, and both that read them: integers, sums of groups and
/// scales.
TEST_P(KernelTest, RowsOfIntegers) {
  std::vector<KernelCase> cases;
  for (const Format &format : integerFormats())
    for (const Maker &maker : kMakers)
      for (int k : kDepths) {
        Words words = wordsOf(format);
        bool isGlu = llvm::StringRef(maker.name) == "glu";
        llvm::append_range(words, Words{{"maker", maker.name},
                                        {"make", maker.text},
                                        {"given", isGlu ? 2 * roundUp(k, kBlockColumns) : k},
                                        {"K", k}});
        // `make` has keys of its own.
        std::string name = fill("rows_{format}_{maker}_{K}", words);
        words.emplace_back("name", name);
        cases.push_back(makeCase(name, R"(
  mica.weight @{name}.w : tensor<21x{K}x{weight}>
  mica.weight @{name}.g : tensor<{K}xf32>
  mica.weight @{name}.b : tensor<{K}xf32>
  func.func @{name}(%x: tensor<?x{given}xf32> {test.uneven}) -> tensor<?x21xf32> {
    {make}
    %w = mica.get_weight @{name}.w : tensor<21x{K}x{weight}>
    %y = mica.linear %q, %w : tensor<?x{K}x!mica.int8>, tensor<21x{K}x{weight}> -> tensor<?x21xf32>
    return %y : tensor<?x21xf32>
  })",
                                 words, maker.isExact ? toleranceOfProduct(k) : format.rounded));
      }
  check(cases);
}

/// Rows that were rounded before.
TEST_P(KernelTest, IntegersOfNarrowRows) {
  std::vector<KernelCase> cases;
  for (const Format &format : integerFormats()) {
    Words words = wordsOf(format);
    words.emplace_back("K", 47);
    cases.push_back(makeCase("narrow_{format}", R"(
  mica.weight @{name}.w : tensor<21x{K}x{weight}>
  func.func @{name}(%x: tensor<?x{K}xbf16> {test.uneven}) -> tensor<?x21xf32> {
    %q = mica.cast %x : tensor<?x{K}xbf16> to tensor<?x{K}x!mica.int8>
    %w = mica.get_weight @{name}.w : tensor<21x{K}x{weight}>
    %y = mica.linear %q, %w : tensor<?x{K}x!mica.int8>, tensor<21x{K}x{weight}> -> tensor<?x21xf32>
    return %y : tensor<?x21xf32>
  })",
                             words, toleranceOfProduct(47)));
  }
  check(cases);
}

/// Part of a panel of 1024 columns, one and a part, two and a part.
constexpr int kColumns[] = {65, 1090, 2100};

/// Sums of integers by oneDNN end as those of a generated kernel do.
TEST_P(KernelTest, IntegerLinearByALibrary) {
  std::vector<KernelCase> cases;
  for (const Format &format : integerFormats())
    for (int n : kColumns)
      for (const char *kernel : {"generated", "onednn"}) {
        Words words = {{"kernel", kernel}};
        llvm::append_range(words, wordsOf(format));
        words.emplace_back("K", 70);
        words.emplace_back("N", n);
        bool plain = n == 65;
        words.emplace_back(
            "operands", plain ? "" : "bias(%b : tensor<{N}xf32>) residual(%r : tensor<?x{N}xf32>)");
        words.emplace_back("N", n);
        bool first = llvm::StringRef(kernel) == "generated";
        std::string weights = R"(
  mica.weight @library_{format}_{N}.w : tensor<{N}x{K}x{weight}>
  mica.weight @library_{format}_{N}.b : tensor<{N}xf32>)";
        cases.push_back(makeCase("library_{kernel}_{format}_{N}", (first ? weights : "") + R"(
  func.func @{name}({take}, %r: tensor<?x{N}xf32>) -> tensor<?x{N}xf32> {
    {cast}
    %w = mica.get_weight @library_{format}_{N}.w : tensor<{N}x{K}x{weight}>
    %b = mica.get_weight @library_{format}_{N}.b : tensor<{N}xf32>
    %y = mica.linear %x, %w {operands} kernel({kernel}) : tensor<?x{K}x{rows}>, tensor<{N}x{K}x{weight}> -> tensor<?x{N}xf32>
    return %y : tensor<?x{N}xf32>
  })",
                                 words, toleranceOfProduct(70)));
        if (!first)
          cases.back().sameAs = cases[cases.size() - 2].name;
      }
  check(cases);
}

TEST_P(KernelTest, IntegerGatedLinearByALibrary) {
  std::vector<KernelCase> cases;
  for (const Format &format : integerFormats())
    for (auto [inner, activation] :
         {std::pair(33, "silu"), std::pair(520, "gelu"), std::pair(1100, "gelu_tanh")})
      for (const char *kernel : {"generated", "onednn"}) {
        Words words = {{"kernel", kernel}, {"activation", activation}};
        llvm::append_range(words, wordsOf(format));
        llvm::append_range(
            words, Words{{"K", 33}, {"both", 2 * roundUp(inner, kBlockColumns)}, {"N", inner}});
        bool first = llvm::StringRef(kernel) == "generated";
        std::string weight = R"(
  mica.weight @both_{format}_{N}.w from ["{name}.g", "{name}.u"] interleave {test.rows = {N} : i64} : tensor<{both}x{K}x{weight}>)";
        cases.push_back(makeCase("gated_{kernel}_{format}_{N}", (first ? weight : "") + R"(
  func.func @{name}({take}) -> tensor<?x{N}xf32> {
    {cast}
    %w = mica.get_weight @both_{format}_{N}.w : tensor<{both}x{K}x{weight}>
    %y = mica.gated_linear %x, %w {activation} kernel({kernel}) : tensor<?x{K}x{rows}>, tensor<{both}x{K}x{weight}> -> tensor<?x{N}xf32>
    return %y : tensor<?x{N}xf32>
  })",
                                 words, toleranceOfGatedProduct(33)));
        if (!first)
          cases.back().sameAs = cases[cases.size() - 2].name;
      }
  check(cases);
}

} // namespace
