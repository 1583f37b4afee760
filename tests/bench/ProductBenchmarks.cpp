// Matmuls with weights, of few and many rows; experts, MoE routing, embeddings.
#include "tests/bench/KernelBenchmarks.h"
#include "tests/unit/backends/cpu/lowering/Arguments.h"

#include <cmath>

using namespace mlir;
using namespace mica::test;

namespace mica::bench {

namespace {
constexpr int64_t generatedRows[] = {1, 2, 4, 8, 16, 32, 64, 128, 512};

/// Gate with up of Llama-3.2-1B and of MiniMind's 104M. Matmuls that add to their results: q with k
/// and v of Qwen2.5-0.5B has a bias, every down a residual.
constexpr Shape gatedShapes[] = {{8192, 2048}, {2048, 768}}, biasedShape = {1152, 896},
                residualShape = {2048, 8192};

/// `text` for functions 0 to `count` - 1, which replace {f}.
std::string repeated(const std::string &text, int64_t count) {
  std::string all;
  for (int64_t number = 0; number < count; ++number)
    all += fill(text, {{"f", number}});
  return all;
}

/// Functions of one text with `weights` weight elements each; all share the values of their
/// weights, which are created once. `sizes` are the placeholders of name and text besides those of
/// the format.
KernelBenchmark overWeights(const Format &format, const Words &sizes, double weights,
                            const char *name, const char *text, ArrayRef<int64_t> rows,
                            double flopsPerRow) {
  Words words = evenWordsOf(format);
  llvm::append_range(words, sizes);
  KernelBenchmark made;
  made.name = fill(name, words);
  made.format = peaksOf(format);
  made.functions = copiesOf(weights * bitsOf(format) / 8);
  made.text = repeated(fill(text, words), made.functions);
  made.rows = rows.vec();
  made.arguments = randomArguments;
  made.work = [flopsPerRow](double weightBytes, int64_t rows) {
    return Work{weightBytes, flopsPerRow * double(rows)};
  };
  return made;
}

/// What a matmul adds to its result, and the argument for it.
struct Addend {
  const char *name, *operand, *argument;
};
constexpr Addend nothing = {"", "", ""}, bias = {"_bias", "bias(%b : tensor<{N}xf32>)", ""},
                 residual = {"_residual", "residual(%r : tensor<?x{N}xf32>)",
                             ", %r: tensor<?x{N}xf32>"};

/// A matmul with `n` columns and depth `k`.
KernelBenchmark product(const Format &format, Shape shape, const char *kernel,
                        ArrayRef<int64_t> rows, const Addend &addend = nothing) {
  auto weights = double(shape.n * shape.k);
  return overWeights(format,
                     {{"kernel", kernel},
                      {"addend", addend.name},
                      {"operand", addend.operand},
                      {"added", addend.argument},
                      {"K", shape.k},
                      {"N", shape.n}},
                     weights, "linear{addend}/{kernel}/{format}/{N}x{K}", R"(
  mica.weight @w{f} from ["w"] concat : tensor<{N}x{K}x{weight}>
  mica.weight @b{f} from ["b"] concat : tensor<{N}xf32>
  func.func @f{f}({take}{added}) -> tensor<?x{N}xf32> {
    {cast}
    %w = mica.get_weight @w{f} : tensor<{N}x{K}x{weight}>
    %b = mica.get_weight @b{f} : tensor<{N}xf32>
    %y = mica.linear %x, %w {operand} kernel({kernel}) : tensor<?x{K}x{rows}>, tensor<{N}x{K}x{weight}> -> tensor<?x{N}xf32>
    return %y : tensor<?x{N}xf32>
  })",
                     rows, 2 * weights);
}

/// Gate and up with the activation.
KernelBenchmark gatedProduct(const Format &format, Shape shape, const char *kernel,
                             ArrayRef<int64_t> rows) {
  auto weights = 2 * double(shape.n * shape.k);
  return overWeights(format,
                     {{"kernel", kernel}, {"K", shape.k}, {"N", shape.n}, {"both", 2 * shape.n}},
                     weights, "gated/{kernel}/{format}/{N}x{K}", R"(
  mica.weight @w{f} from ["g", "u"] interleave {test.rows = {N} : i64} : tensor<{both}x{K}x{weight}>
  func.func @f{f}({take}) -> tensor<?x{N}x{argument}> {
    {cast}
    %w = mica.get_weight @w{f} : tensor<{both}x{K}x{weight}>
    %y = mica.gated_linear %x, %w silu kernel({kernel}) : tensor<?x{K}x{rows}>, tensor<{both}x{K}x{weight}> -> tensor<?x{N}x{argument}>
    return %y : tensor<?x{N}x{argument}>
  })",
                     rows, 2 * weights);
}

/// Numbers of experts, in total and per row, and the shapes of their matrices.
struct Experts {
  int64_t all, chosen, columns, inner;
};
/// MiniMind 2; and a small model with many experts.
constexpr Experts expertShapes[] = {{4, 2, 640, 1728}, {32, 4, 1024, 768}};

/// The names of all tensors of `letters` for that many experts: ["g0", "u0", "g1", ...].
std::string namesOf(llvm::StringRef letters, int64_t experts) {
  std::string names;
  for (int64_t expert = 0; expert < experts; ++expert)
    for (char letter : letters)
      names +=
          (names.empty() ? "[\"" : ", \"") + std::string(1, letter) + std::to_string(expert) + '"';
  return names + "]";
}

KernelBenchmark experts(const Format &format, const Experts &shape) {
  double weights = 3.0 * double(shape.columns * shape.inner),
         flopsPerRow = 2 * double(shape.chosen) * weights;
  std::string among;
  for (int64_t expert = 0; expert < shape.all; ++expert)
    among += (expert ? ", " : "[") + std::to_string(expert);
  KernelBenchmark made =
      overWeights(format,
                  {{"upNames", namesOf("gu", shape.all)},
                   {"downNames", namesOf("d", shape.all)},
                   {"among", among + "]"},
                   {"E", shape.all},
                   {"K", shape.columns},
                   {"inner", shape.inner},
                   {"both", 2 * roundUp(shape.inner, kBlockColumns)},
                   {"k", shape.chosen}},
                  double(shape.all) * weights, "experts/generated/{format}/{E}x{inner}x{K}", R"(
  mica.weight @up{f} from {upNames} stack parts(2) {test.rows = {inner} : i64} : tensor<{E}x{both}x{K}x{weight}>
  mica.weight @down{f} from {downNames} stack : tensor<{E}x{K}x{inner}x{weight}>
  func.func @f{f}({take}, %w: tensor<?x{k}xf32>, %e: tensor<?x{k}xi32> {test.among = {among}}) -> tensor<?x{K}xf32> {
    {cast}
    %up = mica.get_weight @up{f} : tensor<{E}x{both}x{K}x{weight}>
    %down = mica.get_weight @down{f} : tensor<{E}x{K}x{inner}x{weight}>
    %y = mica.moe_experts %x, %w, %e, %up, %down silu inner({inner}) : tensor<?x{K}x{rows}>, tensor<?x{k}xf32>,
        tensor<?x{k}xi32>, tensor<{E}x{both}x{K}x{weight}>, tensor<{E}x{K}x{inner}x{weight}> -> tensor<?x{K}xf32>
    return %y : tensor<?x{K}xf32>
  })",
                  {1, 8, 16, 128, 512}, flopsPerRow);
  // Only chosen experts are read: a single row reads its own, several rows read most of them.
  made.work = [=](double weightBytes, int64_t rows) {
    double idle = std::pow(1 - double(shape.chosen) / double(shape.all), double(rows));
    return Work{weightBytes * (1 - idle), flopsPerRow * double(rows)};
  };
  return made;
}

/// The matmul that computes logits; an embedding never has 4 bits.
KernelBenchmark head(const Format &format) {
  constexpr int64_t vocabulary = 32000, columns = 2048;
  auto weights = double(vocabulary * columns);
  return overWeights(format, {{"K", columns}, {"V", vocabulary}}, weights,
                     "lm_head/{format}/{V}x{K}", R"(
  mica.weight @w{f} : tensor<{V}x{K}x{weight}>
  func.func @f{f}({take}) -> tensor<?x{V}xf32> {
    {cast}
    %w = mica.get_weight @w{f} : tensor<{V}x{K}x{weight}>
    %y = mica.lm_head %x, %w : tensor<?x{K}x{rows}>, tensor<{V}x{K}x{weight}> -> tensor<?x{V}xf32>
    return %y : tensor<?x{V}xf32>
  })",
                     {1, 2, 4, 8}, 2 * weights);
}

/// A matmul per head, as in DeepSeek-V3 around attention over latent vectors.
KernelBenchmark heads(const Format &format) {
  constexpr int64_t count = 128, columns = 128, depth = 512;
  auto weights = double(count * columns * depth);
  return overWeights(format, {{"K", "{H}x{D}"}, {"H", count}, {"D", depth}, {"N", columns}},
                     weights, "head_linear/{format}/{H}x{N}x{D}", R"(
  mica.weight @w{f} from ["w"] concat : tensor<{H}x{N}x{D}x{weight}>
  func.func @f{f}({take}) -> tensor<?x{H}x{N}xf32> {
    {cast}
    %w = mica.get_weight @w{f} : tensor<{H}x{N}x{D}x{weight}>
    %y = mica.head_linear %x, %w : tensor<?x{K}x{rows}>, tensor<{H}x{N}x{D}x{weight}> -> tensor<?x{H}x{N}xf32>
    return %y : tensor<?x{H}x{N}xf32>
  })",
                     {1, 8, 128}, 2 * weights);
}

/// The gate of DeepSeek-V3, with the scoring functions of other models and its own.
KernelBenchmark gate(const char *name, const char *vectors, const char *options) {
  constexpr int64_t experts = 256, columns = 7168, chosen = 8;
  auto weights = double(experts * columns);
  return overWeights(kFormats[0],
                     {{"case", name},
                      {"vectors", vectors},
                      {"options", options},
                      {"E", experts},
                      {"K", columns},
                      {"k", chosen}},
                     weights, "moe_gate/{case}/{E}x{K}", R"(
  mica.weight @w{f} from ["w"] concat : tensor<{E}x{K}xf32>
  mica.weight @c{f} from ["c"] concat : tensor<{E}xf32>
  func.func @f{f}({take}) -> (tensor<?x{k}xf32>, tensor<?x{k}xi32>) {
    %g = mica.get_weight @w{f} : tensor<{E}x{K}xf32>
    %c = mica.get_weight @c{f} : tensor<{E}xf32>
    %w, %e = mica.moe_gate %x, %g {vectors} {options} normalize : tensor<?x{K}xf32>, tensor<{E}x{K}xf32> -> tensor<?x{k}xf32>, tensor<?x{k}xi32>
    return %w, %e : tensor<?x{k}xf32>, tensor<?x{k}xi32>
  })",
                     {1, 8, 128}, 2 * weights);
}

/// Rows of an embedding, the same ones in each call: they are cached, and the share of the roofline
/// may exceed 1.
KernelBenchmark table(const Format &format) {
  constexpr int64_t vocabulary = 32000, columns = 2048;
  KernelBenchmark made = overWeights(format, {{"K", columns}, {"V", vocabulary}},
                                     double(vocabulary * columns), "embedding/{format}/{V}x{K}", R"(
  mica.weight @w{f} : tensor<{V}x{K}x{weight}>
  func.func @f{f}(%tokens: tensor<?xi32> {test.below = {V} : i64}) -> tensor<?x{K}xf32> {
    %w = mica.get_weight @w{f} : tensor<{V}x{K}x{weight}>
    %y = mica.embedding %tokens, %w : tensor<?xi32>, tensor<{V}x{K}x{weight}> -> tensor<?x{K}xf32>
    return %y : tensor<?x{K}xf32>
  })",
                                     cachedAndOther, 0);
  made.work = [](double weightBytes, int64_t rows) {
    return Work{weightBytes / double(vocabulary) * double(rows), 0};
  };
  return made;
}
} // namespace

std::vector<KernelBenchmark> productBenchmarks() {
  std::vector<KernelBenchmark> all;
  for (const Format &format : allFormats()) {
    // Only generated kernels multiply integer activations by blocks.
    bool onlyGenerated = llvm::StringRef(format.rows).contains("int_rows");
    auto addAll = [&](const char *kernel, ArrayRef<int64_t> rows) {
      for (Shape shape : productShapes)
        all.push_back(product(format, shape, kernel, rows));
      if (isWhole(format, biasedShape.k))
        all.push_back(product(format, biasedShape, kernel, rows, bias));
      all.push_back(product(format, residualShape, kernel, rows, residual));
      for (Shape shape : gatedShapes)
        all.push_back(gatedProduct(format, shape, kernel, rows));
    };
    addAll("generated", generatedRows);
    if (!onlyGenerated)
      addAll("onednn", libraryRows);
    for (const Experts &shape : expertShapes)
      if (isWhole(format, shape.columns) && isWhole(format, shape.inner))
        all.push_back(experts(format, shape));
    all.push_back(heads(format));
    all.push_back(head(format));
    all.push_back(table(format));
  }
  all.push_back(gate("softmax", "", "softmax k(8)"));
  all.push_back(gate("sigmoid_groups", "e_score_correction_bias(%c : tensor<{E}xf32>)",
                     "sigmoid k(8) groups(8 keep 4 by best_two)"));
  return all;
}

} // namespace mica::bench
