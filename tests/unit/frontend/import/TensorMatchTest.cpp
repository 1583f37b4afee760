#include "frontend/import/ModelInput.h"
#include "frontend/support/Json.h"
#include "tests/unit/Paths.h"
#include "tests/unit/frontend/import/ModelFolder.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mica;
using namespace mica::test;
using testing::HasSubstr;

namespace {

std::string problemOf(const TinyModel &model) {
  TestFolder folder;
  model.writeTo(folder);
  mlir::MLIRContext context;
  return messageOf(readModel(context, folder.path()));
}

TEST(TensorMatch, AcceptsTheWholeModel) { EXPECT_EQ(problemOf(TinyModel()), ""); }

TEST(TensorMatch, NamesAMissingTensor) {
  TinyModel model;
  model.erase("model.layers.1.mlp.up_proj.weight");
  EXPECT_THAT(problemOf(model), HasSubstr("tensor \"model.layers.1.mlp.up_proj.weight\" [48, 32] "
                                          "is missing; download the weights again"));
}

/// The codes of a quantized tensor may have a separate name or that of the weight.
TEST(TensorMatch, NamesTheMethodOfAQuantizedTensor) {
  for (auto [ending, method] : std::initializer_list<std::pair<std::string, std::string>>{
           {".qweight", "GPTQ or AWQ"},
           {".qzeros", "GPTQ or AWQ"},
           {".biases", "MLX"},
           {".scales", "GPTQ or AWQ"},
           {".weight_packed", "compressed-tensors"},
           {".weight_scale", "compressed-tensors"},
           {".weight_scale_inv", "fp8"},
           {".weight.absmax", "bitsandbytes"},
           {".SCB", "bitsandbytes"}})
    for (bool isWeightThere : {false, true}) {
      TinyModel model;
      if (isWeightThere)
        model.tensor("model.layers.1.mlp.up_proj.weight").type = "U8";
      else
        model.erase("model.layers.1.mlp.up_proj.weight");
      model.tensors.push_back({"model.layers.1.mlp.up_proj" + ending, {6, 32}, "I32"});
      EXPECT_THAT(problemOf(model),
                  HasSubstr("tensor \"model.layers.1.mlp.up_proj.weight\" is quantized by " +
                            method + " (there is \"model.layers.1.mlp.up_proj" + ending +
                            "\"), which is not supported; use the model's original checkpoint with "
                            "--weights int4 or int8, or a GGUF file of it"));
    }
}

TEST(TensorMatch, TellsGptqFromAwqByItsOrderOfColumns) {
  TinyModel model;
  model.erase("model.layers.1.mlp.up_proj.weight");
  model.tensors.push_back({"model.layers.1.mlp.up_proj.qweight", {6, 32}, "I32"});
  model.tensors.push_back({"model.layers.1.mlp.up_proj.g_idx", {32}, "I32"});
  EXPECT_THAT(problemOf(model), HasSubstr("is quantized by GPTQ (there is"));
}

/// MLX stores codes as 32-bit integers under the name of the weight, GPTQ and AWQ have scales but
/// no biases.
TEST(TensorMatch, TellsMlxFromGptqByItsBiases) {
  TinyModel model;
  const std::string name = "model.layers.1.mlp.up_proj";
  for (const char *ending : {".scales", ".biases"})
    model.tensors.push_back({name + ending, {48, 1}});
  EXPECT_THAT(problemOf(model),
              HasSubstr("is quantized by MLX (there is \"" + name + ".biases\")"));
}

TEST(TensorMatch, NamesAnUnexpectedTensor) {
  TinyModel model;
  model.tensors.push_back({"model.layers.0.self_attn.q_proj.bias", {32}});
  EXPECT_THAT(
      problemOf(model),
      HasSubstr(
          "tensor \"model.layers.0.self_attn.q_proj.bias\" [32] does not belong to llama, the "
          "config does not describe this model; download the config and the weights of one model"));
  model = TinyModel();
  model.tensors.push_back({"model.layers.2.input_layernorm.weight", {32}});
  EXPECT_THAT(
      problemOf(model),
      HasSubstr("tensor \"model.layers.2.input_layernorm.weight\" [32] does not belong to llama"));
}

TEST(TensorMatch, NamesAWrongShape) {
  TinyModel model;
  model.tensor("model.layers.0.self_attn.k_proj.weight").shape = {32, 16};
  EXPECT_THAT(problemOf(model), HasSubstr("tensor \"model.layers.0.self_attn.k_proj.weight\" has "
                                          "the shape [32, 16], expected [16, 32]"));
  model = TinyModel();
  model.tensor("model.norm.weight").shape = {1, 32};
  EXPECT_THAT(
      problemOf(model),
      HasSubstr("tensor \"model.norm.weight\" has the shape [1, 32], expected [32]; download "
                "the config and the weights of one model"));
}

TEST(TensorMatch, NamesAWrongType) {
  TinyModel model;
  model.tensor("model.layers.0.mlp.gate_proj.weight").type = "I32";
  EXPECT_THAT(
      problemOf(model),
      HasSubstr("tensor \"model.layers.0.mlp.gate_proj.weight\" has the type I32, only "
                "F64, F32, BF16 and F16 are supported; convert the weights to one of them"));
  model.tensor("model.layers.0.mlp.gate_proj.weight").type = "F64";
  EXPECT_EQ(problemOf(model), "") << "of which F32 is made";
}

/// Names of a checkpoint saved from the base model, without the head.
TEST(TensorMatch, NamesMayLackTheModule) {
  TinyModel model;
  for (Tensor &tensor : model.tensors)
    tensor.name = tensor.name.substr(tensor.name.find('.') + 1);
  EXPECT_EQ(problemOf(model), "");
  model.tensors.push_back({"layers.0.self_attn.rotary_emb.inv_freq", {4}});
  EXPECT_EQ(problemOf(model), "");
  model.tensors.push_back({"layers.2.input_layernorm.weight", {32}});
  EXPECT_THAT(
      problemOf(model),
      HasSubstr("tensor \"layers.2.input_layernorm.weight\" [32] does not belong to llama"));
  model.tensors.pop_back();
  model.erase("layers.0.mlp.up_proj.weight");
  EXPECT_THAT(problemOf(model),
              HasSubstr("tensor \"model.layers.0.mlp.up_proj.weight\" [48, 32] is missing"));
}

TEST(TensorMatch, ATiedEmbeddingMayBeStoredAsTheHead) {
  TinyModel model;
  model.tensor("model.embed_tokens.weight").name = "lm_head.weight";
  EXPECT_EQ(problemOf(model), "");
  model.config.replace(model.config.find("true"), 4, "false");
  EXPECT_THAT(problemOf(model),
              HasSubstr("tensor \"model.embed_tokens.weight\" [96, 32] is missing"));
}

/// The tensors of a valid model that are ignored.
static std::vector<IgnoredTensor> ignoredOf(const TinyModel &model) {
  TestFolder folder;
  model.writeTo(folder);
  mlir::MLIRContext context;
  return llvm::cantFail(readModel(context, folder.path())).ignoredTensors;
}

TEST(TensorMatch, ListsIrrelevantTensorsOfAnyType) {
  TinyModel model;
  model.tensors.push_back({"model.layers.0.self_attn.rotary_emb.inv_freq", {4}, "F64"});
  std::vector<IgnoredTensor> ignored = ignoredOf(model);
  ASSERT_EQ(ignored.size(), 1u);
  EXPECT_EQ(ignored[0].name, "model.layers.0.self_attn.rotary_emb.inv_freq");
  EXPECT_THAT(ignored[0].reason, HasSubstr("table of rope"));
}

/// A model whose last layer is for multi-token prediction.
TEST(TensorMatch, LeavesOutLayersForMultiTokenPrediction) {
  std::string golden = MICA_SOURCE_DIR "/tests/goldens/models/deepseek-v3/";
  TestFolder folder;
  std::filesystem::copy(golden + "model.safetensors", folder.path("model.safetensors"));
  auto config = llvm::cantFail(readJsonObject(golden + "config.json"));
  int64_t layers = *config.getInteger("num_hidden_layers");
  auto ignoredWith = [&](int64_t further) -> llvm::Expected<size_t> {
    config["num_hidden_layers"] = layers - 1;
    config["num_nextn_predict_layers"] = further;
    folder.write("config.json",
                 llvm::formatv("{0}", llvm::json::Value(llvm::json::Object(config))));
    mlir::MLIRContext context;
    auto input = readModel(context, folder.path());
    if (!input)
      return input.takeError();
    return input->ignoredTensors.size();
  };
  auto ignored = ignoredWith(1);
  ASSERT_TRUE(bool(ignored)) << messageOf(std::move(ignored));
  EXPECT_GT(*ignored, 10u);
  EXPECT_THAT(messageOf(ignoredWith(0)), HasSubstr("does not belong to deepseek_v3"));
}

/// Files contain weights that have no effect, because the layers read caches of earlier ones.
TEST(TensorMatch, LeavesOutKeysOfLayersThatShareCaches) {
  std::string golden = MICA_SOURCE_DIR "/tests/goldens/models/gemma4-shared/";
  auto problemWith = [&](std::vector<Tensor> tensors) {
    TestFolder folder;
    std::filesystem::copy(golden + "config.json", folder.path("config.json"));
    auto files = llvm::cantFail(WeightFiles::open(golden));
    for (const TensorInfo &tensor : files.tensors())
      tensors.push_back({tensor.name, {tensor.shape.begin(), tensor.shape.end()}});
    folder.write("model.safetensors", safetensors(tensors));
    mlir::MLIRContext context;
    auto input = readModel(context, folder.path());
    if (!input)
      return messageOf(std::move(input));
    std::string reasons;
    for (const IgnoredTensor &tensor : input->ignoredTensors)
      reasons += tensor.name + " " + tensor.reason + "\n";
    return reasons;
  };
  constexpr const char *reason =
      " has no effect: the layer reads keys and values of an earlier one\n";
  EXPECT_EQ(problemWith({{"model.layers.2.self_attn.k_proj.weight", {4, 24}},
                         {"model.layers.3.self_attn.k_norm.weight", {8}},
                         {"model.layers.3.self_attn.v_proj.weight", {8, 24}}}),
            "model.layers.2.self_attn.k_proj.weight" + std::string(reason) +
                "model.layers.3.self_attn.k_norm.weight" + reason +
                "model.layers.3.self_attn.v_proj.weight" + reason);
  EXPECT_THAT(
      problemWith({{"model.layers.3.self_attn.k_proj.bias", {8}},
                   {"model.layers.3.mlp.up_proj.bias", {8}}}),
      HasSubstr("tensor \"model.layers.3.mlp.up_proj.bias\" [8] does not belong to gemma4_text"));
}

/// Qwen's later models have separate modules for multi-token prediction.
TEST(TensorMatch, LeavesOutModulesForMultiTokenPrediction) {
  TinyModel model;
  model.tensors.push_back({"mtp.layers.0.self_attn.q_proj.weight", {4, 4}});
  std::vector<IgnoredTensor> ignored = ignoredOf(model);
  ASSERT_EQ(ignored.size(), 1u);
  EXPECT_EQ(ignored[0].reason, "is for multi-token prediction (MTP)");
}

TEST(TensorMatch, TiedHeadMustBeTheEmbedding) {
  TinyModel model;
  std::string values(96 * 32 * 4, 'v');
  model.tensor("model.embed_tokens.weight").data = values;
  model.tensors.push_back({"lm_head.weight", {96, 32}, "F32", values});
  EXPECT_EQ(problemOf(model), "");
  model.tensors.back().data.back() = 'x';
  EXPECT_THAT(
      problemOf(model),
      HasSubstr(
          "tensor \"lm_head.weight\" differs from \"model.embed_tokens.weight\", but the config "
          "says that they are one; set \"tie_word_embeddings\" to false if they are not"));
  model.tensors.back() = {"lm_head.weight", {96, 32}, "BF16"};
  EXPECT_THAT(problemOf(model), HasSubstr("differs from"));
}

TEST(TensorMatch, UntiedHeadIsRequired) {
  TinyModel model;
  model.config.replace(model.config.find("true"), 4, "false");
  EXPECT_THAT(problemOf(model), HasSubstr("tensor \"lm_head.weight\" [96, 32] is missing"));
  model.tensors.push_back({"lm_head.weight", {96, 32}});
  EXPECT_EQ(problemOf(model), "");
}

TEST(TensorMatch, ExpertsMustHaveOneType) {
  TinyModel model;
  model.config =
      R"({"model_type": "qwen3_moe", "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "vocab_size": 96, "max_position_embeddings": 64,
    "num_experts": 2, "num_experts_per_tok": 1, "moe_intermediate_size": 16, "tie_word_embeddings": true})";
  std::erase_if(model.tensors, [](const Tensor &t) {
    return t.name.starts_with("model.layers.1.") || t.name.find("mlp") != std::string::npos;
  });
  std::string layer = "model.layers.0.";
  model.tensors.push_back({layer + "self_attn.q_norm.weight", {8}});
  model.tensors.push_back({layer + "self_attn.k_norm.weight", {8}});
  model.tensors.push_back({layer + "mlp.gate.weight", {2, 32}});
  for (const char *expert : {"0", "1"}) {
    std::string prefix = layer + "mlp.experts." + expert;
    model.tensors.push_back({prefix + ".gate_proj.weight", {16, 32}});
    model.tensors.push_back({prefix + ".up_proj.weight", {16, 32}});
    model.tensors.push_back({prefix + ".down_proj.weight", {32, 16}});
  }
  EXPECT_EQ(problemOf(model), "");
  model.tensor(layer + "mlp.experts.1.up_proj.weight").type = "BF16";
  EXPECT_THAT(problemOf(model),
              HasSubstr("tensor \"model.layers.0.mlp.experts.1.up_proj.weight\" has the type BF16, "
                        "but \"model.layers.0.mlp.experts.0.up_proj.weight\" has F32; convert the "
                        "experts to one type"));
}

} // namespace
