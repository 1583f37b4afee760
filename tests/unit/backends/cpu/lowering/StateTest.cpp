//===- StateTest.cpp - ops on states of fixed size ------------------------===//

#include "tests/unit/backends/cpu/lowering/KernelTest.h"

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

} // namespace
