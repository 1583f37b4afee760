#include "frontend/import/WeightPlan.h"

#include "tests/unit/frontend/config/ConfigText.h"

using namespace mica;
using namespace mica::test;
using testing::ElementsAre;

namespace {

std::vector<std::string> namesOf(const std::vector<LayerWeight> &weights) {
  std::vector<std::string> names;
  for (const LayerWeight &weight : weights)
    names.push_back(weight.name + " " + shown(weight.shape));
  return names;
}

TEST(WeightPlan, ListsADenseLayer) {
  ModelConfig model = llvm::cantFail(configOf(llamaText, R"({"attention_bias": true})"));
  EXPECT_THAT(namesOf(layerWeights(model, model.layerTypes[0])),
              ElementsAre("input_layernorm.weight [64]", "self_attn.q_proj.weight [64, 64]",
                          "self_attn.q_proj.bias [64]", "self_attn.k_proj.weight [32, 64]",
                          "self_attn.k_proj.bias [32]", "self_attn.v_proj.weight [32, 64]",
                          "self_attn.v_proj.bias [32]", "self_attn.o_proj.weight [64, 64]",
                          "self_attn.o_proj.bias [64]", "post_attention_layernorm.weight [64]",
                          "mlp.gate_proj.weight [172, 64]", "mlp.up_proj.weight [172, 64]",
                          "mlp.down_proj.weight [64, 172]"));
}

TEST(WeightPlan, ListsASparseLayerWithNorms) {
  ModelConfig model = llvm::cantFail(configOf(qwen3MoeText));
  EXPECT_THAT(namesOf(layerWeights(model, model.layerTypes[0])),
              ElementsAre("input_layernorm.weight [64]", "self_attn.q_proj.weight [128, 64]",
                          "self_attn.k_proj.weight [64, 64]", "self_attn.v_proj.weight [64, 64]",
                          "self_attn.q_norm.weight [32]", "self_attn.k_norm.weight [32]",
                          "self_attn.o_proj.weight [64, 128]",
                          "post_attention_layernorm.weight [64]", "mlp.gate.weight [8, 64]",
                          "mlp.experts.*.gate_proj.weight [8, 32, 64]",
                          "mlp.experts.*.up_proj.weight [8, 32, 64]",
                          "mlp.experts.*.down_proj.weight [8, 64, 32]"));
}

TEST(WeightPlan, StacksExperts) {
  WeightPlan plan = planWeights(llvm::cantFail(configOf(qwen3MoeText)));
  const PlannedWeight &down = plan.layers[2].back();
  EXPECT_EQ(down.symbol, "model.layers.2.mlp.experts.down_proj.weight");
  ASSERT_EQ(down.sources.size(), 8u);
  EXPECT_EQ(down.sources[7].text(), "model.layers.2.mlp.experts.7.down_proj.weight");
  EXPECT_EQ(shown(down.shapeOf(down.sources.front())), "[64, 32]");
  EXPECT_TRUE(plan.head) << "not tied";
}

TEST(WeightPlan, UsesMetaNames) {
  WeightPlan plan =
      planWeights(llvm::cantFail(configOf(miniMind1Text, R"({"use_moe": true, "n_layers": 1})")));
  EXPECT_EQ(plan.embedding.symbol, "tok_embeddings.weight");
  EXPECT_EQ(plan.finalNorm.symbol, "norm.weight");
  EXPECT_FALSE(plan.head) << "tied";
  std::vector<std::string> last;
  for (const PlannedWeight &weight : plan.layers[0])
    last.push_back(weight.sources.back().text());
  EXPECT_THAT(last, ElementsAre("layers.0.attention_norm.weight", "layers.0.attention.wq.weight",
                                "layers.0.attention.wk.weight", "layers.0.attention.wv.weight",
                                "layers.0.attention.wo.weight", "layers.0.ffn_norm.weight",
                                "layers.0.feed_forward.gate.weight",
                                "layers.0.feed_forward.experts.3.w1.weight",
                                "layers.0.feed_forward.experts.3.w3.weight",
                                "layers.0.feed_forward.experts.3.w2.weight",
                                "layers.0.feed_forward.shared_experts.w1.weight",
                                "layers.0.feed_forward.shared_experts.w3.weight",
                                "layers.0.feed_forward.shared_experts.w2.weight"));
}

/// Queries, keys and values are parts of one tensor, key head by key head.
TEST(WeightPlan, PartsOfFusedTensors) {
  ModelConfig model = llvm::cantFail(configOf(
      qwen3MoeText,
      R"({"model_type": "qwen3_next", "sliding_window": "absent", "max_window_layers": "absent", "linear_num_key_heads": 2,
          "linear_num_value_heads": 4, "linear_key_head_dim": 6, "linear_value_head_dim": 5})"));
  WeightPlan plan = planWeights(model);
  auto find = [&](int64_t layer, llvm::StringRef symbol) {
    return *llvm::find_if(plan.layers[layer],
                          [&](const PlannedWeight &weight) { return weight.symbol == symbol; });
  };
  std::string module = "model.layers.0.linear_attn.in_proj_";
  PlannedWeight qkv = find(0, module + "qkv.weight");
  EXPECT_EQ(shown(qkv.shape), "[44, 64]");
  std::vector<std::string> sources;
  for (const TensorPart &part : qkv.sources)
    sources.push_back(part.text() + " " + shown(qkv.shapeOf(part)));
  EXPECT_THAT(sources, ElementsAre(module + "qkvz.weight[0:6 of 32] [12, 64]",
                                   module + "qkvz.weight[6:12 of 32] [12, 64]",
                                   module + "qkvz.weight[12:22 of 32] [20, 64]"));
  EXPECT_EQ(find(0, module + "z.weight").sources.front().text(),
            module + "qkvz.weight[22:32 of 32]");
  EXPECT_EQ(find(0, module + "b.weight").sources.front().text(), module + "ba.weight[0:2 of 4]");
  EXPECT_EQ(find(0, module + "a.weight").sources.front().text(), module + "ba.weight[2:4 of 4]");
}

TEST(WeightPlan, NumbersSharedExperts) {
  EXPECT_EQ(sharedExpertName(transformersNames, 1), "mlp.shared_experts.1");
  EXPECT_EQ(sharedExpertName(metaNames, 0), "feed_forward.shared_experts");
}

} // namespace
