#include "frontend/import/ModelInput.h"
#include "tests/unit/Paths.h"
#include "tests/unit/frontend/import/ModelFolder.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/raw_ostream.h"

using namespace mica;
using namespace mica::test;
using testing::HasSubstr;

namespace {

/// A model read from a folder; a failure fails the test.
struct Imported {
  explicit Imported(const std::string &path, WeightsNeeded needed = WeightsNeeded::Yes) {
    auto read = readModel(context, path, needed);
    if (!read) {
      ADD_FAILURE() << messageOf(std::move(read));
      return;
    }
    input = std::move(*read);
    EXPECT_TRUE(mlir::succeeded(mlir::verify(*input.module)));
  }
  explicit operator bool() const { return bool(input.module); }
  mlir::ModuleOp module() const { return input.module.get(); }
  mlir::func::FuncOp function(llvm::StringRef name) const {
    return module().lookupSymbol<mlir::func::FuncOp>(name);
  }
  template <typename Op> std::vector<Op> ops(llvm::StringRef functionName) const {
    std::vector<Op> found;
    function(functionName).walk([&](Op op) { found.push_back(op); });
    return found;
  }

  mlir::MLIRContext context;
  ModelInput input;
};

std::string nameOf(mlir::Location loc) {
  auto name = llvm::dyn_cast<mlir::NameLoc>(loc);
  return name ? name.getName().str() : "";
}

std::string golden(const std::string &name) {
  return MICA_SOURCE_DIR "/tests/goldens/models/" + name;
}

TEST(Import, RefusesAdapters) {
  auto problemOf = [](const TestFolder &folder) {
    mlir::MLIRContext context;
    return messageOf(readModel(context, folder.path()));
  };
  TestFolder folder;
  TinyModel().writeTo(folder);
  folder.write("adapter_model.safetensors", "x");
  constexpr const char *hint =
      "; merge it into the model first (merge_and_unload of peft) and pass the saved folder";
  EXPECT_EQ(problemOf(folder), folder.path("adapter_model.safetensors") +
                                   ": is a LoRA adapter of an unknown model" + hint);
  folder.write("adapter_config.json", R"({"base_model_name_or_path": "some/base-7b"})");
  EXPECT_EQ(problemOf(folder),
            folder.path("adapter_config.json") + ": is a LoRA adapter of \"some/base-7b\"" + hint);
  folder.write("adapter_config.json", "{}");
  EXPECT_THAT(problemOf(folder), HasSubstr("is a LoRA adapter of an unknown model"));
  TestFolder alone;
  alone.write("adapter_config.json", R"({"base_model_name_or_path": "some/base-7b"})");
  EXPECT_THAT(problemOf(alone), HasSubstr("is a LoRA adapter of \"some/base-7b\""));
}

TEST(Import, OneFunctionPerLayerTypeCalledOncePerLayer) {
  TestFolder folder;
  TinyModel().writeTo(folder);
  Imported model(folder.path());
  ASSERT_TRUE(model);
  auto calls = model.ops<mlir::func::CallOp>("main");
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].getCallee(), "dense_layer");
  EXPECT_EQ(calls[1].getCallee(), "dense_layer");
  EXPECT_EQ(nameOf(calls[1].getLoc()), "model.layers.1");
  EXPECT_EQ(std::distance(model.module().getOps<mlir::func::FuncOp>().begin(),
                          model.module().getOps<mlir::func::FuncOp>().end()),
            2);
  EXPECT_TRUE(model.function("dense_layer").isPrivate());
}

TEST(Import, ArgumentsHaveLocationsOfTheirModules) {
  TestFolder folder;
  TinyModel().writeTo(folder);
  Imported model(folder.path());
  ASSERT_TRUE(model);
  std::vector<std::string> names;
  for (mlir::BlockArgument argument : model.function("main").getArguments())
    names.push_back(nameOf(argument.getLoc()));
  EXPECT_EQ(names,
            (std::vector<std::string>{"model.tokens", "model.sequences", "model.positions",
                                      "model.logit_indices", "model.k_cache", "model.v_cache"}));
  auto layer = model.function("dense_layer");
  EXPECT_EQ(nameOf(layer.getArgument(3).getLoc()), "model.layers.*.layer");
  EXPECT_EQ(nameOf(layer.getArgument(7).getLoc()), "model.layers.*.self_attn.q_proj.weight");
}

TEST(Import, WeightsAreSymbolsWithTheirNamesAndTypes) {
  TestFolder folder;
  TinyModel tiny;
  tiny.tensor("model.norm.weight").type = "BF16";
  tiny.writeTo(folder);
  Imported model(folder.path());
  ASSERT_TRUE(model);
  auto norm = model.module().lookupSymbol<WeightOp>("model.norm.weight");
  ASSERT_TRUE(norm);
  EXPECT_TRUE(norm.getTensorType().getElementType().isBF16());
  EXPECT_TRUE(model.module().lookupSymbol<WeightOp>("model.layers.1.mlp.down_proj.weight"));
}

TEST(Import, WeightTypesDistinguishLayerTypes) {
  TestFolder folder;
  TinyModel tiny;
  tiny.tensor("model.layers.1.mlp.down_proj.weight").type = "BF16";
  tiny.writeTo(folder);
  Imported model(folder.path());
  ASSERT_TRUE(model);
  auto calls = model.ops<mlir::func::CallOp>("main");
  EXPECT_EQ(calls[0].getCallee(), "dense_layer");
  EXPECT_EQ(calls[1].getCallee(), "dense_layer_1");
}

TEST(Import, LocationsNameTheModule) {
  TestFolder folder;
  TinyModel().writeTo(folder);
  Imported model(folder.path());
  ASSERT_TRUE(model);
  std::vector<std::string> linears;
  for (LinearOp op : model.ops<LinearOp>("dense_layer"))
    linears.push_back(nameOf(op.getLoc()));
  EXPECT_THAT(linears, testing::ElementsAre(
                           "model.layers.*.self_attn.q_proj", "model.layers.*.self_attn.k_proj",
                           "model.layers.*.self_attn.v_proj", "model.layers.*.self_attn.o_proj",
                           "model.layers.*.mlp.gate_proj", "model.layers.*.mlp.up_proj",
                           "model.layers.*.mlp.down_proj"));
  EXPECT_EQ(nameOf(model.ops<AttentionOp>("dense_layer")[0].getLoc()), "model.layers.*.self_attn");
  EXPECT_EQ(nameOf(model.ops<LmHeadOp>("main")[0].getLoc()), "lm_head");
}

TEST(Import, StoresTheDescriptionOfTheModel) {
  TestFolder folder;
  TinyModel().writeTo(folder);
  folder.write("generation_config.json", R"({"temperature": 0.5, "top_k": 7, "do_sample": false})");
  Imported model(folder.path());
  ASSERT_TRUE(model);
  auto attribute = model.module()->getAttrOfType<mlir::DictionaryAttr>("mica.model");
  std::string text;
  llvm::raw_string_ostream(text) << attribute;
  EXPECT_EQ(text, "{bos = 1 : i64, eos = [2], family = \"llama\", generation = {do_sample = false, "
                  "temperature = "
                  "5.000000e-01 : f64, top_k = 7 : i64}, max_positions = 64 : i64}");
}

TEST(Import, DryRunNeedsNoWeights) {
  TestFolder folder;
  folder.write("config.json", TinyModel().config);
  mlir::MLIRContext context;
  EXPECT_THAT(messageOf(readModel(context, folder.path())),
              HasSubstr("holds neither model.safetensors"));
  Imported model(folder.path(), WeightsNeeded::No);
  ASSERT_TRUE(model);
  EXPECT_FALSE(model.input.weights);
  EXPECT_TRUE(model.function("dense_layer"));
}

TEST(Import, EveryGoldenModel) {
  unsigned count = 0;
  for (auto &entry : std::filesystem::directory_iterator(golden(""))) {
    SCOPED_TRACE(entry.path().string());
    EXPECT_TRUE(Imported(entry.path().string()));
    ++count;
  }
  EXPECT_GE(count, 30u);
}

TEST(Import, GenerationsOfMiniMindDiffer) {
  Imported first(golden("minimind1-moe-shared")), second(golden("minimind2-dense-yarn-flag"));
  Imported third(golden("minimind3-moe"));
  ASSERT_TRUE(first && second && third);
  EXPECT_EQ(first.ops<RopeOp>("sparse_layer")[0].getPairing(), Pairing::Interleaved);
  EXPECT_EQ(first.ops<RmsNormOp>("sparse_layer").size(), 2u);
  EXPECT_EQ(first.ops<SiluOp>("sparse_layer").size(), 1u) << "the shared expert's";
  EXPECT_TRUE(llvm::isa<YarnScalingAttr>(*second.ops<RopeOp>("dense_layer")[0].getScaling()));
  EXPECT_EQ(third.ops<RmsNormOp>("sparse_layer").size(), 4u) << "of queries and keys, too";
  EXPECT_EQ(third.ops<RmsNormOp>("sparse_layer")[1].getRounding(), NormRounding::AfterWeight);
  EXPECT_EQ(third.ops<MoeGateOp>("sparse_layer")[0].getK(), 1u);
  EXPECT_TRUE(third.ops<MoeGateOp>("sparse_layer")[0].getNormalize());
  EXPECT_EQ(third.ops<SiluOp>("sparse_layer").size(), 0u);
}

TEST(Import, MixedLayersHaveTwoLayerTypes) {
  Imported model(golden("qwen3-moe-mixed"));
  ASSERT_TRUE(model);
  EXPECT_TRUE(model.function("dense_layer"));
  EXPECT_TRUE(model.function("sparse_layer"));
}

// Three layers with a window and one without.
TEST(Import, LayerTypesHaveCachesOfTheirOwn) {
  Imported model(golden("gemma3-text"));
  ASSERT_TRUE(model);
  std::vector<std::pair<int64_t, int64_t>> caches;
  for (mlir::BlockArgument argument : model.function("main").getArguments())
    if (auto cache = llvm::dyn_cast<KvCacheType>(argument.getType())) {
      caches.emplace_back(cache.getLayers(), cache.getWindow());
      EXPECT_THAT(nameOf(argument.getLoc()), HasSubstr(caches.size() > 2 ? "cache_1" : "_cache"));
    }
  EXPECT_THAT(caches, testing::ElementsAre(std::pair(3, 12), std::pair(3, 12), std::pair(1, 0),
                                           std::pair(1, 0)));
  // The layer index in the model and in the caches.
  std::vector<std::pair<int64_t, int64_t>> numbers;
  for (mlir::func::CallOp call : model.ops<mlir::func::CallOp>("main")) {
    llvm::APInt layer, ofCache;
    ASSERT_TRUE(mlir::matchPattern(call.getOperand(3), mlir::m_ConstantInt(&layer)));
    ASSERT_TRUE(mlir::matchPattern(call.getOperand(4), mlir::m_ConstantInt(&ofCache)));
    numbers.emplace_back(layer.getSExtValue(), ofCache.getSExtValue());
  }
  EXPECT_THAT(numbers, testing::ElementsAre(std::pair(0, 0), std::pair(1, 1), std::pair(2, 0),
                                            std::pair(3, 2)));
  for (auto append : model.ops<KvAppendOp>("dense_sliding_layer"))
    EXPECT_EQ(append.getLayer(), model.function("dense_sliding_layer").getArgument(4));
}

// Two layers with caches, one of which has a window, and two that read them.
TEST(Import, LayersShareCaches) {
  Imported model(golden("gemma4-shared"));
  ASSERT_TRUE(model);
  std::vector<std::pair<int64_t, int64_t>> caches;
  for (mlir::BlockArgument argument : model.function("main").getArguments())
    if (auto cache = llvm::dyn_cast<KvCacheType>(argument.getType()))
      caches.emplace_back(cache.getLayers(), cache.getWindow());
  EXPECT_THAT(caches, testing::ElementsAre(std::pair(1, 12), std::pair(1, 12), std::pair(1, 0),
                                           std::pair(1, 0)));
  std::vector<std::tuple<std::string, int64_t, int64_t>> layers;
  for (mlir::func::CallOp call : model.ops<mlir::func::CallOp>("main")) {
    llvm::APInt layer, ofCache;
    ASSERT_TRUE(mlir::matchPattern(call.getOperand(3), mlir::m_ConstantInt(&layer)));
    ASSERT_TRUE(mlir::matchPattern(call.getOperand(4), mlir::m_ConstantInt(&ofCache)));
    layers.emplace_back(call.getCallee().str(), layer.getSExtValue(), ofCache.getSExtValue());
  }
  EXPECT_THAT(layers, testing::ElementsAre(std::tuple("dense_sliding_layer", 0, 0),
                                           std::tuple("dense_layer", 1, 0),
                                           std::tuple("dense_sliding_shared_layer", 2, 0),
                                           std::tuple("dense_shared_layer", 3, 0)));
  EXPECT_EQ(model.ops<KvAppendOp>("dense_shared_layer").size(), 0u);
  EXPECT_EQ(model.ops<KvReadOp>("dense_shared_layer").size(), 2u);
}

TEST(Import, RefusesNonModels) {
  TestFolder folder;
  mlir::MLIRContext context;
  EXPECT_THAT(messageOf(readModel(context, folder.path("none"))),
              HasSubstr("does not exist; pass a model folder"));
  EXPECT_THAT(
      messageOf(readModel(context, folder.write("model.bin", "x"))),
      HasSubstr("is neither a model folder nor a GGUF file nor a .mlir file; pass a model "
                "folder, a GGUF file, a .mlir file, or OWNER/NAME on the Hugging Face hub"));
}

} // namespace
