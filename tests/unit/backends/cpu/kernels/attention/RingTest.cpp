//===- RingTest.cpp - ring caches give the whole context's results --------===//

#include "tests/unit/backends/cpu/kernels/attention/KernelText.h"
#include "tests/unit/backends/cpu/lowering/Memory.h"

#include "ir/Interpreter/Interpreter.h"
#include "ir/Mica/Mica.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

#include <random>

using namespace mlir;
using namespace mica;
using namespace mica::test;

namespace {

constexpr int64_t kHeads = 4, kGroups = 2, kDim = 20, kBlock = 64, kLayers = 2;
/// Lengths of texts and of drafts that are removed again: no multiples of a block or a tile.
constexpr int64_t kLength = 451, kDraft = 70;

struct Case {
  const char *element; ///< of the caches
  int64_t depth, window;
};

void PrintTo(const Case &tested, std::ostream *os) {
  *os << "window of " << tested.window << " in " << tested.element;
}

/// Appends rows and attends to them.
std::string modelOf(const Case &tested, bool ring, bool split) {
  auto text = [](int64_t number) { return std::to_string(number); };
  std::string model = R"(
!keys = !mica.kv_cache<2 x 2 x 20 x $T$ring, #mica.kv_layout<keys, block = 64, depth = $depth>>
!values = !mica.kv_cache<2 x 2 x 20 x $T$ring, #mica.kv_layout<values, block = 64, depth = $depth>>
func.func @main(%p: tensor<?xi32> {mica.role = "positions"}, %s: tensor<?xi32>, %q: tensor<?x4x20x$Q>,
    %x: tensor<?x2x20xf32>, %y: tensor<?x2x20xf32>, %k: !keys {mica.role = "cache"}, %v: !values {mica.role = "cache"})
    -> (tensor<?x4x20xf32> {mica.role = "logits"}, !keys {mica.role = "cache"}, !values {mica.role = "cache"}) {
  %layer = arith.constant 1 : index
  %k1 = mica.kv_append %x, %k[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x20xf32>, !keys
  %v1 = mica.kv_append %y, %v[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x20xf32>, !values
  %kr = mica.kv_read %k1[%layer] : !keys -> tensor<?x?x2x20x$T>
  %vr = mica.kv_read %v1[%layer] : !values -> tensor<?x?x2x20x$T>
  %a = mica.attention %q, %kr, %vr at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.35) window($window)
      tiling(<rows = $rows, chunk = 64, split = $split>)
      : tensor<?x4x20x$Q>, tensor<?x?x2x20x$T>, tensor<?x?x2x20x$T> -> tensor<?x4x20xf32>
  return %a, %k1, %v1 : tensor<?x4x20xf32>, !keys, !values
})";
  std::string window = text(tested.window), element = tested.element;
  for (const auto &[key, word] : std::initializer_list<std::pair<std::string, std::string>>{
           {"$ring", ring ? " window(" + window + ")" : ""},
           {"$window", window},
           {"$depth", text(tested.depth)},
           {"$T", element},
           {"$Q", element == "bf16" ? "bf16" : "f32"},
           {"$rows", split ? "1" : "5"},
           {"$split", split ? "true" : "false"}})
    for (size_t at; (at = model.find(key)) != std::string::npos;)
      model.replace(at, key.size(), word);
  return model;
}

/// A compiled model with caches of a given number of blocks.
class Program {
public:
  Program(const Case &tested, bool ring, bool split, int64_t sequences)
      : bf16(StringRef(tested.element) == "bf16"), sequences(sequences) {
    auto target = llvm::cantFail(cpu::describeTarget("native"));
    loops = llvm::cantFail(lowerToLoops(modelOf(tested, ring, split), target));
    model = std::make_unique<LoadedModel>(llvm::cantFail(compile(loops.text, target)),
                                          recordingRuntime);
    EXPECT_EQ(model->error, "");
    auto context = makeKernelContext();
    context->loadDialect<MicaDialect>();
    element = tested.element == StringRef("!mica.int8") ? 1 : bf16 ? 2 : 4;
    std::string cache =
        "!mica.kv_cache<2 x 2 x 20 x " + std::string(tested.element) +
        ", #mica.kv_layout<keys, block = 64, depth = " + std::to_string(tested.depth) + ">>";
    blockSize = cast<KvCacheType>(parseType(cache, context.get())).getPhysicalShape().back();
  }

  /// Clears everything.
  void reserve(int64_t count) {
    blocks = count;
    size_t bytes = kLayers * sequences * kGroups * blocks * blockSize * element;
    keys.assign(bytes, 0);
    values.assign(bytes, 0);
  }

  std::vector<uint32_t> operator()(std::vector<int32_t> s, std::vector<int32_t> p,
                                   std::vector<float> q, std::vector<float> k,
                                   std::vector<float> v) {
    auto count = static_cast<int64_t>(p.size());
    std::vector<uint16_t> narrow;
    for (float number : q)
      narrow.push_back(llvm::bit_cast<uint32_t>(number) >> 16);
    std::vector<uint32_t> y(count * kHeads * kDim, ~0u);
    int64_t scratchBytes = loops.scratchFixed + count * loops.scratchPerRow;
    std::vector<char> memory(scratchBytes + 64, -1);
    auto scratchAt = llvm::alignTo(reinterpret_cast<uintptr_t>(memory.data()), 64);
    Descriptor<1> positions(p.data(), {count}), rows(s.data(), {count}), weights(nullptr, {0}),
        scratch(reinterpret_cast<void *>(scratchAt), {scratchBytes});
    void *queries = bf16 ? static_cast<void *>(narrow.data()) : q.data();
    Descriptor<3> qs(queries, {count, kHeads, kDim}), ks(k.data(), {count, kGroups, kDim}),
        vs(v.data(), {count, kGroups, kDim}), out(y.data(), {count, kHeads, kDim});
    std::array<int64_t, 5> shape{kLayers, sequences, kGroups, blocks, blockSize};
    Descriptor<5> kCache(keys.data(), shape), vCache(values.data(), shape);
    (*model)({&positions, &rows, &qs, &ks, &vs, &kCache, &vCache, &weights, &scratch, &out});
    return y;
  }

private:
  bool bf16;
  int64_t sequences, element, blockSize, blocks = 0;
  Loops loops;
  std::unique_ptr<LoadedModel> model;
  std::vector<uint8_t> keys, values;
};

std::vector<float> random(uint32_t seed, int64_t count) {
  std::minstd_rand engine(seed * 2654435761u + 1);
  std::normal_distribution<float> normal(0, 1);
  std::vector<float> numbers(count);
  for (float &number : numbers)
    number = normal(engine);
  return numbers;
}

/// Rows [first, first + count) of two sequences; different ones if `draft`. Queries are exact in
/// bf16.
struct Rows {
  std::vector<int32_t> sequences, positions;
  std::vector<float> q, k, v;

  Rows(int64_t first, int64_t count, bool draft = false) {
    for (int32_t sequence : {1, 0})
      for (int64_t position = first; position < first + count; ++position) {
        sequences.push_back(sequence);
        positions.push_back(static_cast<int32_t>(position));
        auto seed = static_cast<uint32_t>(2 * (2 * position + sequence) + draft);
        llvm::append_range(q, random(3 * seed, kHeads * kDim));
        llvm::append_range(k, random(3 * seed + 1, kGroups * kDim));
        llvm::append_range(v, random(3 * seed + 2, kGroups * kDim));
      }
    for (float &number : q)
      number = llvm::bit_cast<float>(llvm::bit_cast<uint32_t>(number) & 0xffff0000);
  }
};

class Ring : public testing::TestWithParam<Case> {
protected:
  static std::vector<uint32_t> call(Program &program, int64_t first, int64_t count, bool draft) {
    Rows rows(first, count, draft);
    return program(rows.sequences, rows.positions, rows.q, rows.k, rows.v);
  }

  /// The interpreter's result for all rows.
  static std::vector<float> interpreted(const Case &tested, const Rows &rows) {
    auto context = makeKernelContext();
    context->loadDialect<MicaDialect>();
    OwningOpRef<ModuleOp> module =
        parseSourceString<ModuleOp>(modelOf(tested, /*ring=*/true, /*split=*/true), context.get());
    auto main = cast<func::FuncOp>(module->lookupSymbol("main"));
    SmallVector<interp::Value> arguments;
    ArrayRef<float> floats[] = {rows.q, rows.k, rows.v};
    ArrayRef<int32_t> numbers[] = {rows.positions, rows.sequences};
    for (auto [index, type] : llvm::enumerate(main.getArgumentTypes())) {
      if (auto cache = dyn_cast<KvCacheType>(type)) {
        arguments.push_back(interp::Value::makeCache(cache, 2, kLength));
        continue;
      }
      auto count = static_cast<int64_t>(rows.positions.size());
      interp::Tensor tensor = interp::Tensor::zerosOf(type, count);
      if (tensor.isFloat())
        tensor.floats = floats[index - 2].vec();
      else
        tensor.ints.assign(numbers[index].begin(), numbers[index].end());
      arguments.push_back(std::move(tensor));
    }
    auto results = llvm::cantFail(interp::interpret(main, arguments));
    return results.front().getTensor()->floats;
  }
};

// Softmax weights are rounded to 8 bits before they are multiplied by bf16 values, and to 16 bits
// before they are multiplied by int8 values.
TEST_P(Ring, MatchesTheInterpreter) {
  const Case &tested = GetParam();
  double tolerance = tested.depth == 1 ? 2e-6 : tested.depth == 2 ? 3e-3 : 1e-4;
  std::vector<float> exact = interpreted(tested, Rows(0, kLength));
  Program ring(tested, /*ring=*/true, /*split=*/false, 2);
  int64_t chunk = 97, rowSize = kHeads * kDim;
  ring.reserve(llvm::divideCeil(tested.window + chunk, kBlock));
  for (int64_t first = 0; first < kLength; first += chunk) {
    int64_t count = std::min(chunk, kLength - first);
    std::vector<uint32_t> found = call(ring, first, count, false);
    for (int64_t i = 0; i < 2 * count * rowSize; ++i) {
      int64_t row = i / rowSize, place = row / count * kLength + first + row % count;
      ASSERT_NEAR(llvm::bit_cast<float>(found[i]), exact[place * rowSize + i % rowSize],
                  4 * tolerance)
          << "row " << row << " from " << first;
    }
  }
}

// For all chunk sizes, with drafts in between that have the maximum length.
TEST_P(Ring, IsBitIdenticalToTheFullContext) {
  const Case &tested = GetParam();
  for (bool split : {true, false}) {
    Program whole(tested, /*ring=*/false, split, 2), ring(tested, /*ring=*/true, split, 2);
    for (int64_t chunk : {1, 7, 64, 200}) {
      SCOPED_TRACE((split ? "chunks of " : "tiles, chunks of ") + std::to_string(chunk));
      int64_t blocks = llvm::divideCeil(tested.window + std::max<int64_t>(chunk, kDraft), kBlock);
      ASSERT_LT(blocks * kBlock, kLength);
      ring.reserve(blocks);
      whole.reserve(llvm::divideCeil(kLength + kDraft, kBlock));
      int64_t calls = 0;
      for (int64_t first = 0; first < kLength; first += chunk, ++calls) {
        int64_t count = std::min(chunk, kLength - first);
        ASSERT_EQ(call(ring, first, count, false), call(whole, first, count, false))
            << "from " << first;
        if (chunk == 1 && calls % 31 != 0)
          continue;
        ASSERT_EQ(call(ring, first + count, kDraft - count % 7, true),
                  call(whole, first + count, kDraft - count % 7, true))
            << "a draft from " << first + count;
      }
    }
  }
}

// One block less is too few: the previous test detects that.
TEST_F(Ring, DropsOverwrittenPositions) {
  Case tested{"f32", 1, 100};
  Program whole(tested, /*ring=*/false, true, 2), ring(tested, /*ring=*/true, true, 2);
  ring.reserve(1);
  whole.reserve(llvm::divideCeil(kLength, kBlock));
  EXPECT_EQ(call(ring, 0, 64, false), call(whole, 0, 64, false));
  EXPECT_NE(call(ring, 64, 1, false), call(whole, 64, 1, false));
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (auto [element, depth] :
       {std::pair("f32", 1), std::pair("bf16", 2), std::pair("!mica.int8", 4)})
    for (int64_t window : {1, 63, 64, 65, 100})
      all.push_back({element, depth, window});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Windows, Ring, testing::ValuesIn(cases()));

} // namespace
