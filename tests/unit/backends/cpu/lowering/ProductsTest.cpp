//===- ProductsTest.cpp - matmuls with weights, embedding tables ----------===//

#include "tests/unit/backends/cpu/lowering/Formats.h"
#include "tests/unit/backends/cpu/lowering/KernelTest.h"

#include "llvm/ADT/StringExtras.h"

using namespace mica;
using namespace mica::test;

namespace {

/// What a matmul adds to its results.
struct Epilogue {
  const char *name, *operands;
};
constexpr Epilogue kPlain = {"plain", ""}, kEpilogues[] = {{"both", kBiasAndResidual},
                                                           {"bias", kBias},
                                                           {"residual", kResidual}};

/// Columns: one, less than a vector, a whole block of 64, one less and one more, several blocks.
/// Depths likewise, even and odd: a group of 32 integers, less, more, and several.
struct Shape {
  int n, k;
};
constexpr Shape kShapes[] = {{1, 33}, {64, 127}, {130, 32}, {63, 7},
                             {17, 1}, {65, 64},  {17, 2},   {65, 94}};

/// A whole table or, for integers, whose kernels take long to compile, its first entries.
template <typename T>
llvm::ArrayRef<T> some(llvm::ArrayRef<T> table, const Format &format, size_t n) {
  return format.hasIntegers() ? table.take_front(n) : table;
}

KernelCase linear(const Format &format, const Epilogue &epilogue, int n, int k,
                  const char *kernel) {
  Words words = {{"epilogue", epilogue.name},
                 {"operands", epilogue.operands + std::string(" kernel({kernel})")},
                 {"kernel", kernel}};
  llvm::append_range(words, wordsOf(format));
  words.emplace_back("K", k);
  words.emplace_back("N", n);
  return makeCase("linear_{format}_{epilogue}_{kernel}_{N}x{K}", kLinear, words,
                  toleranceOfProduct(format, k));
}

TEST_P(KernelTest, HeadLinear) {
  struct Heads {
    int count, n, k;
  };
  constexpr Heads kHeads[] = {{3, 24, 7}, {4, 1, 32}, {5, 65, 33}, {2, 192, 64}};
  std::vector<KernelCase> cases;
  for (const Format &format : kFormats)
    for (Heads heads : some<Heads>(kHeads, format, 2)) {
      Words words = wordsOf(format);
      words.insert(words.end(), {{"K", "{H}x{D}"}, {"H", heads.count}, {"D", heads.k}});
      words.emplace_back("N", heads.n);
      cases.push_back(makeCase("head_linear_{format}_{H}_{N}x{D}", kHeadLinear, words,
                               toleranceOfProduct(format, heads.k)));
    }
  check(cases);
}

TEST_P(KernelTest, LinearOfAllShapes) {
  std::vector<KernelCase> cases;
  for (const Format &format : kFormats)
    for (Shape shape : some<Shape>(kShapes, format, 3))
      cases.push_back(linear(format, kPlain, shape.n, shape.k, "generated"));
  check(cases);
}

/// Several blocks at once, several pieces of K, also for a single tile of rows, hundreds of rows:
/// the loops of AMX tiles.
TEST_P(KernelTest, LinearOfLargeBatches) {
  std::vector<KernelCase> cases;
  const Format &bf16 = kFormats[1];
  for (Shape shape : {Shape{577, 1064}, Shape{130, 544}, Shape{64, 8200}})
    cases.push_back(linear(bf16, kPlain, shape.n, shape.k, "generated"));
  for (KernelCase &row : cases)
    row.largeBatch = true;
  check(cases);
}

TEST_P(KernelTest, LinearWithBiasAndResidual) {
  std::vector<KernelCase> cases;
  for (const Format &format : kFormats)
    for (const Epilogue &epilogue : some<Epilogue>(kEpilogues, format, 1))
      cases.push_back(linear(format, epilogue, 81, 33, "generated"));
  check(cases);
}

KernelCase gatedLinear(const Format &format, const char *activation, int n, int k,
                       const char *result) {
  Words words = wordsOf(format);
  llvm::append_range(words, Words{{"activation", activation},
                                  {"result", result},
                                  {"both", 2 * roundUp(n, kBlockColumns)},
                                  {"N", n},
                                  {"K", k}});
  return makeCase("gated_{format}_{activation}_{result}_{N}x{K}", R"(
  mica.weight @{name}.w from ["{name}.g", "{name}.u"] interleave {test.rows = {N} : i64} : tensor<{both}x{K}x{weight}>
  func.func @{name}({take}) -> tensor<?x{N}x{result}> {
    {cast}
    %w = mica.get_weight @{name}.w : tensor<{both}x{K}x{weight}>
    %y = mica.gated_linear %x, %w {activation} : tensor<?x{K}x{rows}>, tensor<{both}x{K}x{weight}> -> tensor<?x{N}x{result}>
    return %y : tensor<?x{N}x{result}>
  })",
                  words, toleranceOfGatedProduct(format, k));
}

/// Activation functions result in long code, which does not depend on the format.
struct Gated {
  const char *activation, *result;
  int n, k;
  const char *formats;
};
constexpr Gated kGated[] = {{"relu", "f32", 130, 47, "f32 bf16 int8 int4"},
                            {"gelu", "f32", 64, 127, "f32"},
                            {"gelu_tanh", "bf16", 67, 7, "f32"},
                            {"gelu_tanh", "f32", 67, 7, "bf16"},
                            {"relu2", "f32", 67, 7, "f32"},
                            {"quick_gelu", "f32", 67, 7, "f32"},
                            {"silu", "f32", 1, 33, "f32"},
                            {"silu", "bf16", 1, 33, "bf16"},
                            {"relu", "f32", 1, 32, "int8 int4"}};

TEST_P(KernelTest, GatedLinear) {
  std::vector<KernelCase> cases;
  for (const Format &format : kFormats)
    for (const Gated &gated : kGated)
      if (llvm::is_contained(llvm::split(gated.formats, ' '), llvm::StringRef(format.name)))
        cases.push_back(gatedLinear(format, gated.activation, gated.n, gated.k, gated.result));
  check(cases);
}

TEST_P(KernelTest, GatedLinearOfLargeBatches) {
  KernelCase row = gatedLinear(kFormats[1], "relu", 330, 520, "f32");
  row.largeBatch = true;
  check(row);
}

/// An embedding that is also used for the logits is packed; another one is stored by rows.
TEST_P(KernelTest, EmbeddingAndHead) {
  std::vector<KernelCase> cases;
  const char *embedding = R"(
  mica.weight @{name}.w : tensor<{V}x{K}x{weight}>
  func.func @{name}(%tokens: tensor<?xi32> {test.below = {V} : i64}) -> tensor<?x{K}xf32> {
    %w = mica.get_weight @{name}.w : tensor<{V}x{K}x{weight}>
    %y = mica.embedding %tokens, %w : tensor<?xi32>, tensor<{V}x{K}x{weight}> -> tensor<?x{K}xf32>
    return %y : tensor<?x{K}xf32>
  })";
  const char *head = R"(
  func.func @{name}({take}) -> tensor<?x{V}xf32> {
    {cast}
    %w = mica.get_weight @tied_{format}.w : tensor<{V}x{K}x{weight}>
    %y = mica.lm_head %x, %w : tensor<?x{K}x{rows}>, tensor<{V}x{K}x{weight}> -> tensor<?x{V}xf32>
    return %y : tensor<?x{V}xf32>
  })";
  for (const Format &format : kFormats) {
    Words words = wordsOf(format);
    words.emplace_back("V", 97);
    words.emplace_back("K", 33);
    cases.push_back(makeCase("untied_{format}", embedding, words, 0));
    cases.push_back(makeCase("tied_{format}", embedding, words, 0));
    cases.push_back(makeCase("lm_head_{format}", head, words, toleranceOfProduct(format, 33)));
  }
  check(cases);
}

/// The rows of a matmul may be columns of a wider one. The function has the name of every program's
/// entry: both must be distinguished.
TEST_P(KernelTest, LinearOfColumns) {
  check(makeCase("main", R"(
  mica.weight @w : tensor<65x33xf32>
  func.func @{name}(%x: tensor<?x98xf32>) -> tensor<?x65xf32> {
    %w = mica.get_weight @w : tensor<65x33xf32>
    %a, %b = mica.split %x : tensor<?x98xf32> -> tensor<?x65xf32>, tensor<?x33xf32>
    %y = mica.linear %b, %w : tensor<?x33xf32>, tensor<65x33xf32> -> tensor<?x65xf32>
    %z = mica.add %y, %a : tensor<?x65xf32>
    return %z : tensor<?x65xf32>
  })",
                 {}, toleranceOfProduct(33)));
}

} // namespace
