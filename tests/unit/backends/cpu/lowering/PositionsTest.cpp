//===- PositionsTest.cpp - rope, caches and attention ---------------------===//

#include "tests/unit/backends/cpu/lowering/KernelTest.h"

using namespace mica;
using namespace mica::test;

namespace {

/// Formats of caches, and the type of queries.
struct Precision {
  const char *name;
  const char *cache;   ///< the elements' type
  const char *queries; ///< and results
  double tolerance;    ///< of attention
  Tolerance appended;  ///< of values before they are rounded to the cache's type
};
const Precision kPrecisions[] = {
    {"f32", "f32", "f32", 4e-6, 2e-6},
    // Softmax weights are rounded before they are multiplied by values.
    {"bf16", "bf16", "bf16", 4e-3, 2e-6},
    // With int8 dot products, queries have 15 bits. A number near the boundary between two integers
    // may be rounded to the other one.
    {"int8", "!mica.int8", "f32", 1e-4, {1.01 / 127, 2e-4}},
};

constexpr const char *kScalings[] = {
    "", "scaling(#mica.linear_scaling<factor = 2.5>)",
    "scaling(#mica.llama3_scaling<factor = 8.0, low_freq_factor = "
    "1.0, high_freq_factor = 4.0, original_context = 64>)",
    "scaling(#mica.yarn_scaling<factor = 16.0, beta_fast = 32.0, "
    "beta_slow = 1.0, attention_factor = 1.25, "
    "original_context = 2048, high_limit = 31>)",
    "scaling(#mica.proportional_scaling<pairs = 1, factor = 2.0>)"};

/// Sines of angles that are rounded to f32: an error of a few units in the last place of 1.
constexpr double kSineTolerance = 1e-6;

TEST_P(KernelTest, RopeTable) {
  std::vector<KernelCase> cases;
  for (int width : {2, 20, 64})
    for (auto [number, scaling] : llvm::enumerate(kScalings))
      cases.push_back(makeCase("rope_table_{width}_{number}", R"(
  func.func @{name}(%p: tensor<?xi32> {test.below = 100000 : i64}) -> tensor<?x2x{pairs}xf32> {
    %y = mica.rope_table %p rotary_dim({width}) theta(1.0e+06) {scaling} : tensor<?xi32> -> tensor<?x2x{pairs}xf32>
    return %y : tensor<?x2x{pairs}xf32>
  })",
                               {{"width", width},
                                {"number", int64_t(number)},
                                {"pairs", width / 2},
                                {"scaling", scaling}},
                               kSineTolerance));
  check(cases);
}

/// Rows of short and long sequences in one step.
TEST_P(KernelTest, RopeTableOfLengths) {
  std::vector<KernelCase> cases;
  for (int pairs : {2, 10, 32})
    for (bool grows : {false, true}) {
      std::string factors, more;
      for (int i = 0; i < pairs; ++i) {
        factors += (i ? ", 1." : "1.") + std::to_string(i);
        more += (i ? ", 4." : "4.") + std::to_string(i);
      }
      cases.push_back(makeCase("rope_table_{grows}_{pairs}", R"(
  func.func @{name}(%p: tensor<?xi32> {test.below = 9000 : i64}, %n: tensor<?xi32> {test.below = 9000 : i64})
      -> tensor<?x2x{pairs}xf32> {
    %y = mica.rope_table %p lengths(%n : tensor<?xi32>) rotary_dim({width}) theta(1.0e+04) scaling({scaling})
        : tensor<?xi32> -> tensor<?x2x{pairs}xf32>
    return %y : tensor<?x2x{pairs}xf32>
  })",
                               {{"grows", grows ? "dynamic" : "longrope"},
                                {"width", 2 * pairs},
                                {"pairs", pairs},
                                {"scaling", grows ? "#mica.dynamic_scaling<factor = 3.0, "
                                                    "original_context = 1000>"
                                                  : "#mica.longrope_scaling<short_factors = [" +
                                                        factors + "], long_factors = [" + more +
                                                        "], attention_factor = 1.25, "
                                                        "original_context = 4000>"}},
                               kSineTolerance));
    }
  check(cases);
}

/// A head size, and the number of rotated elements.
struct Rotary {
  int headDim, width;
};
constexpr Rotary kRotaries[] = {{8, 8}, {8, 2}, {20, 20}, {64, 64}, {80, 80}, {80, 34}};

TEST_P(KernelTest, Rope) {
  std::vector<KernelCase> cases;
  for (const char *type : {"f32", "bf16"})
    for (const char *pairing : {"half", "interleaved"})
      for (Rotary rotary : kRotaries)
        cases.push_back(makeCase(
            "rope_{type}_{pairing}_{D}_{width}", R"(
  func.func @{name}(%x: tensor<?x3x{D}x{type}>, %p: tensor<?xi32> {test.below = 9000 : i64}) -> tensor<?x3x{D}x{type}> {
    %y = mica.rope %x, %p {pairing} theta(1.0e+04) rotary_dim({width}) : tensor<?x3x{D}x{type}>, tensor<?xi32>
    return %y : tensor<?x3x{D}x{type}>
  })",
            {{"type", type}, {"pairing", pairing}, {"D", rotary.headDim}, {"width", rotary.width}},
            kSineTolerance));
  check(cases);
}

/// Query heads, key/value heads and their size.
struct Heads {
  int queries, groups, size;
};
constexpr Heads kHeads[] = {{1, 1, 8}, {4, 2, 20}, {3, 1, 64}, {7, 1, 80}};

/// Appends q, k and v unchanged, then attends: the rows of a step attend to each other.
TEST_P(KernelTest, AppendAndAttend) {
  std::vector<KernelCase> cases;
  for (const Precision &precision : kPrecisions)
    for (Heads heads : kHeads)
      cases.push_back(makeCase("append_{cached}_{H}_{G}_{D}", R"(
  func.func @{name}(%q: tensor<?x{H}x{D}x{type}>, %k: tensor<?x{G}x{D}xf32>, %v: tensor<?x{G}x{D}x{type}>,
      %s: tensor<?xi32> {test.sequences}, %p: tensor<?xi32> {test.positions}, %kc: {cache}, %vc: {cache})
      -> (tensor<?x{H}x{D}xf32>, {cache}, {cache}) {
    %layer = arith.constant 1 : index
    %k1 = mica.kv_append %k, %kc[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x{G}x{D}xf32>, {cache}
    %v1 = mica.kv_append %v, %vc[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x{G}x{D}x{type}>, {cache}
    %kr = mica.kv_read %k1[%layer] : {cache} -> {read}
    %vr = mica.kv_read %v1[%layer] : {cache} -> {read}
    %y = mica.attention %q, %kr, %vr at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.3)
        : tensor<?x{H}x{D}x{type}>, {read}, {read} -> tensor<?x{H}x{D}xf32>
    return %y, %k1, %v1 : tensor<?x{H}x{D}xf32>, {cache}, {cache}
  })",
                               {{"cache", "!mica.kv_cache<2 x {G} x {D} x {element}>"},
                                {"read", "tensor<?x?x{G}x{D}x{element}>"},
                                {"cached", precision.name},
                                {"element", precision.cache},
                                {"type", precision.queries},
                                {"H", heads.queries},
                                {"G", heads.groups},
                                {"D", heads.size}},
                               precision.tolerance));
  check(cases);
}

/// The values are the first elements of the keys; 20 query heads result in two tasks.
TEST_P(KernelTest, AppendAndAttendToLatents) {
  std::vector<KernelCase> cases;
  for (const Precision &precision : kPrecisions)
    cases.push_back(makeCase("latents_{cached}_{D}_{V}", R"(
  func.func @{name}(%q: tensor<?x20x{D}x{type}>, %k: tensor<?x1x{D}xf32>, %s: tensor<?xi32> {test.sequences},
      %p: tensor<?xi32> {test.positions}, %kc: {cache}) -> (tensor<?x20x{V}xf32>, {cache}) {
    %layer = arith.constant 1 : index
    %k1 = mica.kv_append %k, %kc[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x1x{D}xf32>, {cache}
    %kr = mica.kv_read %k1[%layer] : {cache} -> tensor<?x?x1x{D}x{element}>
    %vr = mica.kv_read %k1[%layer] : {cache} -> tensor<?x?x1x{V}x{element}>
    %y = mica.attention %q, %kr, %vr at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.3)
        : tensor<?x20x{D}x{type}>, tensor<?x?x1x{D}x{element}>, tensor<?x?x1x{V}x{element}> -> tensor<?x20x{V}xf32>
    return %y, %k1 : tensor<?x20x{V}xf32>, {cache}
  })",
                             {{"cache", "!mica.kv_cache<2 x 1 x {D} x {element}>"},
                              {"cached", precision.name},
                              {"element", precision.cache},
                              {"type", precision.queries},
                              {"D", 40},
                              {"V", 34}},
                             precision.tolerance));
  check(cases);
}

TEST_P(KernelTest, QkvAppend) {
  struct Variant {
    const char *name, *pairing, *norms;
    bool partial;
  };
  const char *norms = "norms(%wq, %wk : tensor<{D}xf32>, tensor<{D}xf32>)";
  auto eps = [](llvm::StringRef norms, llvm::StringRef pairing) -> std::string {
    if (norms.empty())
      return "";
    return pairing == "half" ? "eps(1.0e-02)" : "eps(1.0e-02) weight_offset(1.0)";
  };
  std::vector<KernelCase> cases;
  for (const Precision &precision : kPrecisions)
    for (const Heads &heads : kHeads)
      for (const Variant &variant :
           {Variant{"half", "half", "", false}, Variant{"interleaved", "interleaved", "", false},
            Variant{"half_norms", "half", norms, true},
            Variant{"interleaved_norms", "interleaved", norms, true}}) {
        // Half of all pairs, alternately.
        if ((&heads - kHeads) % 2 == (llvm::StringRef(variant.pairing) == "half"))
          continue;
        int width = variant.partial ? heads.size / 4 * 2 : heads.size;
        cases.push_back(makeCase("qkv_{cached}_{variant}_{H}_{G}_{D}", R"(
  mica.weight @{name}.q : tensor<{D}xf32>
  mica.weight @{name}.k : tensor<{D}xf32>
  func.func @{name}(%x: tensor<?x{columns}xf32>, %s: tensor<?xi32> {test.sequences}, %p: tensor<?xi32> {test.positions},
      %kc: {cache}, %vc: {cache}) -> (tensor<?x{H}x{D}x{type}>, {cache}, {cache}) {
    %layer = arith.constant 1 : index
    %wq = mica.get_weight @{name}.q : tensor<{D}xf32>
    %wk = mica.get_weight @{name}.k : tensor<{D}xf32>
    %table = mica.rope_table %p rotary_dim({width}) theta(1.0e+04) : tensor<?xi32> -> tensor<?x2x{pairs}xf32>
    %q, %k1, %v1 = mica.qkv_append %x, %table, %kc, %vc[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>)
        {norms} {pairing} {eps} : tensor<?x{columns}xf32>, tensor<?x2x{pairs}xf32>, {cache}, {cache} -> tensor<?x{H}x{D}x{type}>
    return %q, %k1, %v1 : tensor<?x{H}x{D}x{type}>, {cache}, {cache}
  })",
                                 {{"variant", variant.name},
                                  {"norms", variant.norms},
                                  {"eps", eps(variant.norms, variant.pairing)},
                                  {"pairing", variant.pairing},
                                  {"cache", "!mica.kv_cache<2 x {G} x {D} x {element}>"},
                                  {"columns", (heads.queries + 2 * heads.groups) * heads.size},
                                  {"width", width},
                                  {"pairs", width / 2},
                                  {"cached", precision.name},
                                  {"element", precision.cache},
                                  {"type", precision.queries},
                                  {"H", heads.queries},
                                  {"G", heads.groups},
                                  {"D", heads.size}},
                                 precision.appended));
      }
  check(cases);
}

KernelCase attention(const Precision &precision, Heads heads, const char *name,
                     const char *options) {
  return makeCase("attention_{cached}_{what}_{H}_{G}_{D}", R"(
  func.func @{name}(%q: tensor<?x{H}x{D}x{type}>, %s: tensor<?xi32> {test.sequences}, %p: tensor<?xi32> {test.positions},
      %kc: {cache}, %vc: {cache}) -> (tensor<?x{H}x{D}x{type}>, {cache}, {cache}) {
    %layer = arith.constant 1 : index
    %kr = mica.kv_read %kc[%layer] : {cache} -> {read}
    %vr = mica.kv_read %vc[%layer] : {cache} -> {read}
    %y = mica.attention %q, %kr, %vr at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal {options}
        : tensor<?x{H}x{D}x{type}>, {read}, {read} -> tensor<?x{H}x{D}x{type}>
    return %y, %kc, %vc : tensor<?x{H}x{D}x{type}>, {cache}, {cache}
  })",
                  {{"cache", "!mica.kv_cache<2 x {G} x {D} x {element}>"},
                   {"read", "tensor<?x?x{G}x{D}x{element}>"},
                   {"what", name},
                   {"options", options},
                   {"cached", precision.name},
                   {"element", precision.cache},
                   {"type", precision.queries},
                   {"H", heads.queries},
                   {"G", heads.groups},
                   {"D", heads.size}},
                  precision.tolerance);
}

TEST_P(KernelTest, AttentionOfAllGroups) {
  std::vector<KernelCase> cases;
  for (const Precision &precision : kPrecisions)
    for (auto [group, size] :
         {std::pair(1, 8), std::pair(3, 20), std::pair(7, 64), std::pair(2, 80)})
      cases.push_back(attention(precision, {2 * group, 2, size}, "plain", "scale(0.7)"));
  check(cases);
}

TEST_P(KernelTest, AttentionOfAllKinds) {
  std::vector<KernelCase> cases;
  for (const Precision &precision : kPrecisions)
    for (auto [name, options] : {std::pair("window1", "scale(0.7) window(1)"),
                                 std::pair("window64", "scale(0.7) window(64)"),
                                 std::pair("window100", "scale(2.0) window(100) softcap(1.5)"),
                                 std::pair("alibi", "scale(0.7) alibi([0.5, 0.25, 0.125, 0.0625, "
                                                    "0.03, 0.7])"),
                                 std::pair("alibi_softcap", "scale(2.0) softcap(1.5) alibi([0.5, "
                                                            "0.25, 0.125, 0.0625, 0.03, 0.7])")})
      cases.push_back(attention(precision, {6, 2, 20}, name, options));
  check(cases);
}

/// A case of attention with a sink for each of its six heads.
KernelCase withSinks(KernelCase made) {
  auto replace = [&](llvm::StringRef from, const std::string &to) {
    size_t at = made.text.find(from.str());
    ASSERT_NE(at, std::string::npos) << from.str();
    made.text.replace(at, from.size(), to);
  };
  std::string weight = "@" + made.name + ".sinks";
  replace("%layer = arith.constant 1 : index",
          "%layer = arith.constant 1 : index\n    %t = mica.get_weight " + weight +
              " : tensor<6xf32>");
  replace(" causal ", " sinks(%t : tensor<6xf32>) causal ");
  made.text = "  mica.weight " + weight + " : tensor<6xf32>\n" + made.text;
  return made;
}

TEST_P(KernelTest, AttentionWithSinks) {
  std::vector<KernelCase> cases;
  for (const Precision &precision : kPrecisions)
    for (auto [name, options] :
         {std::pair("sinks", "scale(0.7)"), std::pair("sinks_window", "scale(0.7) window(70)")})
      cases.push_back(withSinks(attention(precision, {6, 2, 20}, name, options)));
  check(cases);
}

TEST_P(KernelTest, Sinusoid) {
  std::vector<KernelCase> cases;
  for (int columns : {4, 34, 64, 130})
    cases.push_back(makeCase("sinusoid_{N}", R"(
  func.func @{name}(%p: tensor<?xi32> {test.below = 2000 : i64}) -> tensor<?x{N}xf32> {
    %y = mica.sinusoid %p offset(2) : tensor<?xi32> -> tensor<?x{N}xf32>
    return %y : tensor<?x{N}xf32>
  })",
                             {{"N", columns}}, kSineTolerance));
  // Few positions, so that some are the padding position.
  cases.push_back(makeCase("sinusoid_padded", R"(
  func.func @{name}(%p: tensor<?xi32> {test.below = 3 : i64}) -> tensor<?x34xf32> {
    %y = mica.sinusoid %p offset(2) padding_idx(3) : tensor<?xi32> -> tensor<?x34xf32>
    return %y : tensor<?x34xf32>
  })",
                           {}, kSineTolerance));
  check(cases);
}

TEST_P(KernelTest, ConcatHeads) {
  std::vector<KernelCase> cases;
  for (auto [heads, plain, rotated] :
       {std::tuple(5, 1, 1), std::tuple(3, 20, 2), std::tuple(2, 64, 33)})
    for (int own : {1, heads})
      cases.push_back(makeCase(
          "join_{H}_{A}_{B}_{G}", R"(
  func.func @{name}(%a: tensor<?x{H}x{A}xf32>, %b: tensor<?x{G}x{B}xf32>) -> tensor<?x{H}x{D}xf32> {
    %y = mica.concat_heads %a, %b : tensor<?x{H}x{A}xf32>, tensor<?x{G}x{B}xf32> -> tensor<?x{H}x{D}xf32>
    return %y : tensor<?x{H}x{D}xf32>
  })",
          {{"H", heads}, {"A", plain}, {"B", rotated}, {"G", own}, {"D", plain + rotated}}, 0));
  check(cases);
}

} // namespace
