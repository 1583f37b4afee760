// What mica-benchmarks measures: tables of functions of mica ops.
#include "tests/bench/KernelBenchmarks.h"
#include "tests/unit/backends/cpu/lowering/Arguments.h"
#include "tests/unit/backends/cpu/lowering/Formats.h"

#include <cmath>
#include <numeric>

using namespace mlir;
using namespace mica::test;

namespace mica::bench {

namespace {
/// What all functions of a benchmark read together: several times the largest last-level caches.
constexpr double farAboveCaches = 512 << 20;

/// Rows of generated products, and of oneDNN's.
const std::vector<int64_t> generatedRows = {1, 2, 4, 8, 16, 32, 64, 128, 512},
                           libraryRows = {16, 32, 128, 512};

struct Shape {
  int64_t n, k;
};
/// Llama-3.2-1B: q with k and v, down; gate with up, there and in MiniMind's 104M.
constexpr Shape productShapes[] = {{3072, 2048}, {2048, 8192}},
                gatedShapes[] = {{8192, 2048}, {2048, 768}};

/// At most; the packed size decides once the weights are there.
double bytesPerWeight(const Format &format) {
  llvm::StringRef weight = format.weight;
  return weight == "f32" ? 4 : weight == "bf16" ? 2 : weight.contains("int4") ? 0.5 : 1;
}

int64_t copiesOf(double bytes) {
  return std::max<int64_t>(1, static_cast<int64_t>(std::ceil(farAboveCaches / bytes)));
}

/// `text` for the functions 0 to `count` - 1, as {f}.
std::string repeated(const std::string &text, int64_t count) {
  std::string all;
  for (int64_t number = 0; number < count; ++number)
    all += fill(text, {{"f", number}});
  return all;
}

/// Functions of one text over `weights` numbers each; all have copies of the same, which are made
/// once. `sizes` are the keys of name and text besides those of the format.
KernelBenchmark overWeights(const Format &format, const Words &sizes, double weights,
                            const char *name, const char *text, std::vector<int64_t> rows,
                            double flopsPerRow) {
  Words words = wordsOf(format);
  llvm::append_range(words, sizes);
  KernelBenchmark made;
  made.name = fill(name, words);
  made.format = format.name;
  made.functions = copiesOf(weights * bytesPerWeight(format));
  made.text = repeated(fill(text, words), made.functions);
  made.rows = std::move(rows);
  made.arguments = randomArguments;
  made.work = [flopsPerRow](double weightBytes, int64_t rows) {
    return Work{weightBytes, flopsPerRow * double(rows)};
  };
  return made;
}

/// A product with `n` columns and depth `k`.
KernelBenchmark product(const Format &format, Shape shape, const char *kernel,
                        const std::vector<int64_t> &rows) {
  auto weights = double(shape.n * shape.k);
  return overWeights(format, {{"kernel", kernel}, {"K", shape.k}, {"N", shape.n}}, weights,
                     "linear/{kernel}/{format}/{N}x{K}", R"(
  mica.weight @w{f} from ["w"] concat : tensor<{N}x{K}x{weight}>
  func.func @f{f}({take}) -> tensor<?x{N}xf32> {
    {cast}
    %w = mica.get_weight @w{f} : tensor<{N}x{K}x{weight}>
    %y = mica.linear %x, %w kernel({kernel}) : tensor<?x{K}x{rows}>, tensor<{N}x{K}x{weight}> -> tensor<?x{N}xf32>
    return %y : tensor<?x{N}xf32>
  })",
                     rows, 2 * weights);
}

/// Gate and up with the activation.
KernelBenchmark gatedProduct(const Format &format, Shape shape) {
  auto weights = 2 * double(shape.n * shape.k);
  return overWeights(format, {{"K", shape.k}, {"N", shape.n}, {"both", 2 * shape.n}}, weights,
                     "gated/generated/{format}/{N}x{K}", R"(
  mica.weight @w{f} from ["g", "u"] interleave {test.rows = {N} : i64} : tensor<{both}x{K}x{weight}>
  func.func @f{f}({take}) -> tensor<?x{N}x{argument}> {
    {cast}
    %w = mica.get_weight @w{f} : tensor<{both}x{K}x{weight}>
    %y = mica.gated_linear %x, %w silu : tensor<?x{K}x{rows}>, tensor<{both}x{K}x{weight}> -> tensor<?x{N}x{argument}>
    return %y : tensor<?x{N}x{argument}>
  })",
                     generatedRows, 2 * weights);
}

/// MiniMind 2 with experts: two of four, of which one row touches half of the weights.
KernelBenchmark experts(const Format &format) {
  constexpr int64_t columns = 640, inner = 1728, all = 4, chosen = 2;
  double weights = 3.0 * columns * inner, flopsPerRow = 2 * chosen * weights;
  // At sixteen rows every expert has some.
  KernelBenchmark made =
      overWeights(format, {{"K", columns}, {"inner", inner}, {"both", 2 * inner}, {"k", chosen}},
                  all * weights, "experts/generated/{format}/4x{inner}x{K}", R"(
  mica.weight @up{f} from ["g0", "u0", "g1", "u1", "g2", "u2", "g3", "u3"] stack parts(2) {test.rows = {inner} : i64} : tensor<4x{both}x{K}x{weight}>
  mica.weight @down{f} from ["d0", "d1", "d2", "d3"] stack : tensor<4x{K}x{inner}x{weight}>
  func.func @f{f}({take}, %w: tensor<?x{k}xf32>, %e: tensor<?x{k}xi32> {test.among = [0, 1, 2, 3]}) -> tensor<?x{K}xf32> {
    {cast}
    %up = mica.get_weight @up{f} : tensor<4x{both}x{K}x{weight}>
    %down = mica.get_weight @down{f} : tensor<4x{K}x{inner}x{weight}>
    %y = mica.moe_experts %x, %w, %e, %up, %down silu inner({inner}) : tensor<?x{K}x{rows}>, tensor<?x{k}xf32>,
        tensor<?x{k}xi32>, tensor<4x{both}x{K}x{weight}>, tensor<4x{K}x{inner}x{weight}> -> tensor<?x{K}xf32>
    return %y : tensor<?x{K}xf32>
  })",
                  {1, 16}, flopsPerRow);
  made.work = [=](double weightBytes, int64_t rows) {
    double share = rows == 1 ? double(chosen) / all : 1;
    return Work{weightBytes * share, flopsPerRow * double(rows)};
  };
  return made;
}

/// The product that makes logits; a table never has 4 bits.
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

/// Rows of the widest f32 that an op of one row after the other reads: of 512 none is left in a
/// cache, of eight all are, as in a model, and the share of the roofline may exceed 1.
const std::vector<int64_t> cachedAndOther = {8, 512};

/// The norm of Llama-3.2-1B, with the rounding of its rows to what the products take.
KernelBenchmark norm(const Format &format) {
  constexpr int64_t columns = 2048;
  Words words = wordsOf(format);
  words.emplace_back("K", columns);
  KernelBenchmark made;
  made.name = fill("rmsnorm/{format}/{K}", words);
  made.format = format.name;
  made.text = fill(R"(
  mica.weight @g : tensor<{K}xf32>
  func.func @f0(%x: tensor<?x{K}xf32>) -> tensor<?x{K}x{rows}> {
    %g = mica.get_weight @g : tensor<{K}xf32>
    %y = mica.rmsnorm %x, %g eps(1.0e-05) : tensor<?x{K}xf32>, tensor<{K}xf32> -> tensor<?x{K}x{rows}>
    return %y : tensor<?x{K}x{rows}>
  })",
                   words);
  made.rows = cachedAndOther;
  made.calls = copiesOf(4.0 * columns * double(made.rows.back()));
  made.arguments = randomArguments;
  made.work = [](double, int64_t rows) { return Work{4.0 * columns * double(rows), 0}; };
  return made;
}

interp::Tensor integers(MLIRContext *context, std::vector<int64_t> values) {
  interp::Tensor tensor = interp::Tensor::zeros(IntegerType::get(context, 32), values.size());
  tensor.ints = std::move(values);
  return tensor;
}

/// Rows, sequences and positions, and caches that are full up to these positions.
SmallVector<interp::Value> argumentsOfRows(func::FuncOp function, int64_t batch,
                                           std::vector<int64_t> sequences,
                                           std::vector<int64_t> positions) {
  int64_t room = roundUp(positions.back() + 1, 64);
  auto rows = static_cast<int64_t>(positions.size());
  MLIRContext *context = function.getContext();
  interp::Tensor first = interp::Tensor::zerosOf(function.getArgumentTypes()[0], rows);
  for (auto [at, number] : llvm::enumerate(randomNumbers("q", first.getNumElements())))
    first.set(at, number);
  SmallVector<interp::Value> made{first, integers(context, std::move(sequences)),
                                  integers(context, std::move(positions))};
  for (Type type : function.getArgumentTypes().take_back(2)) {
    interp::Value cache = interp::Value::makeCache(cast<KvCacheType>(type), batch, room);
    std::vector<float> &data = cache.getCache()->cache->data;
    data = randomNumbers("cache", data.size());
    for (float &number : data)
      number = interp::roundTo(cast<KvCacheType>(type).getElementType(), number);
    made.push_back(cache);
  }
  return made;
}

/// Attention of Llama-3.2-1B over a cache in bf16.
struct AttentionShape {
  static constexpr int64_t queryHeads = 32, heads = 8, size = 64;

  static KernelBenchmark benchmark() {
    KernelBenchmark made;
    made.format = "bf16";
    made.text = fill(R"(
  func.func @f0(%q: tensor<?x{H}x{D}xbf16>, %s: tensor<?xi32>, %p: tensor<?xi32>, %kc: {cache}, %vc: {cache}) -> (tensor<?x{H}x{D}xbf16>, {cache}, {cache}) {
    %layer = arith.constant 0 : index
    %k = mica.kv_read %kc[%layer] : {cache} -> {read}
    %v = mica.kv_read %vc[%layer] : {cache} -> {read}
    %y = mica.attention %q, %k, %v at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.125)
        : tensor<?x{H}x{D}xbf16>, {read}, {read} -> tensor<?x{H}x{D}xbf16>
    return %y, %kc, %vc : tensor<?x{H}x{D}xbf16>, {cache}, {cache}
  })",
                     {{"cache", "!mica.kv_cache<1 x {G} x {D} x bf16>"},
                      {"read", "tensor<?x?x{G}x{D}xbf16>"},
                      {"H", queryHeads},
                      {"G", heads},
                      {"D", size}});
    return made;
  }
  static double bytesOf(double positions) { return 2 * 2 * heads * size * positions; }
  static double flopsOf(double pairs) { return 4 * queryHeads * size * pairs; }
};

/// Every row is the newest of a sequence of its own.
KernelBenchmark decodeAttention(int64_t depth) {
  KernelBenchmark made = AttentionShape::benchmark();
  made.name = fill("attention/decode/bf16/{depth}", {{"depth", depth}});
  made.calls = copiesOf(AttentionShape::bytesOf(double(depth)));
  made.rows = {1, 8};
  made.arguments = [depth](func::FuncOp function, int64_t rows) {
    std::vector<int64_t> sequences(rows);
    std::iota(sequences.begin(), sequences.end(), 0);
    return argumentsOfRows(function, rows, sequences, std::vector<int64_t>(rows, depth - 1));
  };
  made.work = [depth](double, int64_t rows) {
    auto positions = double(rows * depth);
    return Work{AttentionShape::bytesOf(positions), AttentionShape::flopsOf(positions)};
  };
  return made;
}

/// What stands between the product of q, k and v and attention: the rope, and the append.
KernelBenchmark append() {
  constexpr int64_t columns =
      (AttentionShape::queryHeads + 2 * AttentionShape::heads) * AttentionShape::size;
  KernelBenchmark made;
  made.name = "qkv_append/bf16";
  made.format = "bf16";
  made.text = fill(R"(
  func.func @f0(%x: tensor<?x{columns}xf32>, %s: tensor<?xi32>, %p: tensor<?xi32>, %kc: {cache}, %vc: {cache}) -> (tensor<?x{H}x{D}xbf16>, {cache}, {cache}) {
    %layer = arith.constant 0 : index
    %table = mica.rope_table %p rotary_dim({D}) theta(5.0e+05) : tensor<?xi32> -> tensor<?x2x{pairs}xf32>
    %q, %k, %v = mica.qkv_append %x, %table, %kc, %vc[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) half
        : tensor<?x{columns}xf32>, tensor<?x2x{pairs}xf32>, {cache}, {cache} -> tensor<?x{H}x{D}xbf16>
    return %q, %k, %v : tensor<?x{H}x{D}xbf16>, {cache}, {cache}
  })",
                   {{"cache", "!mica.kv_cache<1 x {G} x {D} x bf16>"},
                    {"columns", columns},
                    {"pairs", AttentionShape::size / 2},
                    {"H", AttentionShape::queryHeads},
                    {"G", AttentionShape::heads},
                    {"D", AttentionShape::size}});
  made.rows = cachedAndOther;
  made.calls = copiesOf(4.0 * columns * double(made.rows.back()));
  made.arguments = [](func::FuncOp function, int64_t rows) {
    std::vector<int64_t> positions(rows);
    std::iota(positions.begin(), positions.end(), 0);
    return argumentsOfRows(function, 1, std::vector<int64_t>(rows), positions);
  };
  made.work = [](double, int64_t rows) { return Work{4.0 * columns * double(rows), 0}; };
  return made;
}

/// The last rows of a prompt of `depth` tokens.
KernelBenchmark promptAttention(int64_t depth) {
  KernelBenchmark made = AttentionShape::benchmark();
  made.name = fill("attention/prompt/bf16/{depth}", {{"depth", depth}});
  made.rows = {512};
  made.arguments = [depth](func::FuncOp function, int64_t rows) {
    std::vector<int64_t> positions(rows);
    std::iota(positions.begin(), positions.end(), depth - rows);
    return argumentsOfRows(function, 1, std::vector<int64_t>(rows), positions);
  };
  made.work = [depth](double, int64_t rows) {
    double pairs = double(rows) * (double(depth) - double(rows - 1) / 2);
    return Work{AttentionShape::bytesOf(double(depth)), AttentionShape::flopsOf(pairs)};
  };
  return made;
}
} // namespace

std::vector<KernelBenchmark> kernelBenchmarks() {
  std::vector<KernelBenchmark> all;
  for (const Format &format : kFormats) {
    for (Shape shape : productShapes) {
      all.push_back(product(format, shape, "generated", generatedRows));
      all.push_back(product(format, shape, "onednn", libraryRows));
    }
    for (Shape shape : gatedShapes)
      all.push_back(gatedProduct(format, shape));
    all.push_back(experts(format));
    all.push_back(norm(format));
    if (llvm::StringRef(format.name) != "int4")
      all.push_back(head(format));
  }
  all.push_back(append());
  for (int64_t depth : {512, 8192}) {
    all.push_back(decodeAttention(depth));
    all.push_back(promptAttention(depth));
  }
  return all;
}

} // namespace mica::bench
