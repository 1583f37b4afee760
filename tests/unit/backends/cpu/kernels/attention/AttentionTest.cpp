//===- AttentionTest.cpp - attention kernels against the interpreter ------===//

#include "tests/unit/backends/cpu/kernels/attention/KernelText.h"
#include "tests/unit/backends/cpu/lowering/Memory.h"

#include "ir/Interpreter/Interpreter.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

#include <cmath>
#include <random>

using namespace mlir;
using namespace mica;
using namespace mica::test;

namespace {

constexpr int64_t kHeads = 2; ///< key/value heads; with groups of 1 and 2, a wrong head is detected
constexpr int64_t kPositions = 1280, kBlock = 64;

/// Formats of caches. Queries of bf16 caches are bf16 as well, others f32.
enum class Stored { F32, BF16, Int8 };

struct Shape {
  int64_t group, headDim;
  Stored stored;
  const char *options = "";
  int64_t chunk = 64;   ///< 16 chunks are 1024 positions, after which chunks grow
  int64_t prefix = 0;   ///< if not 0, values are the first `prefix` elements of keys, not cached
  int64_t together = 0; ///< query heads per task; 0: all that share a key/value head

  bool bf16() const { return stored == Stored::BF16; }
  const char *queries() const { return bf16() ? "bf16" : "f32"; }
  const char *element() const { return stored == Stored::Int8 ? "!mica.int8" : queries(); }
  int64_t heads() const { return kHeads * group; }
  int64_t valueDim() const { return prefix ? prefix : headDim; }
  int64_t depth() const { return bf16() ? 2 : stored == Stored::Int8 ? 4 : 1; }
};

void PrintTo(const Shape &shape, std::ostream *os) {
  *os << shape.group << " heads of " << shape.headDim << " in " << shape.element() << ' '
      << shape.options << " chunks of " << shape.chunk;
  if (shape.prefix)
    *os << ", " << shape.prefix << " of them values, " << shape.together << " heads together";
}

/// Rows of a batch: `count` consecutive rows of a sequence starting at position `first`.
struct Piece {
  int32_t sequence, first, count;
};
struct Rows {
  std::vector<int32_t> sequences, positions;

  Rows(ArrayRef<Piece> pieces) {
    for (Piece piece : pieces)
      for (int32_t i = 0; i < piece.count; ++i) {
        sequences.push_back(piece.sequence);
        positions.push_back(piece.first + i);
      }
  }
  int64_t size() const { return sequences.size(); }
};

/// Prompts from the start and from the middle, single steps, boundaries of blocks and of chunks,
/// the position at which chunks grow; lengths that are no multiples of a block or a tile.
const Rows kBatch({{0, 0, 33},
                   {1, 700, 1},
                   {2, 505, 16},
                   {3, 60, 17},
                   {1, 1020, 9},
                   {0, 1279, 1},
                   {2, 63, 1},
                   {2, 64, 1},
                   {3, 130, 3}});
constexpr int64_t kSequences = 4;

std::string replaceAll(std::string text,
                       std::initializer_list<std::pair<const char *, std::string>> words) {
  for (const auto &[key, word] : words)
    for (size_t at; (at = text.find(key)) != std::string::npos;)
      text.replace(at, strlen(key), word);
  return text;
}

std::string modelOf(const Shape &shape, int64_t rows, bool split) {
  auto text = [](int64_t number) { return std::to_string(number); };
  return replaceAll(
      R"(
!keys = !mica.kv_cache<2 x $G x $D x $T, #mica.kv_layout<keys, block = 64, depth = $depth>>
!values = !mica.kv_cache<2 x $G x $D x $T, #mica.kv_layout<values, block = 64, depth = $depth>>
func.func @main(%p: tensor<?xi32> {mica.role = "positions"}, %s: tensor<?xi32>, %q: tensor<?x$Hx$Dx$Q>,
    %k: !keys {mica.role = "cache"}, %v: !values {mica.role = "cache"})
    -> (tensor<?x$Hx$Wxf32> {mica.role = "logits"}, !keys {mica.role = "cache"}, !values {mica.role = "cache"}) {
  %layer = arith.constant 1 : index
  %kr = mica.kv_read %k[%layer] : !keys -> tensor<?x?x$Gx$Dx$T>
  %vr = mica.kv_read $cached -> tensor<?x?x$Gx$Wx$T>
  %y = mica.attention %q, %kr, %vr at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.35) $options
      tiling(<rows = $rows, chunk = $chunk, split = $split, heads = $together>)
      : tensor<?x$Hx$Dx$Q>, tensor<?x?x$Gx$Dx$T>, tensor<?x?x$Gx$Wx$T> -> tensor<?x$Hx$Wxf32>
  return %y, %k, %v : tensor<?x$Hx$Wxf32>, !keys, !values
})",
      {{"$G", text(kHeads)},
       {"$D", text(shape.headDim)},
       {"$W", text(shape.valueDim())},
       {"$cached", shape.prefix ? "%k[%layer] : !keys" : "%v[%layer] : !values"},
       {"$together", text(shape.together)},
       {"$T", shape.element()},
       {"$Q", shape.queries()},
       {"$depth", text(shape.depth())},
       {"$H", text(shape.heads())},
       {"$options", shape.options},
       {"$rows", text(rows)},
       {"$chunk", text(shape.chunk)},
       {"$split", split ? "true" : "false"}});
}

/// Random queries and caches for the interpreter; a few scores are much larger than the others.
struct Numbers {
  Numbers(const Shape &shape, MLIRContext *context)
      : element(parseType(shape.queries(), context)),
        queries(interp::Tensor::zeros(element, {kBatch.size(), shape.heads(), shape.headDim})) {
    std::mt19937 random(1);
    auto fill = [&](std::vector<float> &floats, Type type, float width) {
      std::normal_distribution<float> normal(0, width);
      for (float &number : floats)
        number = interp::roundTo(type, random() % 1000 == 0 ? 6 * width : normal(random));
      for (auto rest = MutableArrayRef(floats); !rest.empty();
           rest = rest.drop_front(shape.headDim))
        interp::roundRow(type, rest.take_front(shape.headDim));
    };
    fill(queries.floats, element, 2.5f / std::sqrt(static_cast<float>(shape.headDim) * 0.35f));
    auto makeCache = [&](KvKind kind) {
      auto layout = KvLayoutAttr::get(context, kind, kBlock, shape.depth());
      auto type = KvCacheType::get(context, 2, kHeads, shape.headDim,
                                   parseType(shape.element(), context), /*window=*/0, layout);
      interp::Value value = interp::Value::makeCache(type, kSequences, kPositions);
      fill(value.getCache()->cache->data, type.getElementType(), 1);
      return value;
    };
    keys = makeCache(KvKind::Keys);
    values = makeCache(KvKind::Values);
  }

  Type element;
  interp::Tensor queries;
  interp::Value keys, values;
};

std::vector<uint8_t> memoryOf(const interp::Tensor &tensor) {
  std::vector<uint8_t> bytes(bytesOf(tensor.elementType, tensor.shape));
  storeTensor(tensor, bytes);
  return bytes;
}

/// The layout of #mica.kv_layout.
std::vector<uint8_t> memoryOf(const interp::Cache &cache) {
  std::vector<uint8_t> bytes(
      bytesOf(cache.type.getElementType(), physicalShapeOf(cache, cache.type)));
  storeCache(cache, cache.type, bytes);
  return bytes;
}

/// Attention with a tiling, compiled for a target.
class Compiled {
public:
  Compiled(const Shape &shape, const Numbers &numbers, const cpu::TargetDescription &target,
           int64_t rows, bool split)
      : shape(shape), extents(physicalShapeOf(*numbers.keys.getCache()->cache,
                                              numbers.keys.getCache()->cache->type)),
        queries(memoryOf(numbers.queries)), keys(memoryOf(*numbers.keys.getCache()->cache)),
        values(memoryOf(*numbers.values.getCache()->cache)) {
    loops = llvm::cantFail(lowerToLoops(modelOf(shape, rows, split), target));
    model = std::make_unique<LoadedModel>(llvm::cantFail(compile(loops.text, target)),
                                          recordingRuntime);
    EXPECT_EQ(model->error, "");
  }

  /// The results of the rows [from, to) of the batch, at these positions.
  std::vector<float> run(int64_t from, int64_t to, const Rows &batch = kBatch) {
    int64_t count = to - from, heads = shape.heads(), dim = shape.headDim, width = shape.valueDim();
    std::vector<int32_t> positions = batch.positions, sequences = batch.sequences;
    std::vector<float> y(count * heads * width, NAN);
    int64_t queryBytes = heads * dim * (shape.bf16() ? 2 : 4),
            scratchBytes = loops.scratchFixed + count * loops.scratchPerRow;
    std::vector<char> memory(scratchBytes + 64, -1);
    auto scratchAt = llvm::alignTo(reinterpret_cast<uintptr_t>(memory.data()), 64);
    Descriptor<1> p(positions.data() + from, {count}), s(sequences.data() + from, {count}),
        weights(nullptr, {0}), scratch(reinterpret_cast<void *>(scratchAt), {scratchBytes});
    Descriptor<3> q(queries.data() + from * queryBytes, {count, heads, dim}),
        out(y.data(), {count, heads, width});
    std::array<int64_t, 5> sizes;
    llvm::copy(extents, sizes.begin());
    Descriptor<5> k(keys.data(), sizes), v(values.data(), sizes);
    (*model)({&p, &s, &q, &k, &v, &weights, &scratch, &out});
    return y;
  }

  /// The same, split into calls of `step` rows.
  std::vector<float> runInSteps(int64_t step) {
    std::vector<float> all;
    for (int64_t from = 0; from < kBatch.size(); from += step)
      llvm::append_range(all, run(from, std::min(from + step, kBatch.size())));
    return all;
  }

private:
  Shape shape;
  SmallVector<int64_t> extents; ///< of both caches
  std::vector<uint8_t> queries, keys, values;
  Loops loops;
  std::unique_ptr<LoadedModel> model;
};

std::vector<float> interpreted(const Shape &shape, const Numbers &numbers, MLIRContext *context) {
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(modelOf(shape, 1, /*split=*/true), context);
  auto rowIndex = [&](ArrayRef<int32_t> numbers) {
    interp::Tensor tensor = interp::Tensor::zeros(IntegerType::get(context, 32), {kBatch.size()});
    llvm::copy(numbers, tensor.ints.begin());
    return tensor;
  };
  auto results =
      llvm::cantFail(interp::interpret(cast<func::FuncOp>(module->lookupSymbol("main")),
                                       {rowIndex(kBatch.positions), rowIndex(kBatch.sequences),
                                        numbers.queries, numbers.keys, numbers.values}));
  return results.front().getTensor()->floats;
}

/// max |a - b| / max |b|.
double difference(ArrayRef<float> a, ArrayRef<float> b) {
  double largest = 0, off = 0;
  for (auto [x, y] : llvm::zip_equal(a, b)) {
    off = std::isfinite(x) ? std::max(off, std::abs(double(x) - double(y))) : INFINITY;
    largest = std::max(largest, std::abs(double(y)));
  }
  return off / largest;
}

std::vector<uint32_t> bitsOf(ArrayRef<float> floats) {
  auto bits = [](float number) { return llvm::bit_cast<uint32_t>(number); };
  return {llvm::map_iterator(floats.begin(), bits), llvm::map_iterator(floats.end(), bits)};
}

/// This machine; the same with the other way to multiply bf16, which only affects speed; the
/// minimum target.
std::vector<std::pair<std::string, cpu::TargetDescription>> targets(const Shape &shape) {
  std::vector<std::pair<std::string, cpu::TargetDescription>> all;
  for (const std::string &name : runnableTargets({"native", "x86-64-v3"}))
    all.push_back({name, llvm::cantFail(cpu::describeTarget(name))});
  if (shape.stored == Stored::Int8)
    for (const std::string &name : runnableTargets({"cooperlake", "alderlake", "cooperlake-256"}))
      all.push_back({name, llvm::cantFail(describeTestTarget(name))});
  if (cpu::TargetDescription other = all.front().second; shape.bf16() && other.bf16Dot) {
    other.fastBf16Dot = !other.fastBf16Dot;
    all.push_back({"native, other products", other});
  }
  return all;
}

/// In bf16, softmax weights are rounded to 8 bits before they are multiplied by values. With int8
/// dot products, queries have 15 bits and weights 16.
double tolerance(const Shape &shape, const cpu::TargetDescription &target) {
  if (shape.stored == Stored::Int8 && target.int8Dot)
    return 1e-4;
  return shape.bf16() ? 3e-3 : 2e-6;
}

class Attention : public testing::TestWithParam<Shape> {
protected:
  std::unique_ptr<MLIRContext> context = makeKernelContext();
};

// Compares with the interpreter; results are bit-identical for all tilings and splits into calls.
TEST_P(Attention, MatchesTheInterpreterInAnyTiling) {
  const Shape &shape = GetParam();
  context->loadDialect<MicaDialect>();
  Numbers numbers(shape, context.get());
  std::vector<float> exact = interpreted(shape, numbers, context.get());
  for (const auto &[name, target] : targets(shape)) {
    SCOPED_TRACE(name);
    Compiled steps(shape, numbers, target, 1, /*split=*/true),
        tiles(shape, numbers, target, shape.group % 2 ? 8 : 5, /*split=*/false);
    std::vector<float> found = steps.run(0, kBatch.size());
    EXPECT_LE(difference(found, exact), tolerance(shape, target));
    std::vector<uint32_t> bits = bitsOf(found);
    EXPECT_EQ(bits, bitsOf(tiles.run(0, kBatch.size()))) << "in tiles";
    for (int64_t step : {1, 7, 16}) {
      EXPECT_EQ(bits, bitsOf(steps.runInSteps(step))) << "in calls of " << step << " rows";
      EXPECT_EQ(bits, bitsOf(tiles.runInSteps(step))) << "in tiles and calls of " << step;
    }
  }
}

std::vector<Shape> shapes() {
  std::vector<Shape> all;
  for (Stored stored : {Stored::F32, Stored::BF16, Stored::Int8}) {
    int64_t group = 0;
    for (int64_t headDim : {128, 96, 80, 64, 48, 40, 32, 8})
      all.push_back({++group, headDim, stored});
    all.push_back({4, 64, stored, "", 512});
    all.push_back({4, 64, stored, "window(1)"});
    all.push_back({3, 20, stored, "window(70)"});
    all.push_back({2, 32, stored, "window(1100) softcap(1.5)"});
    all.push_back({1, 64, stored, "softcap(20.0)", 128});
    all.push_back({6, 40, stored, "", 64, 24, 3});
    all.push_back({5, 20, stored, "window(70)", 64, 3});
    all.push_back({2, 96, stored, "", 512, 72, 1});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Shapes, Attention, testing::ValuesIn(shapes()));

// A row that attends to nothing is zero, also in a run with other rows, which it does not change.
TEST_F(Attention, ZeroPositionsGiveZero) {
  context->loadDialect<MicaDialect>();
  Rows batch({{0, -1, 5}, {1, -3, 2}, {2, 700, 1}});
  auto target = llvm::cantFail(cpu::describeTarget("native"));
  for (Stored stored : {Stored::BF16, Stored::Int8})
    for (bool split : {false, true}) {
      Shape shape{2, 32, stored};
      Numbers numbers(shape, context.get());
      int64_t row = shape.heads() * shape.headDim;
      Compiled model(shape, numbers, target, split ? 1 : 4, split);
      std::vector<float> y = model.run(0, batch.size(), batch);
      for (int64_t i : {0, 5, 6})
        EXPECT_EQ(std::vector<float>(row), std::vector<float>(&y[i * row], &y[(i + 1) * row]));
      for (int64_t i : {1, 2, 3, 4, 7}) {
        std::vector<float> alone = model.run(i, i + 1, batch);
        EXPECT_EQ(bitsOf(alone), bitsOf(ArrayRef(y).slice(i * row, row)));
        EXPECT_GT(std::abs(alone[0]), 0);
      }
    }
}

} // namespace
