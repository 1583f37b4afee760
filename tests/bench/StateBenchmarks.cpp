// Kernels that update states of fixed size: linear attention and causal convolutions.
#include "tests/bench/KernelBenchmarks.h"
#include "tests/unit/backends/cpu/lowering/Checkpoint.h"

#include <cmath>
#include <numeric>

using namespace mlir;
using namespace mica::test;

namespace mica::bench {

namespace {
/// One row is the newest of a sequence, eight are those of eight sequences, 512 are a prompt.
constexpr int64_t stateRows[] = {1, 8, 512};
bool isPrompt(int64_t rows) { return rows == stateRows[2]; }

/// In decode, the middle of a chunk of 32 positions after the first: a matrix and half of the ring
/// of a chunk are read, on average over the chunk.
constexpr int64_t decodePosition = 47, chunkRows = 16;

/// Arguments of one layer. Memory of states that no row of the call has written contains NaNs,
/// which are as fast as numbers.
SmallVector<interp::Value> argumentsOf(func::FuncOp function, int64_t rows) {
  std::vector<int64_t> sequences(rows), positions(rows, decodePosition);
  std::iota(isPrompt(rows) ? positions.begin() : sequences.begin(),
            isPrompt(rows) ? positions.end() : sequences.end(), 0);
  SmallVector<interp::Value> made;
  for (auto [index, type] : llvm::enumerate(function.getArgumentTypes())) {
    if (auto state = dyn_cast<SequenceState>(type)) {
      // The memory of a state does not depend on the number of positions.
      made.push_back(interp::Value::makeCache(state, isPrompt(rows) ? 1 : rows, 1));
      continue;
    }
    interp::Tensor tensor = interp::Tensor::zerosOf(type, rows);
    if (!tensor.isFloat()) {
      tensor.ints = function.getArgAttr(index, "test.positions") ? positions : sequences;
    } else {
      // Short keys and decays close to one: the state neither grows nor becomes subnormal.
      bool areHeads = tensor.shape.size() == 3;
      double length = std::sqrt(double(tensor.shape.back()));
      for (auto [at, x] : llvm::enumerate(randomNumbers("x", tensor.getNumElements())))
        tensor.set(at, areHeads ? float(x / length) : 1 - x * x * x * x);
    }
    made.push_back(std::move(tensor));
  }
  return made;
}

/// Calls with separate arguments, so that no call finds them in a cache.
KernelBenchmark overStates(double bytesPerRow, double bytesPerSequence, double flopsPerRow) {
  KernelBenchmark made;
  made.format = "f32";
  made.rows = ArrayRef(stateRows).vec();
  auto bytesOf = [=](int64_t rows) {
    double sequences = isPrompt(rows) ? 1 : double(rows);
    return bytesPerRow * double(rows) + bytesPerSequence * sequences;
  };
  made.calls = [=](int64_t rows) { return copiesOf(bytesOf(rows)); };
  made.arguments = argumentsOf;
  made.work = [=](double, int64_t rows) { return Work{bytesOf(rows), flopsPerRow * double(rows)}; };
  return made;
}

/// A layer with a recurrent state and a convolution before it.
struct Recurrence {
  const char *name;
  int64_t groups, heads, keys, values, channels; ///< channels: of the convolution
  bool hasBeta, hasBias;

  Words words() const {
    return {{"name", name},
            {"where", "%s: tensor<?xi32> {test.sequences}, %p: tensor<?xi32> {test.positions}"},
            {"at", "at(%s, %p : tensor<?xi32>, tensor<?xi32>)"},
            {"beta", hasBeta ? "beta(%b : tensor<?x{H}xf32>)" : ""},
            {"bias", hasBias ? "bias(%b : tensor<{C}xf32>)" : ""},
            {"state", "!mica.recurrent_state<1 x {H} x {K} x {V} x f32>"},
            {"inputs", "!mica.rolling_state<1 x {C} x f32 window(4)>"},
            {"G", groups},
            {"H", heads},
            {"K", keys},
            {"V", values},
            {"C", channels}};
  }
};
/// Qwen3.5 4B and Granite 4.0 H Micro.
constexpr Recurrence recurrences[] = {
    {"gated_delta_rule", 16, 32, 128, 128, 8192, true, false},
    {"mamba2", 1, 64, 128, 64, 4352, false, true},
};

/// The operations are those of the recurrence: a matrix is multiplied by q, with beta by k too, and
/// a product of k and v is added to it. Chunks need other numbers of operations.
KernelBenchmark linearAttention(const Recurrence &layer) {
  auto heads = double(layer.heads), matrix = double(layer.keys * layer.values);
  double row = double(2 * layer.groups * layer.keys + layer.heads * (layer.values + 1)) +
               (layer.hasBeta ? heads : 0),
         ring = chunkRows * double(layer.keys + layer.values + 1);
  KernelBenchmark made = overStates(4 * row, 4 * heads * (matrix + ring),
                                    2 * heads * matrix * (layer.hasBeta ? 3 : 2));
  made.name = fill("linear_attention/{name}/{H}x{K}x{V}", layer.words());
  made.text = fill(R"(
  func.func @f0(%q: tensor<?x{G}x{K}xf32>, %k: tensor<?x{G}x{K}xf32>, %v: tensor<?x{H}x{V}xf32>, %d: tensor<?x{H}xf32>,
      %b: tensor<?x{H}xf32>, {where}, %state: {state}) -> (tensor<?x{H}x{V}xf32>, {state}) {
    %layer = arith.constant 0 : index
    %y, %next = mica.linear_attention %q, %k, %v decay(%d : tensor<?x{H}xf32>) {beta}, %state[%layer]
        {at} : tensor<?x{G}x{K}xf32>, tensor<?x{H}x{V}xf32>, {state}
    return %y, %next : tensor<?x{H}x{V}xf32>, {state}
  })",
                   layer.words());
  return made;
}

KernelBenchmark convolution(const Recurrence &layer) {
  constexpr int taps = 4;
  auto channels = double(layer.channels);
  KernelBenchmark made =
      overStates(4 * channels, 4 * channels * (taps - 1), 2 * channels * double(taps));
  made.name = fill("causal_conv1d/{name}/{C}", layer.words());
  made.text = fill(R"(
  mica.weight @w : tensor<{C}x4xf32>
  mica.weight @b : tensor<{C}xf32>
  func.func @f0(%x: tensor<?x{C}xf32>, {where}, %state: {inputs}) -> (tensor<?x{C}xf32>, {inputs}) {
    %layer = arith.constant 0 : index
    %w = mica.get_weight @w : tensor<{C}x4xf32>
    %b = mica.get_weight @b : tensor<{C}xf32>
    %y, %next = mica.causal_conv1d %x, %w, %state[%layer] {at} {bias}
        : tensor<?x{C}xf32>, tensor<{C}x4xf32>, {inputs}
    return %y, %next : tensor<?x{C}xf32>, {inputs}
  })",
                   layer.words());
  return made;
}
} // namespace

std::vector<KernelBenchmark> stateBenchmarks() {
  std::vector<KernelBenchmark> all;
  for (const Recurrence &layer : recurrences) {
    all.push_back(linearAttention(layer));
    all.push_back(convolution(layer));
  }
  return all;
}

} // namespace mica::bench
