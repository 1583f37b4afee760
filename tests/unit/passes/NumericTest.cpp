// Passes preserve a model's results: the interpreter computes the logits of the authors' own code
// before and after each pass.

#include "backends/cpu/dispatch/Pipeline.h"
#include "frontend/support/Json.h"
#include "ir/Interpreter/Npy.h"
#include "passes/pipelines/Stages.h"
#include "tests/unit/frontend/import/GoldenModel.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"

#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>
#include <map>

using namespace mlir;
using namespace mica;
using namespace mica::test;

namespace {

namespace fs = std::filesystem;

/// A pass of the pipeline to stage `fused`.
struct Step {
  const char *name;
  void (*add)(OpPassManager &pm, Precision precision);
};

template <auto create> void addToModule(OpPassManager &pm, Precision) { pm.addPass(create()); }
template <auto create> void addToFunctions(OpPassManager &pm, Precision) {
  pm.addNestedPass<func::FuncOp>(create());
}

const Step steps[] = {
    {"mica-verify-model", addToModule<createVerifyModel>},
    {"mica-absorb-latent", addToModule<createAbsorbLatent>},
    {"mica-assign-precision",
     [](OpPassManager &pm, Precision precision) {
       pm.addPass(createAssignPrecision({precision, precision}));
     }},
    {"mica-fold-repeat-kv", addToFunctions<createFoldRepeatKv>},
    {"mica-fuse-gated-linear",
     [](OpPassManager &pm, Precision) { pm.addPass(createFuseGatedLinear()); }},
    {"mica-merge-linears", [](OpPassManager &pm, Precision) { pm.addPass(createMergeLinears()); }},
    {"mica-fuse-residual", addToFunctions<createFuseResidual>},
    {"mica-fuse-qkv-append", addToFunctions<createFuseQkvAppend>},
    {"mica-hoist-rope-tables",
     [](OpPassManager &pm, Precision) { pm.addPass(createHoistRopeTables()); }},
    {"mica-fuse-casts", addToFunctions<createFuseCasts>},
    {"mica-verify-fused", addToModule<createVerifyFused>},
};

/// A small model of the authors' own code with the logits of a prompt.
class GoldenPassTest : public testing::TestWithParam<std::string> {
protected:
  void SetUp() override {
    fs::path folder = goldens() / GetParam();
    model.emplace(llvm::cantFail(readModel(context, folder.string())));
    auto object = llvm::cantFail(readJsonObject((folder / "golden.json").string()));
    for (const llvm::json::Value &token : *object.getArray("prompt"))
      prompt.push_back(*token.getAsInteger());
    auto array = llvm::cantFail(interp::readNpy((folder / "golden.logits.npy").string()));
    logits.resize(array.bytes.size() / sizeof(float));
    std::memcpy(logits.data(), array.bytes.data(), array.bytes.size());
  }

  /// Runs the passes that `add` adds to a pipeline.
  bool run(llvm::function_ref<void(OpPassManager &)> add) {
    PassManager pm(&context);
    add(pm);
    return succeeded(pm.run(*model->module));
  }

  std::vector<float> interpret(size_t chunk, StringRef entry = "main") {
    auto result = logitsOf(*model, prompt, chunk, entry);
    if (result)
      return *result;
    ADD_FAILURE() << llvm::toString(result.takeError());
    return {};
  }

  template <typename Op> int64_t count() {
    int64_t found = 0;
    model->module->walk([&](Op) { ++found; });
    return found;
  }

  MLIRContext context;
  std::optional<ModelInput> model;
  std::vector<int64_t> prompt;
  std::vector<float> logits;
};

TEST_P(GoldenPassTest, EachFusionKeepsTheLogits) {
  for (const Step &step : steps) {
    ASSERT_TRUE(run([&](OpPassManager &pm) { step.add(pm, Precision::F32); })) << step.name;
    EXPECT_LT(distance(interpret(7), logits), 1e-5) << step.name;
  }
}

/// bf16 weights and caches: rounding a value earlier or later changes the logits by at most a
/// rounding error, and fusion moves no rounding except those of sums in another order.
TEST_P(GoldenPassTest, FusionKeepsTheLogitsOfBf16) {
  std::vector<float> before;
  for (const Step &step : steps) {
    ASSERT_TRUE(run([&](OpPassManager &pm) { step.add(pm, Precision::BF16); })) << step.name;
    if (StringRef(step.name) == "mica-assign-precision")
      before = interpret(prompt.size());
  }
  EXPECT_LT(distance(interpret(prompt.size()), before), 2e-2);
}

TEST_P(GoldenPassTest, KernelsKeepTheLogits) {
  StageOptions options;
  options.phases = {.gemmThreshold = 8, .smallBatch = 4};
  cpu::SelectKernelsOptions select;
  select.minWork = 0;
  ASSERT_TRUE(run([&](OpPassManager &pm) {
    buildModelToFused(pm, options);
    cpu::buildFusedToKernels(pm, options, select);
  }));
  EXPECT_LT(distance(interpret(4, "main_small"), logits), 1e-5);
  EXPECT_LT(distance(interpret(8, "main_medium"), logits), 1e-5);
  EXPECT_LT(distance(interpret(prompt.size(), "main_large"), logits), 1e-5);
}

/// The number of some ops after fusion.
struct Fused {
  int64_t linear, gated, qkvAppend, append, rope, add, mul, split;
  bool operator==(const Fused &) const = default;
};
void PrintTo(const Fused &f, std::ostream *out) {
  *out << "{" << f.linear << ", " << f.gated << ", " << f.qkvAppend << ", " << f.append << ", "
       << f.rope << ", " << f.add << ", " << f.mul << ", " << f.split << "}";
}

/// Models that fusion leaves partly unfused, because they have other ops in between: norms of all
/// heads or of layers, multipliers, norms after blocks, MLPs without gates, gates of shared experts
/// or of convolutions. All other fusions apply to them.
const std::map<std::string, Fused> kLeftApart = {
    {"bamba", {8, 0, 1, 0, 0, 1, 3, 4}},
    {"bloom", {4, 0, 0, 2, 0, 0, 0, 1}},
    {"cohere", {3, 1, 0, 2, 2, 0, 0, 1}},
    {"deepseek-v2", {8, 2, 0, 2, 4, 1, 0, 4}},
    {"deepseek-v2-biases", {10, 0, 0, 2, 4, 0, 2, 6}},
    {"deepseek-v2-lite", {6, 2, 0, 2, 4, 0, 0, 2}},
    {"deepseek-v3", {8, 2, 0, 2, 4, 1, 0, 4}},
    {"falcon-h1", {6, 0, 1, 0, 0, 4, 2, 3}},
    {"falcon-h1-norm", {5, 0, 0, 2, 2, 1, 2, 3}},
    {"gemma2", {6, 2, 2, 0, 0, 4, 0, 0}},
    {"gemma3-text", {6, 2, 2, 0, 0, 4, 0, 0}},
    {"gemma4-moe", {6, 2, 0, 4, 4, 6, 0, 2}},
    {"gemma4-shared", {21, 4, 0, 4, 6, 13, 4, 2}},
    {"gemma4-text", {6, 2, 0, 4, 4, 4, 0, 2}},
    {"gemma4-vision", {6, 2, 0, 4, 4, 4, 0, 2}},
    {"glm4", {3, 1, 1, 0, 0, 2, 0, 0}},
    {"gpt-neox", {4, 0, 1, 0, 0, 0, 0, 0}},
    {"gpt-neox-sequential", {4, 0, 1, 0, 0, 0, 0, 0}},
    {"gpt2", {4, 0, 0, 2, 0, 1, 0, 1}},
    {"gpt2-layer-scales", {12, 0, 0, 6, 0, 1, 0, 3}},
    {"granite", {4, 0, 1, 0, 0, 2, 1, 1}},
    {"granite-hybrid", {6, 2, 1, 0, 0, 5, 1, 2}},
    {"granite-hybrid-dense", {6, 2, 0, 2, 0, 5, 1, 3}},
    {"lfm2", {6, 2, 1, 0, 0, 0, 2, 1}},
    {"lfm2-moe", {7, 1, 1, 0, 0, 2, 4, 2}},
    {"mamba2", {2, 0, 0, 0, 0, 1, 1, 2}},
    {"mamba2-tied", {2, 0, 0, 0, 0, 1, 1, 2}},
    {"nemotron-h", {6, 0, 0, 2, 0, 1, 1, 3}},
    {"nemotron-h-latent", {7, 0, 0, 2, 0, 1, 1, 4}},
    {"nemotron-h-moe", {6, 0, 0, 2, 0, 2, 1, 3}},
    {"olmo2", {3, 1, 0, 2, 2, 2, 0, 1}},
    {"qwen2-moe", {7, 2, 2, 0, 0, 1, 0, 0}},
    {"qwen3-5", {6, 2, 1, 0, 0, 0, 1, 3}},
    {"qwen3-5-moe", {8, 2, 1, 0, 0, 2, 1, 3}},
    {"qwen3-5-moe-vision", {8, 2, 1, 0, 0, 2, 1, 3}},
    {"qwen3-5-vision", {6, 2, 1, 0, 0, 0, 1, 3}},
    {"qwen3-next", {11, 3, 1, 0, 0, 2, 2, 5}},
    {"stablelm", {3, 1, 0, 2, 2, 0, 0, 1}},
    {"starcoder2", {4, 0, 1, 0, 0, 0, 0, 0}},
    {"xglm", {4, 0, 0, 2, 0, 1, 0, 1}},
    {"xglm-padding", {4, 0, 0, 2, 0, 1, 0, 1}},
};

/// Fusion applies to every model without other ops in between.
TEST_P(GoldenPassTest, AllFusionsApply) {
  ASSERT_TRUE(
      run([](OpPassManager &pm) { buildModelToFused(pm, {Precision::BF16, Precision::BF16}); }));
  EXPECT_EQ(count<RepeatKvOp>(), 0);
  Fused fused{count<LinearOp>(), count<GatedLinearOp>(), count<QkvAppendOp>(), count<KvAppendOp>(),
              count<RopeOp>(),   count<AddOp>(),         count<MulOp>(),       count<SplitOp>()};
  if (auto found = kLeftApart.find(GetParam()); found != kLeftApart.end()) {
    EXPECT_EQ(fused, found->second);
    return;
  }
  EXPECT_EQ(fused.append, 0);
  EXPECT_EQ(fused.rope, 0);
  EXPECT_EQ(fused.add, 0);
  // Gate and up with biases are one matmul, but not gated by it.
  int64_t biased = GetParam() == "llama-biases" ? 1 : 0;
  EXPECT_EQ(fused.split, biased);
  EXPECT_EQ(fused.mul, biased);
  model->module->walk([](MoeExpertsOp experts) { EXPECT_FALSE(experts.getUp()); });
  EXPECT_EQ(count<RopeTableOp>(), 1);
  // The gate of experts reads the norm in f32, the experts read it rounded.
  EXPECT_EQ(count<CastOp>(), count<MoeGateOp>() + biased);
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenPassTest, testing::ValuesIn(goldenNames()),
                         [](const testing::TestParamInfo<std::string> &info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

} // namespace
