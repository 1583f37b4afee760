//===- StateTest.cpp - ops on states of fixed size ------------------------===//

#include "tests/unit/backends/cpu/lowering/Arguments.h"
#include "tests/unit/backends/cpu/lowering/KernelTest.h"
#include "tests/unit/backends/cpu/lowering/TaskCuts.h"

#include <cmath>

using namespace mlir;
using namespace mica;
using namespace mica::test;

namespace {

/// Less than a vector, a vector and one more, whole blocks of channels, blocks and a rest.
constexpr int kChannels[] = {1, 17, 128, 150};

TEST_P(KernelTest, CausalConv1d) {
  std::vector<KernelCase> cases;
  for (const char *type : {"f32", "bf16"})
    for (int taps : {2, 3, 4, 32})
      for (int channels : kChannels)
        cases.push_back(makeCase("conv_{type}_{C}_{K}", R"(
  mica.weight @{name}.w : tensor<{C}x{K}x{type}>
  mica.weight @{name}.b : tensor<{C}xf32>
  func.func @{name}(%x: tensor<?x{C}xf32>, %s: tensor<?xi32> {test.sequences}, %p: tensor<?xi32> {test.positions}, %state: {state})
      -> (tensor<?x{C}xf32>, {state}) {
    %layer = arith.constant 1 : index
    %w = mica.get_weight @{name}.w : tensor<{C}x{K}x{type}>
    %b = mica.get_weight @{name}.b : tensor<{C}xf32>
    %y, %next = mica.causal_conv1d %x, %w, %state[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) {bias}
        : tensor<?x{C}xf32>, tensor<{C}x{K}x{type}>, {state}
    return %y, %next : tensor<?x{C}xf32>, {state}
  })",
                                 {{"bias", taps == 3 ? "" : "bias(%b : tensor<{C}xf32>)"},
                                  {"state", "!mica.rolling_state<2 x {C} x f32 window({K})>"},
                                  {"type", type},
                                  {"K", taps},
                                  {"C", channels}},
                                 2e-6));
  check(cases);
}

/// Linear attention over prompts of two sequences, from their first positions.
struct Scan {
  int groups, heads, keys, values;
  bool hasBeta;

  std::string name() const {
    return fill("scan_{G}_{H}_{K}_{V}_{beta}",
                {{"G", groups}, {"H", heads}, {"K", keys}, {"V", values}, {"beta", int(hasBeta)}});
  }

  std::string text() const {
    return fill(R"(
  func.func @{name}(%q: tensor<?x{G}x{K}xf32>, %k: tensor<?x{G}x{K}xf32>, %v: tensor<?x{H}x{V}xf32>, %d: tensor<?x{H}xf32>,
      %b: tensor<?x{H}xf32>, %s: tensor<?xi32> {test.sequences}, %p: tensor<?xi32> {test.positions}, %state: {state})
      -> (tensor<?x{H}x{V}xf32>, {state}) {
    %layer = arith.constant 1 : index
    %y, %next = mica.linear_attention %q, %k, %v decay(%d : tensor<?x{H}xf32>) {beta}, %state[%layer]
        at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x{G}x{K}xf32>, tensor<?x{H}x{V}xf32>, {state}
    return %y, %next : tensor<?x{H}x{V}xf32>, {state}
  })",
                {{"name", name()},
                 {"beta", hasBeta ? "beta(%b : tensor<?x{H}xf32>)" : ""},
                 {"state", "!mica.recurrent_state<2 x {H} x {K} x {V} x f32>"},
                 {"G", groups},
                 {"H", heads},
                 {"K", keys},
                 {"V", values}});
  }

  /// Runs of both sequences that cross chunks of 32 positions anywhere, and a decay of 0 and of 1.
  SmallVector<interp::Value> arguments(func::FuncOp function) const {
    constexpr int64_t runs[] = {40, 3, 1, 66, 31, 60, 1, 33};
    std::vector<int64_t> sequences, positions;
    int64_t next[] = {0, 0};
    for (auto [index, length] : llvm::enumerate(runs))
      for (int64_t i = 0; i < length; ++i) {
        sequences.push_back(index % 2);
        positions.push_back(next[index % 2]++);
      }
    auto rows = static_cast<int64_t>(positions.size());
    SmallVector<interp::Value> arguments = randomArguments(function, rows);
    auto change = [&](size_t index, auto body) {
      interp::Tensor tensor = *arguments[index].getTensor();
      body(tensor);
      arguments[index] = std::move(tensor);
    };
    // Short keys keep the state of the delta rule bounded.
    change(1, [&](interp::Tensor &k) {
      for (float &number : k.floats)
        number /= std::sqrt(float(keys));
    });
    change(3, [&](interp::Tensor &decay) {
      for (float &number : decay.floats)
        number = 1 - number * number * number * number;
      decay.floats[10 * heads] = 0;
      decay.floats[20 * heads] = 1;
    });
    change(4, [&](interp::Tensor &beta) {
      for (float &number : beta.floats)
        number = std::abs(number);
    });
    change(5, [&](interp::Tensor &tensor) { tensor.ints = sequences; });
    change(6, [&](interp::Tensor &tensor) { tensor.ints = positions; });
    auto state = cast<SequenceState>(function.getArgumentTypes().back());
    arguments.back() = interp::Value::makeCache(state, 2, 162);
    return arguments;
  }
};

/// A key and a value; less than a vector; not whole vectors or tiles; heads of Mamba 2 and of gated
/// delta nets. Groups of one, several and more heads than are updated together.
constexpr Scan kScans[] = {{1, 1, 1, 1, false},    {1, 3, 5, 7, false},    {2, 8, 16, 12, false},
                           {3, 3, 17, 33, false},  {1, 5, 128, 64, false}, {2, 10, 34, 36, false},
                           {1, 1, 20, 100, false}, {1, 1, 1, 1, true},     {1, 3, 5, 7, true},
                           {2, 8, 16, 12, true},   {3, 3, 17, 33, true},   {1, 2, 128, 128, true},
                           {2, 10, 34, 36, true},  {1, 1, 20, 100, true}};

/// Prompts equal the sequential recurrence, whose bits do not depend on how rows are split into
/// calls and heads into tasks.
TEST_P(KernelTest, LinearAttention) {
  std::string text;
  for (const Scan &scan : kScans)
    text += scan.text();
  auto target = describeTestTarget(GetParam());
  ASSERT_TRUE(bool(target)) << llvm::toString(target.takeError());
  auto module = KernelModule::compile(text, *target, cuttingRuntime);
  ASSERT_TRUE(bool(module)) << llvm::toString(module.takeError());
  for (const Scan &scan : kScans) {
    SCOPED_TRACE(scan.name());
    func::FuncOp function = (*module)->getFunction(scan.name());
    SmallVector<interp::Value> arguments = scan.arguments(function), copies;
    for (const interp::Value &argument : arguments)
      copies.push_back(argument.clone());
    auto expected = (*module)->interpret(scan.name(), copies);
    ASSERT_TRUE(bool(expected)) << llvm::toString(expected.takeError());
    const std::vector<float> &reference = expected->front().getTensor()->floats;
    auto rows = arguments.front().getTensor()->shape.front();

    // The results of calls with up to `size` rows.
    auto run = [&](int64_t size) {
      std::vector<float> results;
      std::optional<KernelCall> last;
      for (int64_t begin = 0; begin < rows; begin += size) {
        KernelCall call = (*module)->prepare(
            scan.name(), sliceRows(function, arguments, begin, std::min(begin + size, rows)));
        if (last)
          call.continueFrom(*last);
        call();
        EXPECT_EQ(call.findDamage(), "");
        llvm::append_range(results, call.getResults().front().getTensor()->floats);
        last.emplace(std::move(call));
      }
      return results;
    };
    std::vector<float> whole = run(rows);
    ASSERT_EQ(whole.size(), reference.size());
    double largest = 0, error = 0;
    for (auto [a, b] : llvm::zip_equal(whole, reference)) {
      ASSERT_TRUE(std::isfinite(a));
      largest = std::max(largest, std::abs(double(b)));
      error = std::max(error, std::abs(double(a) - double(b)));
    }
    EXPECT_LE(error, 1e-5 * largest);
    for (int64_t size : {1, 2, 7, 31, 32, 33, 63, 64, 65, 200})
      EXPECT_TRUE(run(size) == whole) << "calls with " << size << " rows";
    for (const TaskCut &cut : {inParts(2), inParts(3), oneByOne(), onPool(2)}) {
      setTaskCut(cut);
      EXPECT_TRUE(run(rows) == whole);
    }
    setTaskCut(inOnePart());
  }
}

} // namespace
