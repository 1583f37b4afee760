//===- RowsTest.cpp - kernels that work row by row ------------------------===//

#include "tests/unit/backends/cpu/lowering/KernelTest.h"

using namespace mica;
using namespace mica::test;

namespace {

/// Rows and heads after the number of rows: one element, a vector and one more, whole vectors,
/// vectors and a rest.
constexpr const char *kShapes[] = {"1", "17", "64", "130", "3x20"};

/// `shape` as {S}, its last extent as {C}.
Words shapeWords(llvm::StringRef shape, Words words) {
  words.emplace_back("S", shape.str());
  words.emplace_back("C", shape.substr(shape.rfind('x') + 1).str());
  return words;
}

struct Norm {
  const char *name, *x, *result, *options;
};

std::vector<KernelCase> norms(const char *op, llvm::ArrayRef<Norm> table) {
  std::vector<KernelCase> cases;
  for (const Norm &norm : table)
    for (const char *shape : kShapes)
      cases.push_back(makeCase("{op}_{norm}_{S}", R"(
  mica.weight @{name}.w : tensor<{C}xf32>
  mica.weight @{name}.b : tensor<{C}xf32>
  func.func @{name}(%x: tensor<?x{S}x{x}>) -> tensor<?x{S}x{result}> {
    %w = mica.get_weight @{name}.w : tensor<{C}xf32>
    %b = mica.get_weight @{name}.b : tensor<{C}xf32>
    %y = mica.{op} %x, %w {options} : tensor<?x{S}x{x}>, tensor<{C}xf32> -> tensor<?x{S}x{result}>
    return %y : tensor<?x{S}x{result}>
  })",
                               shapeWords(shape, {{"op", op},
                                                  {"norm", norm.name},
                                                  {"x", norm.x},
                                                  {"result", norm.result},
                                                  {"options", norm.options}})));
  return cases;
}

TEST_P(KernelTest, RmsNorm) {
  check(norms("rmsnorm",
              {{"f32", "f32", "f32", "eps(1.0e-05)"},
               {"f32_offset", "f32", "f32", "eps(0.3) weight_offset(1.0)"},
               {"f32_to_bf16", "f32", "bf16", "eps(1.0e-05) rounding(after_weight)"},
               {"bf16_before", "bf16", "bf16", "eps(1.0e-05) rounding(before_weight)"},
               {"bf16_after", "bf16", "bf16", "eps(0.3) rounding(after_weight) weight_offset(1.0)"},
               {"bf16_before_to_f32", "bf16", "f32", "eps(1.0e-05) rounding(before_weight)"},
               {"bf16_after_to_f32", "bf16", "f32", "eps(0.3) rounding(after_weight)"}}));
}

TEST_P(KernelTest, LayerNorm) {
  check(norms("layernorm", {{"f32", "f32", "f32", "eps(1.0e-05)"},
                            {"f32_bias", "f32", "f32", "bias(%b : tensor<{C}xf32>) eps(0.3)"},
                            {"f32_to_bf16", "f32", "bf16", "eps(1.0e-05)"},
                            {"bf16_bias", "bf16", "bf16", "bias(%b : tensor<{C}xf32>) eps(0.3)"}}));
}

TEST_P(KernelTest, Elementwise) {
  struct Op {
    const char *name, *operands;
    double tolerance;
  };
  std::vector<KernelCase> cases;
  for (const Op &op : {Op{"silu", "%x", 1e-6}, Op{"gelu", "%x", 1e-6}, Op{"gelu_tanh", "%x", 1e-6},
                       Op{"quick_gelu", "%x", 1e-6}, Op{"relu2", "%x", 1e-6}, Op{"relu", "%x", 0},
                       Op{"sigmoid", "%x", 1e-6}, Op{"add", "%x, %z", 0}, Op{"mul", "%x, %z", 0}})
    for (const char *type : {"f32", "bf16"})
      for (const char *shape : {"1", "130", "3x20"})
        cases.push_back(makeCase(
            "{op}_{type}_{S}", R"(
  func.func @{name}(%x: tensor<?x{S}x{type}>, %z: tensor<?x{S}x{type}>) -> tensor<?x{S}x{type}> {
    %y = mica.{op} {operands} : tensor<?x{S}x{type}>
    return %y : tensor<?x{S}x{type}>
  })",
            shapeWords(shape, {{"op", op.name}, {"operands", op.operands}, {"type", type}}),
            op.tolerance));
  check(cases);
}

TEST_P(KernelTest, ConstantsOfTheModel) {
  std::vector<KernelCase> cases;
  for (auto [op, tolerance] :
       {std::pair("scale %x by(-3.25)", 0.0), std::pair("softcap %x at(0.7)", 1e-6)})
    for (const char *type : {"f32", "bf16"})
      for (const char *shape : kShapes)
        cases.push_back(
            makeCase("{op}_{type}_{S}", R"(
  func.func @{name}(%x: tensor<?x{S}x{type}>) -> tensor<?x{S}x{type}> {
    %y = mica.{text} : tensor<?x{S}x{type}>
    return %y : tensor<?x{S}x{type}>
  })",
                     shapeWords(shape, {{"op", llvm::StringRef(op).split(' ').first.str()},
                                        {"text", op},
                                        {"type", type}}),
                     tolerance));
  check(cases);
}

TEST_P(KernelTest, SigmoidGate) {
  std::vector<KernelCase> cases;
  for (auto [columns, numbers] :
       {std::pair(1, 1), {17, 1}, {64, 1}, {130, 1}, {17, 17}, {130, 130}})
    cases.push_back(makeCase("sigmoid_gate_{N}_{G}", R"(
  func.func @{name}(%x: tensor<?x{N}xf32>, %g: tensor<?x{G}xf32>) -> tensor<?x{N}xf32> {
    %y = mica.sigmoid_gate %x, %g : tensor<?x{N}xf32>, tensor<?x{G}xf32>
    return %y : tensor<?x{N}xf32>
  })",
                             {{"N", columns}, {"G", numbers}}, 1e-6));
  check(cases);
}

TEST_P(KernelTest, ScaleParts) {
  std::vector<KernelCase> cases;
  for (auto [first, second, third] : {std::tuple(1, 1, 1), {20, 64, 3}, {48, 17, 65}})
    cases.push_back(
        makeCase("scale_parts_{A}_{B}_{C}", R"(
  func.func @{name}(%x: tensor<?x{N}xf32>) -> tensor<?x{N}xf32> {
    %y = mica.scale_parts %x by([0.3, -2.5, 1.0]) widths([{A}, {B}, {C}]) : tensor<?x{N}xf32>
    return %y : tensor<?x{N}xf32>
  })",
                 {{"A", first}, {"B", second}, {"C", third}, {"N", first + second + third}}, 1e-7));
  check(cases);
}

TEST_P(KernelTest, L2Norm) {
  std::vector<KernelCase> cases;
  for (auto [size, eps] : {std::pair("small", "1.0e-06"), {"large", "0.3"}})
    for (const char *type : {"f32", "bf16"})
      for (const char *shape : {"1", "130", "3x20", "2x16"})
        cases.push_back(makeCase("l2norm_{S}_{type}_{size}_eps", R"(
  func.func @{name}(%x: tensor<?x{S}x{type}>) -> tensor<?x{S}x{type}> {
    %y = mica.l2norm %x eps({eps}) : tensor<?x{S}x{type}>
    return %y : tensor<?x{S}x{type}>
  })",
                                 shapeWords(shape, {{"size", size}, {"eps", eps}, {"type", type}}),
                                 1e-6));
  check(cases);
}

TEST_P(KernelTest, TimeSteps) {
  std::vector<KernelCase> cases;
  for (const char *op : {"softplus %x bias(%w)", "decay %x, %w"})
    for (int columns : {1, 17, 64})
      cases.push_back(makeCase(
          "{op}_{N}", R"(
  mica.weight @{name}.w : tensor<{N}xf32>
  func.func @{name}(%x: tensor<?x{N}xf32>) -> tensor<?x{N}xf32> {
    %w = mica.get_weight @{name}.w : tensor<{N}xf32>
    %y = mica.{text} : tensor<?x{N}xf32>, tensor<{N}xf32>
    return %y : tensor<?x{N}xf32>
  })",
          {{"op", llvm::StringRef(op).split(' ').first.str()}, {"text", op}, {"N", columns}},
          1e-6));
  check(cases);
}

TEST_P(KernelTest, SelectHead) {
  std::vector<KernelCase> cases;
  for (int size : {2, 20, 64})
    cases.push_back(makeCase("select_head_{D}", R"(
  func.func @{name}(%x: tensor<?x3x{D}xf32>) -> tensor<?x{D}xf32> {
    %i = arith.constant 2 : index
    %y = mica.select_head %x[%i] : tensor<?x3x{D}xf32> -> tensor<?x{D}xf32>
    return %y : tensor<?x{D}xf32>
  })",
                             {{"D", size}}, 0));
  check(cases);
}

TEST_P(KernelTest, ScaleHeads) {
  std::vector<KernelCase> cases;
  for (int size : {2, 20, 64})
    cases.push_back(makeCase("scale_heads_{D}", R"(
  mica.weight @{name}.w : tensor<3xf32>
  func.func @{name}(%x: tensor<?x3x{D}xf32>, %f: tensor<?x3xf32>) -> tensor<?x3x{D}xf32> {
    %w = mica.get_weight @{name}.w : tensor<3xf32>
    %y = mica.scale_heads %x by(%f) : tensor<?x3x{D}xf32>, tensor<?x3xf32>
    %z = mica.scale_heads %y by(%w) : tensor<?x3x{D}xf32>, tensor<3xf32>
    return %z : tensor<?x3x{D}xf32>
  })",
                             {{"D", size}}, 1e-6));
  check(cases);
}

/// A norm weight for each head.
TEST_P(KernelTest, NormsOfHeads) {
  std::vector<KernelCase> cases;
  for (const char *op : {"rmsnorm %x, %w eps(0.3) weight_offset(1.0)", "layernorm %x, %w eps(0.3)",
                         "layernorm %x, %w bias(%b : tensor<{H}x{D}xf32>) eps(0.3)"})
    for (int heads : {1, 3})
      for (int size : {2, 20, 64})
        cases.push_back(
            makeCase("heads_{number}_{H}_{D}", R"(
  mica.weight @{name}.w : tensor<{H}x{D}xf32>
  mica.weight @{name}.b : tensor<{H}x{D}xf32>
  func.func @{name}(%x: tensor<?x{H}x{D}xf32>) -> tensor<?x{H}x{D}xf32> {
    %w = mica.get_weight @{name}.w : tensor<{H}x{D}xf32>
    %b = mica.get_weight @{name}.b : tensor<{H}x{D}xf32>
    %y = mica.{op} : tensor<?x{H}x{D}xf32>, tensor<{H}x{D}xf32> -> tensor<?x{H}x{D}xf32>
    return %y : tensor<?x{H}x{D}xf32>
  })",
                     {{"number", int64_t(cases.size())}, {"op", op}, {"H", heads}, {"D", size}}));
  check(cases);
}

TEST_P(KernelTest, Cast) {
  std::vector<KernelCase> cases;
  for (auto [from, to] : {std::pair("f32", "bf16"), std::pair("bf16", "f32")})
    for (const char *shape : kShapes)
      cases.push_back(makeCase("cast_{from}_{S}", R"(
  func.func @{name}(%x: tensor<?x{S}x{from}>) -> tensor<?x{S}x{to}> {
    %y = mica.cast %x : tensor<?x{S}x{from}> to tensor<?x{S}x{to}>
    return %y : tensor<?x{S}x{to}>
  })",
                               shapeWords(shape, {{"from", from}, {"to", to}}), 0));
  check(cases);
}

TEST_P(KernelTest, SelectRows) {
  std::vector<KernelCase> cases;
  for (const char *type : {"f32", "bf16"})
    for (int columns : {1, 17, 64})
      cases.push_back(makeCase("select_{type}_{N}", R"(
  func.func @{name}(%rows: tensor<?xi32> {test.below = 40 : i64}, %x: tensor<?x{N}x{type}> {test.rows = 40 : i64})
      -> tensor<?x{N}x{type}> {
    %y = mica.select_rows %x, %rows : tensor<?x{N}x{type}>, tensor<?xi32> -> tensor<?x{N}x{type}>
    return %y : tensor<?x{N}x{type}>
  })",
                               {{"type", type}, {"N", columns}}, 0));
  check(cases);
}

/// Columns of a wider row, as heads and back: all are views, whose rows have a stride.
TEST_P(KernelTest, RowsOfColumns) {
  check(makeCase("columns", R"(
  mica.weight @w : tensor<20xf32>
  func.func @{name}(%x: tensor<?x95xf32>) -> tensor<?x60xf32> {
    %w = mica.get_weight @w : tensor<20xf32>
    %a, %b = mica.split %x : tensor<?x95xf32> -> tensor<?x35xf32>, tensor<?x60xf32>
    %h = mica.split_heads %b : tensor<?x60xf32> to tensor<?x3x20xf32>
    %n = mica.rmsnorm %h, %w eps(1.0e-05) : tensor<?x3x20xf32>, tensor<20xf32> -> tensor<?x3x20xf32>
    %m = mica.merge_heads %n : tensor<?x3x20xf32> to tensor<?x60xf32>
    %y = mica.add %m, %b : tensor<?x60xf32>
    return %y : tensor<?x60xf32>
  })",
                 {}));
}

} // namespace
