// Attention and the kernels that write to caches.
#include "tests/bench/KernelBenchmarks.h"
#include "tests/unit/backends/cpu/lowering/Checkpoint.h"

#include <numeric>

using namespace mlir;
using namespace mica::test;

namespace mica::bench {

namespace {
/// The format of caches, the type of queries, and the bytes of a head of `size` numbers.
struct Precision {
  const char *name, *element, *queries;
  double bytesOf(int64_t size) const {
    llvm::StringRef element = name;
    return element == "int8" ? double(size) + 4 : double(size) * (element == "f32" ? 4 : 2);
  }
};
constexpr Precision precisions[] = {
    {"f32", "f32", "f32"}, {"bf16", "bf16", "bf16"}, {"int8", "!mica.int8", "f32"}};

/// Arguments: rows of numbers, sequences and positions (selected by `test.positions`), caches
/// filled up to these positions.
SmallVector<interp::Value> argumentsAt(func::FuncOp function, int64_t batch,
                                       const std::vector<int64_t> &sequences,
                                       const std::vector<int64_t> &positions) {
  int64_t room = roundUp(positions.back() + 1, 64);
  auto rows = static_cast<int64_t>(positions.size());
  SmallVector<interp::Value> made;
  for (auto [index, type] : llvm::enumerate(function.getArgumentTypes())) {
    if (auto cached = dyn_cast<KvCacheType>(type)) {
      interp::Value cache = interp::Value::makeCache(cached, batch, room);
      std::vector<float> &data = cache.getCache()->cache->data;
      data = randomNumbers("cache", static_cast<int64_t>(data.size()));
      for (float &number : data)
        number = interp::roundTo(cached.getElementType(), number);
      for (auto rest = MutableArrayRef(data); !rest.empty();
           rest = rest.drop_front(cached.getHeadDim()))
        interp::roundRow(cached.getElementType(), rest.take_front(cached.getHeadDim()));
      made.push_back(cache);
      continue;
    }
    interp::Tensor tensor = interp::Tensor::zerosOf(type, rows);
    if (!tensor.isFloat())
      tensor.ints = function.getArgAttr(index, "test.positions") ? positions : sequences;
    else
      for (auto [at, number] : llvm::enumerate(randomNumbers("q", tensor.getNumElements())))
        tensor.set(at, number);
    made.push_back(std::move(tensor));
  }
  return made;
}

/// Positions of the next rows of one sequence, or of the newest row of each of several sequences.
SmallVector<interp::Value> oneSequence(func::FuncOp function, int64_t rows, int64_t first) {
  std::vector<int64_t> positions(rows);
  std::iota(positions.begin(), positions.end(), first);
  return argumentsAt(function, 1, std::vector<int64_t>(rows), positions);
}
SmallVector<interp::Value> manySequences(func::FuncOp function, int64_t rows, int64_t position) {
  std::vector<int64_t> sequences(rows);
  std::iota(sequences.begin(), sequences.end(), 0);
  return argumentsAt(function, rows, sequences, std::vector<int64_t>(rows, position));
}

#define WHERE "%s: tensor<?xi32> {test.sequences}, %p: tensor<?xi32> {test.positions}"

/// The attention of a model over caches of one precision.
struct AttentionShape {
  const char *name;
  int64_t queryHeads, heads, size, values;
  bool latent; ///< whether values are the first elements of the keys

  KernelBenchmark benchmark(const Precision &precision) const {
    KernelBenchmark made;
    made.format = precision.name;
    made.text = fill(latent ? R"(
  func.func @f0(%q: tensor<?x{H}x{D}x{type}>, {where}, %kc: {cache}) -> (tensor<?x{H}x{V}x{type}>, {cache}) {
    %layer = arith.constant 0 : index
    %k = mica.kv_read %kc[%layer] : {cache} -> tensor<?x?x{G}x{D}x{element}>
    %v = mica.kv_read %kc[%layer] : {cache} -> tensor<?x?x{G}x{V}x{element}>
    %y = mica.attention %q, %k, %v at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.125)
        : tensor<?x{H}x{D}x{type}>, tensor<?x?x{G}x{D}x{element}>, tensor<?x?x{G}x{V}x{element}> -> tensor<?x{H}x{V}x{type}>
    return %y, %kc : tensor<?x{H}x{V}x{type}>, {cache}
  })"
                            : R"(
  func.func @f0(%q: tensor<?x{H}x{D}x{type}>, {where}, %kc: {cache}, %vc: {cache}) -> (tensor<?x{H}x{D}x{type}>, {cache}, {cache}) {
    %layer = arith.constant 0 : index
    %k = mica.kv_read %kc[%layer] : {cache} -> tensor<?x?x{G}x{D}x{element}>
    %v = mica.kv_read %vc[%layer] : {cache} -> tensor<?x?x{G}x{D}x{element}>
    %y = mica.attention %q, %k, %v at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.125)
        : tensor<?x{H}x{D}x{type}>, tensor<?x?x{G}x{D}x{element}>, tensor<?x?x{G}x{D}x{element}> -> tensor<?x{H}x{D}x{type}>
    return %y, %kc, %vc : tensor<?x{H}x{D}x{type}>, {cache}, {cache}
  })",
                     {{"where", WHERE},
                      {"cache", "!mica.kv_cache<1 x {G} x {D} x {element}>"},
                      {"element", precision.element},
                      {"type", precision.queries},
                      {"H", queryHeads},
                      {"G", heads},
                      {"D", size},
                      {"V", values}});
    return made;
  }
  double bytesOf(const Precision &precision, double positions) const {
    return (latent ? 1 : 2) * double(heads) * precision.bytesOf(size) * positions;
  }
  double flopsOf(double pairs) const { return 2 * double(queryHeads * (size + values)) * pairs; }
};
/// Llama-3.2-1B and DeepSeek-V2-Lite.
constexpr AttentionShape attentionShapes[] = {{"attention", 32, 8, 64, 64, false},
                                              {"latent_attention", 16, 1, 576, 512, true}};

/// Each row is the newest of a separate sequence.
KernelBenchmark decodeAttention(const AttentionShape &shape, const Precision &precision,
                                int64_t depth) {
  KernelBenchmark made = shape.benchmark(precision);
  made.name = fill("{shape}/decode/{cache}/{depth}",
                   {{"shape", shape.name}, {"cache", precision.name}, {"depth", depth}});
  made.rows = {1, 8};
  made.calls = [=](int64_t rows) {
    return copiesOf(shape.bytesOf(precision, double(rows * depth)));
  };
  made.arguments = [=](func::FuncOp function, int64_t rows) {
    return manySequences(function, rows, depth - 1);
  };
  made.work = [=](double, int64_t rows) {
    auto positions = double(rows * depth);
    return Work{shape.bytesOf(precision, positions), shape.flopsOf(positions)};
  };
  return made;
}

/// The last rows of a prompt of `depth` tokens.
KernelBenchmark promptAttention(const AttentionShape &shape, const Precision &precision,
                                int64_t depth) {
  KernelBenchmark made = shape.benchmark(precision);
  made.name = fill("{shape}/prompt/{cache}/{depth}",
                   {{"shape", shape.name}, {"cache", precision.name}, {"depth", depth}});
  made.rows = {512};
  made.arguments = [=](func::FuncOp function, int64_t rows) {
    return oneSequence(function, rows, depth - rows);
  };
  made.work = [=](double, int64_t rows) {
    double pairs = double(rows) * (double(depth) - double(rows - 1) / 2);
    return Work{shape.bytesOf(precision, double(depth)), shape.flopsOf(pairs)};
  };
  return made;
}

/// A kernel that appends to caches, for Llama-3.2-1B: `columns` numbers of a row.
KernelBenchmark append(const char *name, const char *text, const Precision &precision,
                       int64_t columns) {
  KernelBenchmark made;
  made.name = fill("{name}/{cache}", {{"name", name}, {"cache", precision.name}});
  made.format = precision.name;
  made.text = fill(text, {{"where", WHERE},
                          {"cache", "!mica.kv_cache<1 x 8 x 64 x {element}>"},
                          {"element", precision.element},
                          {"type", precision.queries}});
  made.rows = ArrayRef(cachedAndOther).vec();
  made.calls = [=](int64_t) {
    return copiesOf(4.0 * double(columns * ArrayRef(cachedAndOther).back()));
  };
  made.arguments = [](func::FuncOp function, int64_t rows) {
    return oneSequence(function, rows, 0);
  };
  made.work = [=](double, int64_t rows) { return Work{4.0 * double(columns * rows), 0}; };
  return made;
}

/// Rope and append, between the matmul of q, k and v and attention.
constexpr const char *kQkvAppend = R"(
  func.func @f0(%x: tensor<?x3072xf32>, {where}, %kc: {cache}, %vc: {cache}) -> (tensor<?x32x64x{type}>, {cache}, {cache}) {
    %layer = arith.constant 0 : index
    %table = mica.rope_table %p rotary_dim(64) theta(5.0e+05) : tensor<?xi32> -> tensor<?x2x32xf32>
    %q, %k, %v = mica.qkv_append %x, %table, %kc, %vc[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) half
        : tensor<?x3072xf32>, tensor<?x2x32xf32>, {cache}, {cache} -> tensor<?x32x64x{type}>
    return %q, %k, %v : tensor<?x32x64x{type}>, {cache}, {cache}
  })";
/// Keys only; the rows are returned because the first result of a function must be a tensor.
constexpr const char *kKvAppend = R"(
  func.func @f0(%x: tensor<?x8x64xf32>, {where}, %kc: {cache}) -> (tensor<?x8x64xf32>, {cache}) {
    %layer = arith.constant 0 : index
    %k = mica.kv_append %x, %kc[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x8x64xf32>, {cache}
    return %x, %k : tensor<?x8x64xf32>, {cache}
  })";
} // namespace

std::vector<KernelBenchmark> attentionBenchmarks() {
  std::vector<KernelBenchmark> all;
  for (const Precision &precision : precisions) {
    all.push_back(append("qkv_append", kQkvAppend, precision, 3072));
    all.push_back(append("kv_append", kKvAppend, precision, 512));
    for (const AttentionShape &shape : attentionShapes)
      for (int64_t depth : {512, 8192}) {
        all.push_back(decodeAttention(shape, precision, depth));
        all.push_back(promptAttention(shape, precision, depth));
      }
  }
  return all;
}

} // namespace mica::bench
