#include "tests/unit/frontend/config/ConfigText.h"

#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace mica;
using namespace mica::test;
using testing::HasSubstr;

namespace {

TEST(Llama, DescribesTheDecoder) {
  auto read = configOf(llamaText);
  ASSERT_TRUE(bool(read));
  const ModelConfig &model = *read;
  EXPECT_EQ(model.family, "llama");
  EXPECT_EQ(model.vocab, 512);
  EXPECT_EQ(model.hidden, 64);
  EXPECT_EQ(model.maxPositions, 512);
  EXPECT_TRUE(model.tiedHead);
  EXPECT_EQ(model.norm.eps, 1e-5);
  EXPECT_EQ(model.norm.rounding, NormRounding::BeforeWeight);
  EXPECT_EQ(model.layers, std::vector<unsigned>(5, 0));
  ASSERT_EQ(model.layerTypes.size(), 1u);
  const AttentionConfig &a = model.layerTypes[0].attention;
  EXPECT_EQ(a.heads, 8);
  EXPECT_EQ(a.kvHeads, 4);
  EXPECT_EQ(a.headDim, 8);
  EXPECT_DOUBLE_EQ(a.scale, 1 / std::sqrt(8.0));
  EXPECT_EQ(a.qkNorm, QkNorm::None);
  EXPECT_FALSE(a.qkvBias || a.outBias);
  const DenseConfig &ffn = std::get<DenseConfig>(model.layerTypes[0].ffn);
  EXPECT_EQ(ffn.inner, 172);
  EXPECT_FALSE(ffn.bias);
}

TEST(Llama, HasDefaultsOfItsOwn) {
  auto model =
      configOf(llamaText, R"({"num_key_value_heads": null, "rms_norm_eps": "absent", "head_dim": 16,
                                       "tie_word_embeddings": "absent"})");
  ASSERT_TRUE(bool(model));
  EXPECT_EQ(model->layerTypes[0].attention.kvHeads, 8);
  EXPECT_EQ(model->layerTypes[0].attention.headDim, 16)
      << "heads times head size need not be the hidden size";
  EXPECT_EQ(model->norm.eps, 1e-6);
  EXPECT_FALSE(model->tiedHead);
}

TEST(Llama, HasBiasesWhereItsKeysSaySo) {
  auto model = configOf(llamaText, R"({"attention_bias": true, "mlp_bias": true})");
  ASSERT_TRUE(bool(model));
  EXPECT_TRUE(model->layerTypes[0].attention.qkvBias && model->layerTypes[0].attention.outBias);
  EXPECT_TRUE(std::get<DenseConfig>(model->layerTypes[0].ffn).bias);
}

TEST(Llama, AcceptsKnownActivations) {
  auto activationOf = [](llvm::StringRef name) {
    auto model = llvm::cantFail(configOf(llamaText, ("{\"hidden_act\": \"" + name + "\"}").str()));
    return std::get<DenseConfig>(model.layerTypes[0].ffn).activation;
  };
  EXPECT_EQ(activationOf("silu"), Activation::Silu);
  EXPECT_EQ(activationOf("swish"), Activation::Silu);
  EXPECT_EQ(activationOf("gelu"), Activation::Gelu);
  EXPECT_EQ(activationOf("gelu_pytorch_tanh"), Activation::GeluTanh);
  EXPECT_EQ(activationOf("gelu_python"), Activation::Gelu);
  for (llvm::StringRef name : {"gelu_new", "gelu_fast", "gelu_accurate", "gelu_python_tanh"})
    EXPECT_EQ(activationOf(name), Activation::GeluTanh) << name.str();
  EXPECT_EQ(activationOf("quick_gelu"), Activation::QuickGelu);
  EXPECT_EQ(activationOf("relu"), Activation::Relu);
  EXPECT_EQ(activationOf("relu2"), Activation::Relu2);
  EXPECT_THAT(problemOf(llamaText, R"({"hidden_act": "mish"})"),
              HasSubstr("has the activation \"mish\", only silu, swish, gelu, gelu_python, "
                        "gelu_pytorch_tanh, gelu_python_tanh, gelu_new, gelu_fast, gelu_accurate, "
                        "quick_gelu, relu, relu2 are supported"));
}

/// llamaText as another of transformers' families, with further keys.
llvm::Expected<ModelConfig> asFamily(llvm::StringRef type, llvm::StringRef architecture,
                                     llvm::StringRef keys) {
  return configOf(llamaText, ("{\"model_type\": \"" + type + "\", \"architectures\": [\"" +
                              architecture + "\"]" + (keys.empty() ? "" : ", ") + keys + "}")
                                 .str());
}

TEST(Mistral, HasAWindowWhereItsKeyIsAbsent) {
  auto model = asFamily("mistral", "MistralForCausalLM", "");
  ASSERT_TRUE(bool(model));
  EXPECT_EQ(model->layerTypes[0].attention.window, 4096);
  EXPECT_EQ(model->layerTypes[0].name, "dense_sliding");
  auto none = asFamily("mistral", "MistralForCausalLM", R"("sliding_window": null)");
  ASSERT_TRUE(bool(none));
  EXPECT_EQ(none->layerTypes[0].attention.window, std::nullopt);
}

TEST(Qwen2, UsesSlidingWindowInItsLaterLayers) {
  auto model =
      asFamily("qwen2", "Qwen2ForCausalLM",
               R"("use_sliding_window": true, "sliding_window": 16, "max_window_layers": 3)");
  ASSERT_TRUE(bool(model));
  EXPECT_EQ(model->layers, (std::vector<unsigned>{0, 0, 0, 1, 1}));
  EXPECT_TRUE(model->layerTypes[0].attention.qkvBias && !model->layerTypes[0].attention.outBias);
  EXPECT_EQ(model->layerTypes[0].attention.window, std::nullopt);
  EXPECT_EQ(model->layerTypes[1].attention.window, 16);
}

TEST(Gemma3Text, HasARopeForLayersWithAWindow) {
  auto model = asFamily("gemma3_text", "Gemma3ForCausalLM",
                        R"("hidden_act": "absent", "rope_theta": "absent", "sliding_window": 16,
                           "sliding_window_pattern": 2)");
  ASSERT_TRUE(bool(model)) << llvm::toString(model.takeError());
  EXPECT_EQ(model->layers, (std::vector<unsigned>{0, 1, 0, 1, 0}));
  EXPECT_EQ(model->layerTypes[0].attention.rope.theta, 1e4);
  EXPECT_EQ(model->layerTypes[1].attention.rope.theta, 1e6);
  EXPECT_EQ(model->embeddingMultiplier, 8);
  EXPECT_EQ(model->norm.weightOffset, 1);
}

/// llamaText as Gemma 4's text model, with other or further keys.
llvm::Expected<ModelConfig> asGemma4(llvm::StringRef more = "") {
  llvm::json::Value keys =
      changed(R"({"rope_theta": "absent", "head_dim": 16, "global_head_dim": 32, "layer_types":
                  ["sliding_attention", "full_attention", "sliding_attention",
                   "sliding_attention", "full_attention"], "hidden_size_per_layer_input": 0})",
              ("{" + more + "}").str());
  std::string text = llvm::formatv("{0}", keys);
  return asFamily("gemma4_text", "Gemma4ForCausalLM",
                  llvm::StringRef(text).drop_front().drop_back());
}
std::string gemma4Problem(llvm::StringRef more) {
  return llvm::toString(asGemma4(more).takeError());
}

TEST(Gemma4, HasOtherHeadsWithoutAWindow) {
  auto model = asGemma4();
  ASSERT_TRUE(bool(model)) << llvm::toString(model.takeError());
  EXPECT_EQ(model->layers, (std::vector<unsigned>{0, 1, 0, 0, 1}));
  EXPECT_EQ(model->norm.weightOffset, 0);
  EXPECT_TRUE(model->block.postNorms && model->block.layerScalar);
  const AttentionConfig &local = model->layerTypes[0].attention,
                        &global = model->layerTypes[1].attention;
  EXPECT_EQ(local.window, 512);
  EXPECT_EQ(local.headDim, 16);
  EXPECT_EQ(global.headDim, 32);
  EXPECT_EQ(global.valueDim, 32);
  EXPECT_EQ(global.kvHeads, 4) << "only keys that are values have another number";
  EXPECT_EQ(global.scale, 1);
  EXPECT_EQ(global.valueEps, 1e-5);
  EXPECT_FALSE(global.valuesAreKeys || local.sharesCache);
  EXPECT_EQ(local.rope.theta, 1e4);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(local.rope.scaling));
  EXPECT_EQ(global.rope.theta, 1e6);
  EXPECT_EQ(global.rope.dimensions, 32);
  EXPECT_EQ(std::get<ProportionalScaling>(global.rope.scaling).pairs, 4) << "a quarter of 16 pairs";
  auto ofKeys = asGemma4(R"("attention_k_eq_v": true, "num_global_key_value_heads": 2)");
  ASSERT_TRUE(bool(ofKeys)) << llvm::toString(ofKeys.takeError());
  EXPECT_EQ(ofKeys->layerTypes[1].attention.kvHeads, 2);
  EXPECT_TRUE(ofKeys->layerTypes[1].attention.valuesAreKeys);
  EXPECT_FALSE(ofKeys->layerTypes[0].attention.valuesAreKeys);
  EXPECT_THAT(gemma4Problem(R"("attention_k_eq_v": true, "num_global_key_value_heads": 3)"),
              HasSubstr("has 8 attention heads, not a multiple of its 3 key/value heads"));
  EXPECT_THAT(gemma4Problem(R"("global_head_dim": 15)"), HasSubstr("has the head size 15"));
  EXPECT_THAT(gemma4Problem(R"("use_bidirectional_attention": "all")"),
              HasSubstr("\"use_bidirectional_attention\": \"all\""));
}

TEST(Gemma4, HasLayerTypesWithoutKeys) {
  auto model = asGemma4(R"("layer_types": "absent", "num_hidden_layers": 8)");
  ASSERT_TRUE(bool(model)) << llvm::toString(model.takeError());
  EXPECT_EQ(model->layers, (std::vector<unsigned>{0, 0, 0, 0, 0, 1, 0, 1}))
      << "every sixth layer and the last";
  EXPECT_THAT(
      gemma4Problem(R"("num_hidden_layers": 1, "layer_types": ["sliding_attention"])"),
      HasSubstr("has the layer type \"sliding_attention\" for its last layer, which is without "
                "a window in this family"));
}

TEST(Gemma4, MayHaveSizesOfSingleLayers) {
  auto withSizes = [](llvm::StringRef sizes) {
    return asGemma4((R"("global_head_dim": "absent", "per_layer_config": )" + sizes).str());
  };
  auto model = withSizes(R"({"1": {"head_dim": 24, "num_key_value_heads": 2},
                             "04": {"head_dim": 24, "num_key_value_heads": 2}})");
  ASSERT_TRUE(bool(model)) << llvm::toString(model.takeError());
  EXPECT_EQ(model->layerTypes[0].attention.headDim, 16);
  EXPECT_EQ(model->layerTypes[1].attention.headDim, 24);
  EXPECT_EQ(model->layerTypes[1].attention.kvHeads, 2);
  auto none = withSizes("{}");
  ASSERT_TRUE(bool(none)) << llvm::toString(none.takeError());
  EXPECT_EQ(none->layerTypes[1].attention.headDim, 16) << "that of the other layers";
  auto problem = [&](llvm::StringRef sizes) {
    return llvm::toString(withSizes(sizes).takeError());
  };
  EXPECT_THAT(problem(R"({"1": {"head_dim": 24}})"),
              HasSubstr("has different sizes for layers without a window in \"per_layer_config\", "
                        "only one is supported"));
  EXPECT_THAT(problem(R"({"0": {"head_dim": 24}})"),
              HasSubstr("has \"per_layer_config.0.head_dim\", only head_dim and "
                        "num_key_value_heads of layers without a window are supported"));
  EXPECT_THAT(problem(R"({"1": {"sliding_window": 4}})"),
              HasSubstr("has \"per_layer_config.1.sliding_window\", only"));
  EXPECT_THAT(problem(R"({"1": {"head_dim": "x"}})"), HasSubstr("\"per_layer_config.1.head_dim\""));
  for (llvm::StringRef index : {"5", "x", "-1"})
    EXPECT_THAT(problem(("{\"" + index + "\": {}}").str()),
                HasSubstr("has \"per_layer_config." + index.str() +
                          "\", expected an object for the index of a layer"));
  EXPECT_THAT(problem(R"({"1": 24})"),
              HasSubstr("has \"per_layer_config.1\", expected an object for the index of a layer"));
  EXPECT_THAT(gemma4Problem(R"("per_layer_config": {})"),
              HasSubstr("has both \"per_layer_config\" and keys of global heads; keep one"));
}

TEST(Gemma4, MayShareCaches) {
  auto model = asGemma4(R"("num_kv_shared_layers": 3, "use_double_wide_mlp": true)");
  ASSERT_TRUE(bool(model)) << llvm::toString(model.takeError());
  EXPECT_EQ(model->layers, (std::vector<unsigned>{0, 1, 2, 2, 3}));
  EXPECT_EQ(model->layerTypes[2].name, "dense_sliding_shared");
  EXPECT_EQ(model->layerTypes[3].name, "dense_shared");
  for (unsigned type = 0; type < 4; ++type) {
    EXPECT_EQ(model->layerTypes[type].attention.sharesCache, type >= 2);
    EXPECT_EQ(std::get<DenseConfig>(model->layerTypes[type].ffn).inner, type >= 2 ? 344 : 172);
  }
  for (llvm::StringRef shared : {"4", "5", "6"})
    EXPECT_THAT(gemma4Problem(("\"num_kv_shared_layers\": " + shared).str()),
                HasSubstr("has \"num_kv_shared_layers\": " + shared.str() +
                          ", which leaves no layer of the type"));
  EXPECT_THAT(gemma4Problem(R"("num_kv_shared_layers": 4)"),
              HasSubstr("has \"num_kv_shared_layers\": 4, which leaves no layer of the type "
                        "\"full_attention\" that computes keys and values"));
}

TEST(Gemma4, MayHaveEmbeddingsOfLayers) {
  auto model = asGemma4(R"("hidden_size_per_layer_input": 8, "vocab_size_per_layer_input": 600)");
  ASSERT_TRUE(bool(model)) << llvm::toString(model.takeError());
  ASSERT_TRUE(model->layerTypes[1].perLayer);
  EXPECT_EQ(model->layerTypes[1].perLayer->dim, 8);
  EXPECT_EQ(model->layerTypes[1].perLayer->activation, Activation::GeluTanh);
  EXPECT_EQ(model->perLayerVocab, 600);
  EXPECT_THAT(
      gemma4Problem(R"("hidden_size_per_layer_input": 8, "vocab_size_per_layer_input": 511)"),
      HasSubstr("has \"vocab_size_per_layer_input\": 511, less than its \"vocab_size\""));
}

TEST(Gemma4, MayHaveExpertsBesideADenseNetwork) {
  auto model = asGemma4(R"("enable_moe_block": true, "num_experts": 4, "top_k_experts": 2,
                           "moe_intermediate_size": 8)");
  ASSERT_TRUE(bool(model)) << llvm::toString(model.takeError());
  EXPECT_EQ(model->layerTypes[0].name, "sparse_sliding");
  const auto &sparse = std::get<SparseConfig>(model->layerTypes[0].ffn);
  EXPECT_EQ(sparse.expert.inner, 8);
  EXPECT_TRUE(sparse.normalize);
  ASSERT_TRUE(sparse.dense);
  EXPECT_EQ(sparse.dense->inner, 172);
  EXPECT_THAT(gemma4Problem(R"("enable_moe_block": true, "num_experts": 4)"),
              HasSubstr("has \"enable_moe_block\": true, but not all of \"num_experts\", "
                        "\"top_k_experts\" and \"moe_intermediate_size\"; add them"));
}

TEST(Gemma4, NeedsARopeForEachLayerType) {
  constexpr llvm::StringLiteral local = R"("sliding_attention": {"rope_theta": 1e4})";
  auto withRope = [&](llvm::StringRef full) {
    return ("\"rope_parameters\": {" + local + full + "}").str();
  };
  EXPECT_THAT(gemma4Problem(withRope("")),
              HasSubstr("has no object \"full_attention\" in \"rope_parameters\"; add it"));
  EXPECT_THAT(gemma4Problem(withRope(R"(, "full_attention": {"rope_type": "proportional",
                                          "partial_rotary_factor": 0.001})")),
              HasSubstr("rotates no pair of the 32 elements of a head by its "
                        "\"rope_parameters.full_attention.partial_rotary_factor\""));
  EXPECT_THAT(gemma4Problem(withRope(R"(, "full_attention": {"partial_rotary_factor": 0.25})")),
              HasSubstr("but the family's code rotates whole heads"))
      << "without the type, the factor has no effect";
  EXPECT_THAT(
      problemOf(llamaText, R"({"rope_scaling": {"rope_type": "proportional", "factor": 2.0}})"),
      HasSubstr("has the rope scaling \"proportional\""));
}

TEST(Gemma4, IsTheTextPartOfALargerModel) {
  llvm::json::Object text = changed(llamaText, R"({"model_type": "gemma4_text", "architectures":
      "absent", "rope_theta": "absent", "hidden_size_per_layer_input": 0})");
  llvm::json::Object config{{"model_type", "gemma4"},
                            {"architectures", {"Gemma4ForConditionalGeneration"}},
                            {"image_token_id", 7},
                            {"audio_config", nullptr},
                            {"vision_config", llvm::json::Object{{"num_hidden_layers", 2}}},
                            {"text_config", std::move(text)}};
  auto model = configOf(llvm::formatv("{0}", llvm::json::Value(std::move(config))).str());
  ASSERT_TRUE(bool(model)) << llvm::toString(model.takeError());
  EXPECT_EQ(model->names->layers, "model.language_model.layers");
  EXPECT_EQ(model->names->perLayerTable, "model.language_model.embed_tokens_per_layer");
  EXPECT_EQ(model->layerTypes[0].attention.headDim, 256);
  EXPECT_TRUE(model->tiedHead);
  for (const IgnoredKey &key : model->ignored)
    EXPECT_EQ(key.missed, key.key == "vision_config")
        << key.key << ": only what there is is missed";
}

Activation activationOf(const ModelConfig &model) {
  return std::get<DenseConfig>(model.layerTypes[0].ffn).activation;
}

/// In the first Gemma, the legacy key means the approximation; later ones use another key.
TEST(Gemma, ReadsTheActivationThatItsClassReads) {
  auto first = [](llvm::StringRef name) {
    return activationOf(llvm::cantFail(
        asFamily("gemma", "GemmaForCausalLM", ("\"hidden_act\": \"" + name + "\"").str())));
  };
  EXPECT_EQ(first("gelu"), Activation::GeluTanh);
  EXPECT_EQ(first("silu"), Activation::Silu);
  for (auto [type, architecture] :
       {std::pair("gemma2", "Gemma2ForCausalLM"), std::pair("gemma3_text", "Gemma3ForCausalLM")}) {
    auto model = asFamily(type, architecture,
                          R"("hidden_act": "gelu_pytorch_tanh", "hidden_activation": "relu")");
    ASSERT_TRUE(bool(model)) << llvm::toString(model.takeError());
    EXPECT_EQ(activationOf(*model), Activation::Relu);
    auto none = asFamily(type, architecture, R"("hidden_act": "absent")");
    ASSERT_TRUE(bool(none)) << llvm::toString(none.takeError());
    EXPECT_EQ(activationOf(*none), Activation::GeluTanh);
    auto open = asFamily(type, architecture,
                         R"("hidden_act": "gelu_pytorch_tanh", "hidden_activation": null)");
    EXPECT_EQ(llvm::toString(open.takeError()),
              "config.json: has \"hidden_activation\": null, expected a string; correct it");
  }
  auto capped = asFamily("gemma3_text", "Gemma3ForCausalLM", R"("attn_logit_softcapping": 2.0)");
  ASSERT_TRUE(bool(capped)) << llvm::toString(capped.takeError());
  EXPECT_EQ(capped->layerTypes[0].attention.softcap, std::nullopt) << "its class never applies it";
}

TEST(Phi3, HasNoBiasesRegardlessOfItsConfig) {
  auto model = asFamily("phi3", "Phi3ForCausalLM", R"("attention_bias": true)");
  ASSERT_TRUE(bool(model)) << llvm::toString(model.takeError());
  EXPECT_FALSE(model->layerTypes[0].attention.qkvBias);
}

constexpr llvm::StringLiteral gpt2Text = R"({"model_type": "gpt2", "n_embd": 64, "n_layer": 3,
  "n_head": 4, "n_positions": 32, "vocab_size": 64})";

TEST(Gpt2, MayScaleScoresByTheLayer) {
  auto model = configOf(gpt2Text, R"({"scale_attn_by_inverse_layer_idx": true,
                                      "reorder_and_upcast_attn": true})");
  ASSERT_TRUE(bool(model)) << llvm::toString(model.takeError());
  EXPECT_EQ(model->layers, (std::vector<unsigned>{0, 1, 2}));
  EXPECT_EQ(model->layerTypes[2].name, "dense_2");
  EXPECT_DOUBLE_EQ(model->layerTypes[0].attention.scale, 0.25);
  EXPECT_DOUBLE_EQ(model->layerTypes[2].attention.scale, 0.25 / 3);
  auto plain = configOf(gpt2Text, R"({"scale_attn_weights": false})");
  ASSERT_TRUE(bool(plain)) << llvm::toString(plain.takeError());
  EXPECT_EQ(plain->layers, (std::vector<unsigned>{0, 0, 0}));
  EXPECT_EQ(plain->layerTypes[0].attention.scale, 1);
}

constexpr llvm::StringLiteral bloomText = R"({"model_type": "bloom", "hidden_size": 64,
  "n_layer": 2, "n_head": 4, "vocab_size": 64})";

TEST(Bloom, RefusesSlicesWithoutBiases) {
  EXPECT_EQ(problemOf(bloomText, R"({"pretraining_tp": 2, "slow_but_exact": true})"),
            "config.json: has \"slow_but_exact\" and \"pretraining_tp\" above 1, which together "
            "omit biases; set \"slow_but_exact\" to false");
  EXPECT_EQ(problemOf(bloomText, R"({"pretraining_tp": 2, "slow_but_exact": false})"), "");
  EXPECT_EQ(problemOf(bloomText, R"({"pretraining_tp": 1, "slow_but_exact": true})"), "");
}

constexpr llvm::StringLiteral xglmText = R"({"model_type": "xglm", "d_model": 64, "num_layers": 2,
  "attention_heads": 4, "ffn_dim": 96, "vocab_size": 64})";

/// paddingIdx is set only if the padding row belongs to a position: position 0 is row 2.
TEST(Xglm, HasARowOfPadding) {
  auto rowOf = [](llvm::StringRef changes) {
    return llvm::cantFail(configOf(xglmText, changes)).paddingIdx;
  };
  EXPECT_EQ(rowOf("{}"), std::nullopt);
  EXPECT_EQ(rowOf(R"({"pad_token_id": 1})"), std::nullopt);
  EXPECT_EQ(rowOf(R"({"pad_token_id": null})"), std::nullopt);
  EXPECT_EQ(rowOf(R"({"pad_token_id": 2})"), 2);
  EXPECT_THAT(problemOf(xglmText, R"({"pad_token_id": -1})"), HasSubstr("\"pad_token_id\": -1"));
}

TEST(Xglm, RejectsPaddingOutsideOfItsTables) {
  EXPECT_EQ(problemOf(xglmText, R"({"pad_token_id": 63})"), "");
  EXPECT_EQ(
      problemOf(xglmText, R"({"pad_token_id": 64})"),
      "config.json: has \"pad_token_id\": 64, which is not a row of the 64 of the vocabulary; "
      "use one of them or null");
  EXPECT_EQ(problemOf(xglmText, R"({"pad_token_id": 33, "max_position_embeddings": 32})"), "");
  EXPECT_EQ(problemOf(xglmText, R"({"pad_token_id": 34, "max_position_embeddings": 32})"),
            "config.json: has \"pad_token_id\": 34, which is not a row of the 34 of its positions; "
            "use one of them or null");
}

constexpr llvm::StringLiteral deepSeekText = R"({"model_type": "deepseek_v2", "hidden_size": 64,
  "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 64,
  "max_position_embeddings": 64, "num_experts_per_tok": 2, "n_routed_experts": 8, "n_group": 2,
  "topk_group": 1, "moe_intermediate_size": 16, "first_k_dense_replace": 1, "kv_lora_rank": 16,
  "q_lora_rank": null, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 8})";

TEST(DeepSeek, RefusesOtherNumbersOfKeysThanHeads) {
  for (llvm::StringRef type : {"deepseek_v2", "deepseek_v3"}) {
    auto with = [&](llvm::StringRef heads) {
      return problemOf(
          deepSeekText,
          ("{\"model_type\": \"" + type + "\", \"num_key_value_heads\": " + heads + "}").str());
    };
    EXPECT_EQ(with("2"), "config.json: has \"num_key_value_heads\": 2, but a latent makes keys and "
                         "values for all 4 heads; set it to 4");
    EXPECT_EQ(with("4"), "");
    EXPECT_EQ(with("null"), "");
  }
}

TEST(DeepSeek, KeepsGroupsWithEnoughExperts) {
  auto problemOfGroups = [](llvm::StringRef type, llvm::StringRef changes) {
    llvm::StringRef method = type == "deepseek_v2" ? "group_limited_greedy" : "noaux_tc";
    return problemOf(deepSeekText, ("{\"model_type\": \"" + type + "\", \"topk_method\": \"" +
                                    method + "\", " + changes + "}")
                                       .str());
  };
  EXPECT_EQ(problemOfGroups("deepseek_v2", R"("n_group": 2, "num_experts_per_tok": 4)"), "");
  EXPECT_EQ(problemOfGroups("deepseek_v2", R"("n_group": 3)"),
            "config.json: has 8 experts, not a multiple of its 3 groups; correct \"n_group\" or "
            "\"n_routed_experts\"");
  EXPECT_EQ(problemOfGroups("deepseek_v2", R"("topk_group": 3)"),
            "config.json: keeps 3 of 2 groups of experts; correct \"topk_group\" or \"n_group\"");
  EXPECT_EQ(
      problemOfGroups("deepseek_v2", R"("num_experts_per_tok": 5)"),
      "config.json: chooses 5 experts per token of the 4 in the groups that it keeps; correct "
      "\"num_experts_per_tok\" or \"topk_group\"");
  EXPECT_EQ(problemOfGroups("deepseek_v2", R"("n_group": 8, "topk_group": 4)"), "");
  EXPECT_EQ(
      problemOfGroups("deepseek_v3", R"("n_group": 8, "topk_group": 4)"),
      "config.json: scores groups by their two best experts, but its 8 groups have one expert "
      "each; correct \"n_group\" or \"n_routed_experts\"");
  EXPECT_EQ(problemOfGroups("deepseek_v3", R"("n_group": 4, "topk_group": 1)"), "");
}

TEST(DeepSeek, ChoosesExpertsByKnownMethods) {
  EXPECT_EQ(problemOf(deepSeekText, R"({"topk_method": "noaux_tc"})"),
            "config.json: has \"topk_method\": \"noaux_tc\", expected \"greedy\" or "
            "\"group_limited_greedy\"; correct it");
  for (llvm::StringRef method : {"greedy", "group_limited_greedy"})
    EXPECT_EQ(problemOf(deepSeekText, ("{\"topk_method\": \"" + method + "\"}").str()), "");
}

TEST(DeepSeek, MayHaveBiasesOfNetworks) {
  auto model = configOf(deepSeekText, R"({"mlp_bias": true, "norm_topk_prob": true,
                                          "n_shared_experts": 1})");
  ASSERT_TRUE(bool(model)) << llvm::toString(model.takeError());
  EXPECT_TRUE(std::get<DenseConfig>(model->layerTypes[0].ffn).bias);
  const SparseConfig &sparse = std::get<SparseConfig>(model->layerTypes[1].ffn);
  EXPECT_TRUE(sparse.shared.bias);
  EXPECT_FALSE(sparse.expert.bias || sparse.normalize);
}

TEST(GptOss, HasItsDefaults) {
  auto model = asFamily("gpt_oss", "GptOssForCausalLM",
                        R"("rope_theta": "absent", "rope_scaling": "absent",
                           "num_local_experts": 8, "head_dim": 16,
                           "quantization_config": {"quant_method": "mxfp4"})");
  ASSERT_TRUE(bool(model)) << llvm::toString(model.takeError());
  EXPECT_EQ(model->layers, (std::vector<unsigned>{0, 1, 0, 1, 0}));
  const AttentionConfig &attention = model->layerTypes[0].attention;
  EXPECT_EQ(attention.window, 128);
  EXPECT_TRUE(attention.sinks && attention.qkvBias && attention.outBias);
  EXPECT_EQ(attention.rope.theta, 150000);
  EXPECT_FALSE(std::get<YarnScaling>(attention.rope.scaling).truncate);
  const SparseConfig &sparse = std::get<SparseConfig>(model->layerTypes[0].ffn);
  EXPECT_EQ(sparse.expert.clamp->limit, 7);
  EXPECT_TRUE(sparse.expert.bias && sparse.routerBias && sparse.normalize);
  EXPECT_EQ(model->names->stackedSuffix, "_blocks");
  for (auto [quantization, problem] :
       std::initializer_list<std::pair<llvm::StringRef, llvm::StringRef>>{
           {R"({"quant_method": "fp8"})", "quantized by \"fp8\", only \"mxfp4\" is supported"},
           {R"({"load_in_4bit": true})",
            "quantized by \"bitsandbytes\", only \"mxfp4\" is supported"},
           {R"({"bits": 4})", "quantized, only \"mxfp4\" is supported"}}) {
    auto other =
        asFamily("gpt_oss", "GptOssForCausalLM",
                 (R"("rope_scaling": "absent", "num_local_experts": 8, "quantization_config": )" +
                  quantization)
                     .str());
    EXPECT_THAT(
        llvm::toString(other.takeError()),
        HasSubstr(("\"quantization_config\": the checkpoint is " + problem +
                   "; use the model's original checkpoint with --weights int4 or int8, or a "
                   "GGUF file of it")
                      .str()));
  }
  auto open =
      asFamily("gpt_oss", "GptOssForCausalLM", R"("num_local_experts": 8, "rope_scaling": null)");
  EXPECT_THAT(
      llvm::toString(open.takeError()),
      HasSubstr("has \"rope_scaling\": null, which does not specify the type; write an object with "
                "\"rope_type\": \"default\" or \"yarn\""));
}

TEST(Gemma4, HasTwoNamesOfTheSizeOfExperts) {
  auto readAs = [](llvm::StringRef sizes) {
    return asGemma4(
        ("\"enable_moe_block\": true, \"num_experts\": 4, \"top_k_experts\": 2" + sizes).str());
  };
  auto older = readAs(R"(, "expert_intermediate_size": 48)");
  ASSERT_TRUE(bool(older)) << llvm::toString(older.takeError());
  EXPECT_EQ(std::get<SparseConfig>(older->layerTypes[0].ffn).expert.inner, 48);
  EXPECT_THAT(
      llvm::toString(
          readAs(R"(, "expert_intermediate_size": 48, "moe_intermediate_size": 40)").takeError()),
      HasSubstr("which contradicts"));
}

TEST(Windows, AreRefusedWhereTheFamilyHasNone) {
  auto sliding = asFamily("granite", "GraniteForCausalLM",
                          R"("layer_types": ["sliding_attention", "full_attention",
                             "full_attention", "full_attention", "full_attention"])");
  EXPECT_THAT(llvm::toString(sliding.takeError()), HasSubstr("only full_attention is supported"));
}

TEST(Lfm2, HasConvolutionsAndAttention) {
  auto readAs = [](llvm::StringRef more) {
    return asFamily("lfm2", "Lfm2ForCausalLM", (R"("rms_norm_eps": "absent", )" + more).str());
  };
  auto older = readAs(R"("full_attn_idxs": [1, 3], "conv_L_cache": 4)");
  ASSERT_TRUE(bool(older)) << llvm::toString(older.takeError());
  EXPECT_EQ(older->layers, (std::vector<unsigned>{0, 1, 0, 1, 0}));
  ASSERT_TRUE(older->layerTypes[0].mixer<ShortConvConfig>());
  EXPECT_EQ(older->layerTypes[0].name, "dense_conv");
  EXPECT_EQ(older->layerTypes[0].mixer<ShortConvConfig>()->taps, 4);
  EXPECT_FALSE(older->layerTypes[1].mixer<ShortConvConfig>());
  EXPECT_EQ(std::get<DenseConfig>(older->layerTypes[0].ffn).inner, 256)
      << "two thirds of 172, rounded up";
  auto exact = readAs(R"("block_auto_adjust_ff_dim": false)");
  ASSERT_TRUE(bool(exact)) << llvm::toString(exact.takeError());
  EXPECT_EQ(std::get<DenseConfig>(exact->layerTypes[0].ffn).inner, 172);
  EXPECT_EQ(exact->layerTypes.size(), 1u) << "without any rule all layers have attention";
  EXPECT_FALSE(exact->layerTypes[0].mixer<ShortConvConfig>());
  auto problem = [&](llvm::StringRef more) { return llvm::toString(readAs(more).takeError()); };
  EXPECT_THAT(problem(R"("full_attn_idxs": [5])"),
              HasSubstr("has 5 in \"full_attn_idxs\", expected indices of 5 layers"));
  constexpr const char *both = R"(, "layer_types": ["conv", "full_attention", "conv",
                                  "full_attention", "conv"])";
  EXPECT_EQ(problem((R"("full_attn_idxs": [1, 3])" + llvm::Twine(both)).str()), "");
  EXPECT_EQ(problem((R"("full_attn_idxs": null)" + llvm::Twine(both)).str()), "");
  EXPECT_THAT(problem((R"("full_attn_idxs": [1])" + llvm::Twine(both)).str()),
              HasSubstr("has the layer type \"full_attention\" for layer 3 in \"layer_types\", "
                        "which contradicts \"full_attn_idxs\"; keep one of them"));
  EXPECT_THAT(problem(R"("conv_L_cache": 33)"), HasSubstr("conv_L_cache"));
  EXPECT_THAT(problem(R"("layer_types": ["conv", "conv", "mamba", "conv", "conv"])"),
              HasSubstr("has the layer type \"mamba\" in \"layer_types\", only full_attention and "
                        "conv are supported"));
}

/// A config of mamba2, changed.
llvm::Expected<ModelConfig> asMamba2(llvm::StringRef changes) {
  return configOf(R"({"model_type": "mamba2", "hidden_size": 24, "num_hidden_layers": 3,
                      "num_heads": 6, "head_dim": 8, "state_size": 10, "n_groups": 2,
                      "vocab_size": 64})",
                  changes);
}

TEST(Mamba2, HasNeitherAttentionNorMlp) {
  auto model = asMamba2(R"({"use_conv_bias": false})");
  ASSERT_TRUE(bool(model)) << llvm::toString(model.takeError());
  ASSERT_EQ(model->layerTypes.size(), 1u);
  const LayerType &kind = model->layerTypes[0];
  EXPECT_EQ(kind.name, "mamba");
  EXPECT_FALSE(kind.hasAttention());
  EXPECT_TRUE(std::holds_alternative<std::monostate>(kind.ffn));
  ASSERT_TRUE(kind.mixer<MambaConfig>());
  EXPECT_EQ(kind.mixer<MambaConfig>()->inner(), 48);
  EXPECT_EQ(kind.mixer<MambaConfig>()->channels(), 48 + 2 * 2 * 10);
  EXPECT_EQ(kind.mixer<MambaConfig>()->taps, 4);
  EXPECT_FALSE(kind.mixer<MambaConfig>()->convBias || kind.mixer<MambaConfig>()->bias);
  EXPECT_EQ(model->maxPositions, 1 << 20) << "nothing limits it";
}

TEST(Mamba2, RefusesSizesThatDisagree) {
  auto problem = [](llvm::StringRef changes) {
    return llvm::toString(asMamba2(changes).takeError());
  };
  EXPECT_THAT(
      problem(R"({"num_heads": 5})"),
      HasSubstr("has 5 Mamba heads of size 8, expected a size of 48 in all, which is \"expand\" "
                "times \"hidden_size\"; correct \"num_heads\", \"head_dim\" or \"expand\""));
  EXPECT_THAT(
      problem(R"({"n_groups": 4})"),
      HasSubstr("has 6 Mamba heads, not a multiple of its 4 groups; correct \"num_heads\" or "
                "\"n_groups\""));
  EXPECT_THAT(problem(R"({"conv_kernel": 33})"), HasSubstr("conv_kernel"));
  EXPECT_THAT(problem(R"({"time_step_limit": [0.001, 0.1]})"), HasSubstr("\"time_step_limit\""));
  EXPECT_THAT(problem(R"({"rms_norm": false})"), HasSubstr("\"rms_norm\""));
  EXPECT_EQ(problem(R"({"time_step_limit": [0.0, "Infinity"]})"), "");
}

/// The sizes of Mamba in a hybrid of 64 columns.
constexpr const char *mambaSizes =
    R"("mamba_n_heads": 8, "mamba_d_head": 16, "mamba_d_state": 10, "mamba_n_groups": 2, )";

TEST(Bamba, HasMambaAndAttention) {
  auto readAs = [](llvm::StringRef more) {
    return asFamily("bamba", "BambaForCausalLM", (mambaSizes + more).str());
  };
  auto model = readAs(R"("attn_layer_indices": [1, 3])");
  ASSERT_TRUE(bool(model)) << llvm::toString(model.takeError());
  EXPECT_EQ(model->layers, (std::vector<unsigned>{0, 1, 0, 1, 0}));
  EXPECT_EQ(model->layerTypes[0].name, "dense_mamba");
  ASSERT_TRUE(model->layerTypes[0].mixer<MambaConfig>());
  EXPECT_EQ(model->layerTypes[0].mixer<MambaConfig>()->channels(), 128 + 2 * 2 * 10);
  EXPECT_TRUE(model->layerTypes[0].mixer<MambaConfig>()->convBias);
  EXPECT_TRUE(model->layerTypes[1].hasAttention());
  EXPECT_EQ(model->layerTypes[1].attention.rope.dimensions, 4) << "half of each head";
  auto all = readAs(R"("attn_layer_indices": null)");
  ASSERT_TRUE(bool(all)) << llvm::toString(all.takeError());
  EXPECT_EQ(all->layerTypes.size(), 1u);
  EXPECT_FALSE(all->layerTypes[0].hasAttention()) << "without any rule all layers have Mamba";
  EXPECT_THAT(llvm::toString(readAs(R"("mamba_expand": 3)").takeError()),
              HasSubstr("has 8 Mamba heads of size 16, expected a size of 192 in all, which is "
                        "\"mamba_expand\" times \"hidden_size\"; correct \"mamba_n_heads\", "
                        "\"mamba_d_head\" or \"mamba_expand\""));
}

TEST(FalconH1, HasMambaParallelToAttention) {
  auto readAs = [](llvm::StringRef more) {
    return asFamily("falcon_h1", "FalconH1ForCausalLM", (mambaSizes + more).str());
  };
  auto model = readAs(R"("mamba_d_ssm": 128, "key_multiplier": 0.5, "lm_head_multiplier": 0.25,
                         "ssm_multipliers": [0.5, 0.75, 1.0, 1.25, 2.0],
                         "mlp_multipliers": [0.5, 0.25], "ssm_in_multiplier": 3.0,
                         "attention_out_multiplier": 4.0)");
  ASSERT_TRUE(bool(model)) << llvm::toString(model.takeError());
  ASSERT_EQ(model->layerTypes.size(), 1u);
  const LayerType &kind = model->layerTypes[0];
  EXPECT_TRUE(kind.hasAttention());
  ASSERT_TRUE(kind.mixer<MambaConfig>());
  EXPECT_EQ(kind.mixer<MambaConfig>()->inner(), 128) << "not twice the hidden size";
  EXPECT_FALSE(kind.mixer<MambaConfig>()->hasNorm || kind.mixer<MambaConfig>()->outBias);
  EXPECT_EQ(kind.mixer<MambaConfig>()->multipliers, (std::array<double, 5>{0.5, 0.75, 1, 1.25, 2}));
  EXPECT_EQ(kind.mixer<MambaConfig>()->inMultiplier, 3);
  EXPECT_EQ(kind.attention.outMultiplier, 4);
  EXPECT_DOUBLE_EQ(kind.attention.scale, 0.5 / std::sqrt(8.0)) << "that of the keys as well";
  EXPECT_EQ(std::get<DenseConfig>(kind.ffn).gateMultiplier, 0.5);
  EXPECT_EQ(std::get<DenseConfig>(kind.ffn).downMultiplier, 0.25);
  EXPECT_EQ(model->logitMultiplier, 0.25);
  auto problem = [&](llvm::StringRef more) { return llvm::toString(readAs(more).takeError()); };
  EXPECT_THAT(problem(R"("mamba_d_ssm": 120)"),
              HasSubstr("has 8 Mamba heads of size 16, expected a size of 120 in all, which is "
                        "\"mamba_d_ssm\"; correct \"mamba_n_heads\", \"mamba_d_head\" or "
                        "\"mamba_d_ssm\""));
  EXPECT_THAT(problem(R"("mamba_d_ssm": null, "ssm_multipliers": [1.0, 2.0])"),
              HasSubstr("has 2 numbers in \"ssm_multipliers\", expected 5"));
  EXPECT_THAT(problem(R"("mamba_d_ssm": null, "mlp_multipliers": [1.0, "2"])"),
              HasSubstr("\"mlp_multipliers\""));
  EXPECT_THAT(problem(R"("mamba_use_mlp": false)"), HasSubstr("\"mamba_use_mlp\""));
}

/// A config of nemotron_h, changed.
llvm::Expected<ModelConfig> asNemotronH(llvm::StringRef changes) {
  return configOf(R"({"model_type": "nemotron_h", "hidden_size": 24, "vocab_size": 64,
                      "num_attention_heads": 3, "num_key_value_heads": 1, "head_dim": 10,
                      "mamba_num_heads": 6, "mamba_head_dim": 8, "ssm_state_size": 10,
                      "n_groups": 2})",
                  changes);
}

TEST(NemotronH, HasOneBlockPerLayer) {
  auto model = asNemotronH(R"({"hybrid_override_pattern": "M-*EM", "moe_latent_size": 12})");
  ASSERT_TRUE(bool(model)) << llvm::toString(model.takeError());
  EXPECT_EQ(model->layers, (std::vector<unsigned>{0, 1, 2, 3, 0}));
  auto hasFfn = [](const LayerType &kind) {
    return !std::holds_alternative<std::monostate>(kind.ffn);
  };
  const LayerType &mamba = model->layerTypes[0], &dense = model->layerTypes[1],
                  &attention = model->layerTypes[2], &sparse = model->layerTypes[3];
  EXPECT_EQ(mamba.name, "mamba");
  EXPECT_TRUE(mamba.mixes && mamba.mixer<MambaConfig>() && !mamba.hasAttention() && !hasFfn(mamba));
  EXPECT_EQ(dense.name, "dense");
  EXPECT_FALSE(dense.mixes || dense.hasAttention());
  EXPECT_FALSE(std::get<DenseConfig>(dense.ffn).gated);
  EXPECT_EQ(std::get<DenseConfig>(dense.ffn).activation, Activation::Relu2);
  EXPECT_EQ(attention.name, "attention");
  EXPECT_TRUE(attention.hasAttention() && !attention.mixer<MambaConfig>() && !hasFfn(attention));
  EXPECT_EQ(attention.attention.rope.dimensions, 0);
  EXPECT_EQ(sparse.name, "sparse");
  EXPECT_FALSE(sparse.mixes);
  EXPECT_EQ(std::get<SparseConfig>(sparse.ffn).latent, 12);
  auto listed = asNemotronH(R"({"layers_block_type": ["mamba", "mlp", "full_attention"]})");
  ASSERT_TRUE(bool(listed)) << llvm::toString(listed.takeError());
  EXPECT_EQ(listed->layers, (std::vector<unsigned>{0, 1, 2}));
}

TEST(NemotronH, RefusesLayersThatItDoesNotKnow) {
  auto problem = [](llvm::StringRef changes) {
    return llvm::toString(asNemotronH(changes).takeError());
  };
  EXPECT_THAT(
      problem("{}"),
      HasSubstr("has neither \"layers_block_type\" nor \"hybrid_override_pattern\"; add one"));
  EXPECT_THAT(problem(R"({"hybrid_override_pattern": "M-X"})"),
              HasSubstr("has \"X\" in \"hybrid_override_pattern\", but only M, *, - and E are "
                        "supported"));
  EXPECT_THAT(problem(R"({"hybrid_override_pattern": ""})"), HasSubstr("has 0 layers"));
  EXPECT_THAT(
      problem(R"({"hybrid_override_pattern": "M-", "num_hidden_layers": 3})"),
      HasSubstr("has 2 letters in \"hybrid_override_pattern\" for 3 layers; list one for each "
                "layer"));
  EXPECT_THAT(problem(R"({"layers_block_type": ["mamba", "conv"]})"),
              HasSubstr("has the layer type \"conv\" in \"layers_block_type\", only "
                        "full_attention, attention, linear_attention, mamba, mlp and moe are"));
  EXPECT_THAT(problem(R"({"hybrid_override_pattern": "ME", "n_routed_experts": 0})"),
              HasSubstr("has the layer type \"moe\" in \"hybrid_override_pattern\", but no "
                        "experts; correct it"));
  auto withList = [&](const char *pattern) {
    return problem((R"({"layers_block_type": ["mamba", "full_attention", "mlp", "moe"],
                        "hybrid_override_pattern": ")" +
                    llvm::Twine(pattern) + "\"}")
                       .str());
  };
  EXPECT_EQ(withList("M*-E"), "");
  EXPECT_THAT(withList("M*-EM"),
              HasSubstr("has 5 letters in \"hybrid_override_pattern\" for 4 layers; list one for "
                        "each layer"));
  EXPECT_THAT(withList("MM-E"),
              HasSubstr("has the layer type \"full_attention\" for layer 1 in "
                        "\"layers_block_type\", which contradicts \"hybrid_override_pattern\"; "
                        "keep one of them"));
  EXPECT_THAT(withList("M*EE"), HasSubstr("has the layer type \"mlp\" for layer 2"));
  EXPECT_THAT(problem(R"({"hybrid_override_pattern": "M", "mlp_hidden_act": "silu"})"),
              HasSubstr("\"mlp_hidden_act\""));
}

TEST(GraniteMoeHybrid, HasASharedNetworkAndPerhapsExperts) {
  auto readAs = [](llvm::StringRef more) {
    return asFamily("granitemoehybrid", "GraniteMoeHybridForCausalLM",
                    (mambaSizes + llvm::Twine(R"("shared_intermediate_size": 96, "layer_types": [
                        "mamba", "attention", "linear_attention", "full_attention", "mamba"], )") +
                     more)
                        .str());
  };
  auto model = readAs(R"("num_local_experts": 4, "position_embedding_type": "rope")");
  ASSERT_TRUE(bool(model)) << llvm::toString(model.takeError());
  EXPECT_EQ(model->layers, (std::vector<unsigned>{0, 1, 0, 1, 0}));
  EXPECT_EQ(model->layerTypes[0].name, "sparse_mamba");
  EXPECT_EQ(model->layerTypes[1].attention.rope.dimensions, 8);
  const auto &sparse = std::get<SparseConfig>(model->layerTypes[1].ffn);
  EXPECT_EQ(sparse.expert.inner, 172);
  EXPECT_EQ(sparse.shared.inner, 96);
  EXPECT_TRUE(sparse.normalize) << "the softmax is of the chosen scores";
  auto dense = readAs(R"("num_local_experts": 0, "num_experts_per_tok": 0)");
  ASSERT_TRUE(bool(dense)) << llvm::toString(dense.takeError());
  EXPECT_EQ(dense->layerTypes[0].name, "dense_mamba");
  EXPECT_EQ(std::get<DenseConfig>(dense->layerTypes[0].ffn).inner, 96);
  EXPECT_EQ(dense->layerTypes[1].attention.rope.dimensions, 0) << "no positions";
  auto problem = [&](llvm::StringRef more) { return llvm::toString(readAs(more).takeError()); };
  EXPECT_THAT(problem(R"("num_experts_per_tok": 0)"),
              HasSubstr("chooses 0 experts per token of 8"));
  EXPECT_THAT(
      problem(R"("position_embedding_type": "alibi")"),
      HasSubstr("has \"position_embedding_type\": \"alibi\", only \"rope\" and \"nope\" are "
                "supported"));
  auto other = asFamily("granitemoehybrid", "GraniteMoeHybridForCausalLM",
                        (mambaSizes + llvm::Twine(R"("layer_types": [
                            "mamba", "conv", "mamba", "mamba", "mamba"])"))
                            .str());
  EXPECT_THAT(llvm::toString(other.takeError()),
              HasSubstr("only full_attention, attention, linear_attention and mamba are "
                        "supported"));
}

/// The sizes of gated delta nets and of experts in a hybrid of 64 columns.
constexpr const char *deltaSizes =
    R"("linear_num_value_heads": 4, "linear_key_head_dim": 6,
       "linear_value_head_dim": 10, "num_experts": 4, "num_experts_per_tok": 2,
       "moe_intermediate_size": 8, "shared_expert_intermediate_size": 12, )";

TEST(Qwen3Next, HasDeltaNetsAndGatedAttention) {
  auto readAs = [](llvm::StringRef more, int keyHeads = 2) {
    return asFamily("qwen3_next", "Qwen3NextForCausalLM",
                    (deltaSizes + llvm::Twine("\"linear_num_key_heads\": ") +
                     llvm::Twine(keyHeads) + (more.empty() ? "" : ", ") + more)
                        .str());
  };
  auto model = readAs(R"("mlp_only_layers": [0])");
  ASSERT_TRUE(bool(model)) << llvm::toString(model.takeError());
  EXPECT_EQ(model->layers, (std::vector<unsigned>{0, 1, 1, 2, 1})) << "one in four has attention";
  EXPECT_EQ(model->layerTypes[0].name, "dense_delta");
  EXPECT_EQ(model->layerTypes[1].name, "sparse_delta");
  EXPECT_EQ(model->norm.weightOffset, 1);
  ASSERT_TRUE(model->layerTypes[1].mixer<DeltaNetConfig>());
  EXPECT_FALSE(model->layerTypes[1].hasAttention());
  EXPECT_EQ(model->layerTypes[1].mixer<DeltaNetConfig>()->channels(), 2 * 2 * 6 + 4 * 10);
  EXPECT_EQ(model->layerTypes[1].mixer<DeltaNetConfig>()->taps, 4);
  const AttentionConfig &attention = model->layerTypes[2].attention;
  EXPECT_TRUE(attention.outputGate);
  EXPECT_EQ(attention.headDim, 256) << "not a share of the hidden size";
  EXPECT_EQ(attention.rope.dimensions, 64) << "a quarter of each head";
  const auto &sparse = std::get<SparseConfig>(model->layerTypes[2].ffn);
  EXPECT_TRUE(sparse.normalize && sparse.sharedGate);
  EXPECT_EQ(sparse.shared.inner, 12);
  constexpr const char *last = R"("layer_types": ["linear_attention", "linear_attention",
      "linear_attention", "linear_attention", "full_attention"])";
  auto named = readAs(last);
  ASSERT_TRUE(bool(named)) << llvm::toString(named.takeError());
  EXPECT_EQ(named->layers, (std::vector<unsigned>{0, 0, 0, 0, 1})) << "the rule is a default";
  auto problem = [&](llvm::StringRef more) { return llvm::toString(readAs(more).takeError()); };
  EXPECT_THAT(
      llvm::toString(readAs("", 3).takeError()),
      HasSubstr("has 4 value heads of linear attention, not a multiple of its 3 key heads; correct "
                "\"linear_num_value_heads\" or \"linear_num_key_heads\""));
  EXPECT_THAT(problem(R"("full_attention_interval": 0)"), HasSubstr("full_attention_interval"));
  EXPECT_EQ(problem((R"("full_attention_interval": 5, )" + llvm::Twine(last)).str()), "");
  EXPECT_THAT(problem((R"("full_attention_interval": 2, )" + llvm::Twine(last)).str()),
              HasSubstr("has the layer type \"linear_attention\" for layer 1 in \"layer_types\", "
                        "which contradicts \"full_attention_interval\"; keep one of them"));
  EXPECT_THAT(problem(R"("linear_conv_kernel_dim": 33)"), HasSubstr("linear_conv_kernel_dim"));
  EXPECT_THAT(problem(R"("layer_types": ["mamba", "mamba", "mamba", "mamba", "mamba"])"),
              HasSubstr("only full_attention and linear_attention are supported"));
}

TEST(Qwen35, HasDeltaNetsAndGatedAttention) {
  auto readAs = [](llvm::StringRef type, llvm::StringRef architecture, llvm::StringRef more) {
    return asFamily(type, architecture,
                    (R"("linear_num_key_heads": 2, "linear_num_value_heads": 4, "rope_parameters":
                        {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [11, 11, 10],
                         "mrope_interleaved": true, "partial_rotary_factor": 0.5}, )" +
                     more)
                        .str());
  };
  auto model = readAs("qwen3_5_text", "Qwen3_5ForCausalLM",
                      R"("attn_output_gate": true, "mamba_ssm_dtype": "float32", "mlp_only_layers":
                         [], "mtp_num_hidden_layers": 1, "mtp_use_dedicated_embeddings": false)");
  ASSERT_TRUE(bool(model)) << llvm::toString(model.takeError());
  EXPECT_EQ(model->layers, (std::vector<unsigned>{0, 0, 0, 1, 0}));
  EXPECT_EQ(model->layerTypes[0].name, "dense_delta");
  EXPECT_EQ(model->layerTypes[0].mixer<DeltaNetConfig>()->channels(), 2 * 2 * 128 + 4 * 128);
  EXPECT_TRUE(model->layerTypes[1].attention.outputGate);
  EXPECT_EQ(model->layerTypes[1].attention.rope.dimensions, 128);
  EXPECT_EQ(model->names->layers, "model.layers");
  auto sparse = readAs("qwen3_5_moe_text", "Qwen3_5MoeForCausalLM",
                       R"("num_experts": 4, "num_experts_per_tok": 2, "intermediate_size": "absent",
                          "moe_intermediate_size": 8, "shared_expert_intermediate_size": 12)");
  ASSERT_TRUE(bool(sparse)) << llvm::toString(sparse.takeError());
  EXPECT_EQ(sparse->layerTypes[0].name, "sparse_delta");
  const auto &experts = std::get<SparseConfig>(sparse->layerTypes[0].ffn);
  EXPECT_TRUE(experts.normalize && experts.sharedGate);
  auto problem = [&](llvm::StringRef more) {
    return llvm::toString(readAs("qwen3_5_text", "Qwen3_5ForCausalLM", more).takeError());
  };
  EXPECT_THAT(problem(R"("attn_output_gate": false)"), HasSubstr("\"attn_output_gate\": false"));
  EXPECT_THAT(problem(R"("mlp_only_layers": [1])"), HasSubstr("\"mlp_only_layers\""));
}

/// A config of Qwen3.5 with a vision encoder, changed, and its text part, changed.
llvm::Expected<ModelConfig> asQwen35(llvm::StringRef changes,
                                     llvm::StringRef changesOfText = "{}") {
  llvm::json::Object text = changed(llamaText, changesOfText);
  if (text["model_type"] == llvm::json::Value("llama"))
    text["model_type"] = "qwen3_5_text";
  text.erase("architectures");
  llvm::json::Object config{{"model_type", "qwen3_5"},
                            {"architectures", {"Qwen3_5ForConditionalGeneration"}},
                            {"image_token_id", 7},
                            {"tie_word_embeddings", true},
                            {"vision_config", llvm::json::Object{{"depth", 2}}},
                            {"text_config", std::move(text)}};
  return configOf(llvm::formatv("{0}", llvm::json::Value(std::move(config))).str(), changes);
}

TEST(Qwen35, IsTheTextPartOfALargerModel) {
  auto model = asQwen35("{}", R"({"tie_word_embeddings": false, "torch_dtype": "bfloat16"})");
  ASSERT_TRUE(bool(model)) << llvm::toString(model.takeError());
  EXPECT_EQ(model->family, "qwen3_5");
  EXPECT_EQ(model->names->layers, "model.language_model.layers");
  EXPECT_TRUE(model->tiedHead) << "the outer key decides";
  EXPECT_EQ(model->type, StoredType::BF16);
  auto vision = llvm::find_if(model->ignored,
                              [](const IgnoredKey &key) { return key.key == "vision_config"; });
  ASSERT_NE(vision, model->ignored.end());
  EXPECT_TRUE(vision->missed) << "people are told";
  EXPECT_EQ(vision->reason, "describes an encoder, which the program omits: it reads text only");
  auto problem = [&](llvm::StringRef changes, llvm::StringRef ofText = "{}") {
    return llvm::toString(asQwen35(changes, ofText).takeError());
  };
  EXPECT_THAT(problem(R"({"text_config": "absent"})"),
              HasSubstr("has no object \"text_config\", which qwen3_5 needs; add it"));
  EXPECT_THAT(problem("{}", R"({"model_type": "qwen3"})"),
              HasSubstr("has \"text_config.model_type\": \"qwen3\", expected \"qwen3_5_text\""));
  EXPECT_THAT(problem("{}", R"({"alpha": 1})"), HasSubstr("has the key \"text_config.alpha\""));
  EXPECT_THAT(problem(R"({"alpha": 1})"), HasSubstr("has the key \"alpha\""));
  EXPECT_THAT(problem("{}", R"({"linear_num_value_heads": 24})"),
              HasSubstr("has 24 value heads of linear attention, not a multiple of its 16"));
}

TEST(Lfm2, HasExpertsAfterDenseLayers) {
  auto readAs = [](llvm::StringRef more) {
    return asFamily("lfm2_moe", "Lfm2MoeForCausalLM",
                    (R"("rms_norm_eps": "absent", "layer_types": ["conv", "conv", "full_attention",
                        "conv", "full_attention"], )" +
                     more)
                        .str());
  };
  auto model = readAs(R"("num_experts": 8)");
  ASSERT_TRUE(bool(model)) << llvm::toString(model.takeError());
  EXPECT_EQ(model->layers, (std::vector<unsigned>{0, 0, 1, 2, 1}));
  EXPECT_EQ(model->layerTypes[2].name, "sparse_conv");
  const auto &sparse = std::get<SparseConfig>(model->layerTypes[2].ffn);
  EXPECT_EQ(sparse.experts, 8);
  EXPECT_EQ(sparse.expert.inner, 1792);
  EXPECT_EQ(sparse.scoring, Scoring::Sigmoid);
  EXPECT_TRUE(sparse.normalize && sparse.correctionBias);
  auto plain = readAs(R"("num_experts": 8, "use_expert_bias": false, "norm_topk_prob": false)");
  ASSERT_TRUE(bool(plain)) << llvm::toString(plain.takeError());
  const auto &uncorrected = std::get<SparseConfig>(plain->layerTypes[2].ffn);
  EXPECT_FALSE(uncorrected.normalize || uncorrected.correctionBias);
  EXPECT_THAT(llvm::toString(readAs(R"("num_experts": 3)").takeError()),
              HasSubstr("chooses 4 experts per token of 3"));
  EXPECT_THAT(llvm::toString(readAs(R"("full_attn_idxs": [1])").takeError()),
              HasSubstr("\"full_attn_idxs\""))
      << "a key of the dense size alone";
}

TEST(Qwen3, MayHaveAWindow) {
  constexpr llvm::StringLiteral window =
      R"("use_sliding_window": true, "sliding_window": 16, "max_window_layers": 3)";
  auto model = asFamily("qwen3", "Qwen3ForCausalLM", window);
  ASSERT_TRUE(bool(model)) << llvm::toString(model.takeError());
  EXPECT_EQ(model->layers, (std::vector<unsigned>{0, 0, 0, 1, 1}));
  EXPECT_EQ(model->layerTypes[1].attention.window, 16);
  auto experts = configOf(qwen3MoeText, ("{" + window + "}").str());
  ASSERT_TRUE(bool(experts)) << llvm::toString(experts.takeError());
  EXPECT_EQ(experts->layerTypes.size(), 1u);
  EXPECT_EQ(experts->layerTypes[0].attention.window, 16);
}

TEST(Qwen3, NormsHeadsOfItsOwnSize) {
  auto model = configOf(llamaText, R"({"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"],
                                       "use_sliding_window": false, "sliding_window": null})");
  ASSERT_TRUE(bool(model));
  EXPECT_EQ(model->layerTypes[0].attention.qkNorm, QkNorm::PerHead);
  EXPECT_EQ(model->layerTypes[0].attention.headDim, 128);
}

TEST(Qwen3Moe, DescribesItsExperts) {
  auto model = configOf(qwen3MoeText);
  ASSERT_TRUE(bool(model));
  ASSERT_EQ(model->layerTypes.size(), 1u);
  EXPECT_EQ(model->layerTypes[0].name, "sparse");
  const SparseConfig &sparse = std::get<SparseConfig>(model->layerTypes[0].ffn);
  EXPECT_EQ(sparse.experts, 8);
  EXPECT_EQ(sparse.expertsPerToken, 2);
  EXPECT_TRUE(sparse.normalize);
  EXPECT_EQ(sparse.scoring, Scoring::Softmax);
  EXPECT_EQ(sparse.expert.inner, 32);
  EXPECT_EQ(sparse.sharedExperts, 0);
}

TEST(Qwen3Moe, MixesDenseAndSparseLayers) {
  auto layerTypesOf = [](llvm::StringRef changes) {
    auto model = llvm::cantFail(configOf(qwen3MoeText, changes));
    std::string names;
    for (unsigned kind : model.layers)
      names += model.layerTypes[kind].name[0];
    return names;
  };
  EXPECT_EQ(layerTypesOf("{}"), "ssss");
  EXPECT_EQ(layerTypesOf(R"({"mlp_only_layers": [0, 3]})"), "dssd");
  EXPECT_EQ(layerTypesOf(R"({"decoder_sparse_step": 2})"), "dsds");
  EXPECT_EQ(layerTypesOf(R"({"decoder_sparse_step": 2, "mlp_only_layers": [1]})"), "ddds");
}

TEST(Qwen3Moe, MayHaveNoExperts) {
  for (llvm::StringRef changes : {R"({"num_experts": 0})", R"({"decoder_sparse_step": 5})",
                                  R"({"mlp_only_layers": [0, 1, 2, 3]})"}) {
    auto model = configOf(qwen3MoeText, changes);
    ASSERT_TRUE(bool(model)) << llvm::toString(model.takeError());
    ASSERT_EQ(model->layerTypes.size(), 1u);
    EXPECT_EQ(model->layerTypes[0].name, "dense");
    EXPECT_EQ(std::get<DenseConfig>(model->layerTypes[0].ffn).inner, 96);
  }
}

TEST(Qwen3Moe, NormalizesASingleExpertToo) {
  auto model = configOf(qwen3MoeText, R"({"num_experts_per_tok": 1})");
  ASSERT_TRUE(bool(model));
  EXPECT_TRUE(std::get<SparseConfig>(model->layerTypes[0].ffn).normalize);
}

TEST(Qwen3Moe, ReadsBothNamesOfTheExpertCount) {
  EXPECT_EQ(problemOf(qwen3MoeText, R"({"num_experts": "absent", "num_local_experts": 8})"), "");
  EXPECT_EQ(problemOf(qwen3MoeText, R"({"num_local_experts": 8})"), "");
  EXPECT_THAT(problemOf(qwen3MoeText, R"({"num_local_experts": 4})"),
              HasSubstr("which contradicts \"num_experts\""));
  EXPECT_EQ(problemOf(qwen3MoeText, R"({"num_experts_per_tok": 9})"),
            "config.json: chooses 9 experts per token of 8; correct \"num_experts_per_tok\" or "
            "\"num_experts\"");
}

} // namespace
