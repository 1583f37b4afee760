//===- MoeTest.cpp - MoE routing and experts ------------------------------===//

#include "tests/unit/backends/cpu/lowering/Formats.h"
#include "tests/unit/backends/cpu/lowering/KernelTest.h"

using namespace mica;
using namespace mica::test;

namespace {

struct Gate {
  const char *name, *sources; ///< a source that occurs twice makes experts tie
  int experts, k;
};
constexpr Gate kGates[] = {{"one", R"(["{name}.a"])", 5, 1},
                           {"two", R"(["{name}.a"])", 60, 2},
                           {"all", R"(["{name}.a"])", 16, 16},
                           {"ties", R"(["{name}.a", "{name}.a"])", 8, 3},
                           {"only_ties", R"(["{name}.a", "{name}.a", "{name}.a"])", 3, 2},
                           {"single", R"(["{name}.a"])", 1, 1}};

TEST_P(KernelTest, MoeGate) {
  std::vector<KernelCase> cases;
  for (const Gate &gate : kGates)
    for (const char *scoring : {"softmax", "sigmoid"})
      for (auto [suffix, normalize] : {std::pair("", ""), std::pair("normalized", "normalize"),
                                       std::pair("eps", "normalize eps(2.5e-01)")})
        cases.push_back(makeCase("gate_{gate}_{scoring}_{suffix}", R"(
  mica.weight @{name}.w from {sources} concat : tensor<{E}x33xf32>
  func.func @{name}(%x: tensor<?x33xf32>) -> (tensor<?x{k}xf32>, tensor<?x{k}xi32>) {
    %g = mica.get_weight @{name}.w : tensor<{E}x33xf32>
    %w, %e = mica.moe_gate %x, %g {scoring} k({k}) {normalize} : tensor<?x33xf32>, tensor<{E}x33xf32> -> tensor<?x{k}xf32>, tensor<?x{k}xi32>
    return %w, %e : tensor<?x{k}xf32>, tensor<?x{k}xi32>
  })",
                                 {{"gate", gate.name},
                                  {"sources", fill(gate.sources, {{"name", gate.name}})},
                                  {"scoring", scoring},
                                  {"suffix", suffix},
                                  {"normalize", normalize},
                                  {"E", gate.experts},
                                  {"k", gate.k}}));
  check(cases);
}

TEST_P(KernelTest, MoeGateOfGroups) {
  struct Options {
    const char *name, *vectors, *groups;
    int experts, k;
  };
  const char *both = "bias(%b : tensor<{E}xf32>) e_score_correction_bias(%c : tensor<{E}xf32>)";
  const char *scaled =
      "e_score_correction_bias(%b : tensor<{E}xf32>) expert_scales(%c : tensor<{E}xf32>)";
  std::vector<KernelCase> cases;
  for (const Options &options :
       {Options{"bias", "bias(%b : tensor<{E}xf32>)", "", 7, 3},
        Options{"correctionBias", "e_score_correction_bias(%c : tensor<{E}xf32>)", "", 20, 4},
        Options{"scales", "expert_scales(%b : tensor<{E}xf32>)", "", 7, 3},
        Options{"bias_and_scales", scaled, "", 20, 4},
        Options{"best", "", "groups(4 keep 2 by best)", 20, 4},
        Options{"best_two", both, "groups(3 keep 2 by best_two)", 6, 2},
        Options{"all_groups", both, "groups(2 keep 2 by best_two)", 34, 5}})
    for (const char *scoring : {"softmax", "sigmoid"})
      cases.push_back(makeCase("gate_{options}_{scoring}", R"(
  mica.weight @{name}.w : tensor<{E}x33xf32>
  mica.weight @{name}.b : tensor<{E}xf32>
  mica.weight @{name}.c : tensor<{E}xf32>
  func.func @{name}(%x: tensor<?x33xf32>) -> (tensor<?x{k}xf32>, tensor<?x{k}xi32>) {
    %g = mica.get_weight @{name}.w : tensor<{E}x33xf32>
    %b = mica.get_weight @{name}.b : tensor<{E}xf32>
    %c = mica.get_weight @{name}.c : tensor<{E}xf32>
    %w, %e = mica.moe_gate %x, %g {vectors} {scoring} k({k}) {groups} normalize
        : tensor<?x33xf32>, tensor<{E}x33xf32> -> tensor<?x{k}xf32>, tensor<?x{k}xi32>
    return %w, %e : tensor<?x{k}xf32>, tensor<?x{k}xi32>
  })",
                               {{"options", options.name},
                                {"vectors", options.vectors},
                                {"groups", options.groups},
                                {"scoring", scoring},
                                {"E", options.experts},
                                {"k", options.k}}));
  check(cases);
}

struct Experts {
  const char *name, *among; ///< the experts chosen by rows: the others are empty
  int k, columns, inner;
  const char *activation, *residual, *biases = "";
};
constexpr const char *kResidual = "residual(%r : tensor<?x{K}xf32>)";
constexpr const char *kBiases =
    "biases(%gb, %ub, %db : tensor<4x{inner}xf32>, tensor<4x{inner}xf32>, tensor<4x{K}xf32>)";
constexpr Experts kExperts[] = {
    {"two_of_four", "[0, 1, 2, 3]", 2, 33, 65, "silu", ""},
    {"residual", "[0, 1, 2, 3]", 2, 33, 65, "silu", kResidual},
    {"an_empty_one", "[3, 0, 2]", 2, 33, 65, "silu", ""},
    {"all_on_one", "[2]", 1, 130, 17, "relu", kResidual},
    {"squared", "[0, 2]", 2, 33, 20, "relu2", ""},
    {"all_of_them", "[1, 3, 0, 2]", 4, 1, 1, "relu", ""},
    {"biased", "[3, 0, 2]", 2, 33, 65, "silu", kResidual, kBiases},
    {"clamped", "[0, 1, 2, 3]", 2, 33, 65, "silu clamped(alpha 1.7 limit 0.5)", "", kBiases}};

KernelCase moeExperts(const Format &format, const Experts &experts) {
  Words words = {{"experts", experts.name},
                 {"among", experts.among},
                 {"k", experts.k},
                 // Before the sizes that it names.
                 {"biases", experts.biases},
                 {"inner", experts.inner},
                 {"both", 2 * roundUp(experts.inner, kBlockColumns)},
                 {"activation", experts.activation},
                 {"residual", experts.residual}};
  llvm::append_range(words, wordsOf(format));
  words.emplace_back("K", experts.columns);
  return makeCase("experts_{format}_{experts}", R"(
  mica.weight @{name}.up from ["{name}.g0", "{name}.u0", "{name}.g1", "{name}.u1", "{name}.g2", "{name}.u2", "{name}.g3", "{name}.u3"]
      stack parts(2) {test.rows = {inner} : i64} : tensor<4x{both}x{K}x{weight}>
  mica.weight @{name}.down from ["{name}.d0", "{name}.d1", "{name}.d2", "{name}.d3"] stack : tensor<4x{K}x{inner}x{weight}>
  mica.weight @{name}.gb : tensor<4x{inner}xf32>
  mica.weight @{name}.ub : tensor<4x{inner}xf32>
  mica.weight @{name}.db : tensor<4x{K}xf32>
  func.func @{name}({take}, %w: tensor<?x{k}xf32>, %e: tensor<?x{k}xi32> {test.among = {among}}, %r: tensor<?x{K}xf32>)
      -> tensor<?x{K}xf32> {
    {cast}
    %up = mica.get_weight @{name}.up : tensor<4x{both}x{K}x{weight}>
    %down = mica.get_weight @{name}.down : tensor<4x{K}x{inner}x{weight}>
    %gb = mica.get_weight @{name}.gb : tensor<4x{inner}xf32>
    %ub = mica.get_weight @{name}.ub : tensor<4x{inner}xf32>
    %db = mica.get_weight @{name}.db : tensor<4x{K}xf32>
    %y = mica.moe_experts %x, %w, %e, %up, %down {biases} {residual} {activation} inner({inner}) : tensor<?x{K}x{rows}>, tensor<?x{k}xf32>,
        tensor<?x{k}xi32>, tensor<4x{both}x{K}x{weight}>, tensor<4x{K}x{inner}x{weight}> -> tensor<?x{K}xf32>
    return %y : tensor<?x{K}xf32>
  })",
                  words, format.rounded);
}

TEST_P(KernelTest, MoeExperts) {
  std::vector<KernelCase> cases;
  for (const Format &format : kFormats)
    for (const Experts &experts : kExperts)
      // Integer kernels take long to compile, and formats do not affect activation functions: these
      // cases have one format, and the first ones share their kernels.
      if (!format.hasIntegers() ||
          (experts.columns == 33 && llvm::StringRef(experts.activation) == "silu"))
        cases.push_back(moeExperts(format, experts));
  for (const Format &format : kFormats)
    cases.push_back(moeExperts(format, {"one_group", "[1, 3]", 2, 32, 1, "silu", ""}));
  check(cases);
}

/// The two halves of experts, which models for several ranks have. `isMerged`: gate and up are one
/// weight, and the first half rounds to bf16 itself.
KernelCase moeHalves(const Format &format, const Experts &experts, bool hasBiases, bool isMerged) {
  llvm::StringRef rows = format.rows;
  bool roundsItself = isMerged && rows == "bf16", isCast = rows != "f32" && !roundsItself;
  Words words = {{"experts", experts.name},
                 {"among", experts.among},
                 {"biases", hasBiases
                                ? "biases(%gb, %ub : tensor<4x{inner}xf32>, tensor<4x{inner}xf32>)"
                                : ""},
                 {"bias", hasBiases ? "bias(%db : tensor<4x{K}xf32>)" : ""},
                 {"up", isMerged ? "" : "up(%up : tensor<4x{inner}x{K}x{weight}>)"},
                 {"first", roundsItself ? "bf16" : "f32"},
                 {"round", isCast ? "%i = mica.cast %h : tensor<?x{k}x{inner}xf32> to "
                                    "tensor<?x{k}x{inner}x{rows}>"
                                  : ""},
                 {"h", isCast ? "%i" : "%h"},
                 {"k", experts.k},
                 {"gateRows", isMerged ? 2 * roundUp(experts.inner, kBlockColumns) : experts.inner},
                 {"inner", experts.inner},
                 {"activation", experts.activation},
                 {"residual", experts.residual}};
  llvm::append_range(words, wordsOf(format));
  words.emplace_back("K", experts.columns);
  const char *merged = R"(
  mica.weight @{name}.gate from ["{name}.g0", "{name}.u0", "{name}.g1", "{name}.u1", "{name}.g2", "{name}.u2", "{name}.g3", "{name}.u3"]
      stack parts(2) {test.rows = {inner} : i64} : tensor<4x{gateRows}x{K}x{weight}>)",
             *apart = R"(
  mica.weight @{name}.gate from ["{name}.g0", "{name}.g1", "{name}.g2", "{name}.g3"] stack : tensor<4x{inner}x{K}x{weight}>
  mica.weight @{name}.up from ["{name}.u0", "{name}.u1", "{name}.u2", "{name}.u3"] stack : tensor<4x{inner}x{K}x{weight}>)",
             *getUp = R"(
    %up = mica.get_weight @{name}.up : tensor<4x{inner}x{K}x{weight}>)";
  return makeCase(isMerged ? "halves_{format}_{experts}" : "halves_apart_{format}_{experts}",
                  std::string(isMerged ? merged : apart) + R"(
  mica.weight @{name}.down from ["{name}.d0", "{name}.d1", "{name}.d2", "{name}.d3"] stack : tensor<4x{K}x{inner}x{weight}>
  mica.weight @{name}.gb : tensor<4x{inner}xf32>
  mica.weight @{name}.ub : tensor<4x{inner}xf32>
  mica.weight @{name}.db : tensor<4x{K}xf32>
  func.func @{name}({take}, %w: tensor<?x{k}xf32>, %e: tensor<?x{k}xi32> {test.among = {among}}, %r: tensor<?x{K}xf32>)
      -> tensor<?x{K}xf32> {
    {cast}
    %gate = mica.get_weight @{name}.gate : tensor<4x{gateRows}x{K}x{weight}>)" +
                      (isMerged ? "" : getUp) + R"(
    %down = mica.get_weight @{name}.down : tensor<4x{K}x{inner}x{weight}>
    %gb = mica.get_weight @{name}.gb : tensor<4x{inner}xf32>
    %ub = mica.get_weight @{name}.ub : tensor<4x{inner}xf32>
    %db = mica.get_weight @{name}.db : tensor<4x{K}xf32>
    %h = mica.moe_gate_up %x, %e, %gate {up} {biases} {activation} : tensor<?x{K}x{rows}>, tensor<?x{k}xi32>, tensor<4x{gateRows}x{K}x{weight}>
        -> tensor<?x{k}x{inner}x{first}>
    {round}
    %y = mica.moe_down {h}, %w, %e, %down {bias} {residual} : tensor<?x{k}x{inner}x{rows}>, tensor<?x{k}xf32>,
        tensor<?x{k}xi32>, tensor<4x{K}x{inner}x{weight}> -> tensor<?x{K}xf32>
    return %y : tensor<?x{K}xf32>
  })",
                  words, format.rounded);
}

TEST_P(KernelTest, MoeHalves) {
  std::vector<KernelCase> cases;
  for (const Format &format : kFormats) {
    Experts plain{"plain", "[3, 0, 2]", 2, 33, 65, "silu", kResidual},
        clamped{"clamped", "[0, 1, 2, 3]", 2, 33, 65, "silu clamped(alpha 1.7 limit 0.5)", ""};
    cases.push_back(moeHalves(format, plain, /*hasBiases=*/false, /*isMerged=*/true));
    if (format.hasIntegers())
      continue;
    for (bool isMerged : {true, false})
      cases.push_back(moeHalves(format, clamped, /*hasBiases=*/true, isMerged));
  }
  check(cases);
}

/// More blocks than AMX tiles multiply at once, and experts with more rows.
TEST_P(KernelTest, MoeExpertsOfLargeBatches) {
  KernelCase row = moeExperts(kFormats[1], {"blocks", "[1, 3]", 2, 96, 330, "relu", ""});
  row.largeBatch = true;
  check(row);
}

} // namespace
