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

/// Models that fusion leaves partly unfused, because they have other ops in between: norms of all
/// heads or of layers, multipliers, norms after blocks, MLPs without gates, gates of shared experts
/// or of convolutions.
bool staysApart(StringRef name) {
  return llvm::is_contained({"bamba",
                             "bloom",
                             "cohere",
                             "deepseek-v2",
                             "deepseek-v2-biases",
                             "deepseek-v2-lite",
                             "deepseek-v3",
                             "gemma2",
                             "gemma3-text",
                             "gemma4-moe",
                             "gemma4-shared",
                             "gemma4-text",
                             "gemma4-vision",
                             "glm4",
                             "gpt-neox",
                             "gpt-neox-sequential",
                             "falcon-h1",
                             "falcon-h1-norm",
                             "gpt2",
                             "gpt2-layer-scales",
                             "xglm",
                             "xglm-padding",
                             "granite",
                             "granite-hybrid",
                             "granite-hybrid-dense",
                             "lfm2",
                             "lfm2-moe",
                             "mamba2",
                             "mamba2-tied",
                             "nemotron-h",
                             "nemotron-h-latent",
                             "nemotron-h-moe",
                             "olmo2",
                             "qwen2-moe",
                             "qwen3-5",
                             "qwen3-5-moe",
                             "qwen3-5-moe-vision",
                             "qwen3-5-vision",
                             "qwen3-next",
                             "stablelm",
                             "starcoder2"},
                            name);
}

/// Fusion applies to every model without other ops in between.
TEST_P(GoldenPassTest, AllFusionsApply) {
  ASSERT_TRUE(
      run([](OpPassManager &pm) { buildModelToFused(pm, {Precision::BF16, Precision::BF16}); }));
  EXPECT_EQ(count<RepeatKvOp>(), 0);
  if (staysApart(GetParam()))
    return;
  EXPECT_EQ(count<KvAppendOp>(), 0);
  EXPECT_EQ(count<RopeOp>(), 0);
  EXPECT_EQ(count<AddOp>(), 0);
  // Gate and up with biases are one matmul, but not gated by it.
  int64_t biased = GetParam() == "llama-biases" ? 1 : 0;
  EXPECT_EQ(count<SplitOp>(), biased);
  EXPECT_EQ(count<MulOp>(), biased);
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
