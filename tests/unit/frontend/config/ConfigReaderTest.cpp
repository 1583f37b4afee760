#include "tests/unit/frontend/config/ConfigText.h"

using namespace mica;
using namespace mica::test;
using testing::HasSubstr;
using testing::MatchesRegex;

namespace {

std::string llamaProblem(llvm::StringRef changes) { return problemOf(llamaText, changes); }

TEST(ConfigReader, RefusesUnknownKeysByName) {
  EXPECT_EQ(llamaProblem(R"({"attention_magic": 3})"),
            "config.json: has the key \"attention_magic\", which is unknown for llama and could "
            "change what the "
            "model computes; remove it if it does not");
}

TEST(ConfigReader, NamesTheFirstOfSeveralWrongKeys) {
  EXPECT_THAT(llamaProblem(R"({"zzz": 1, "aaa": 2, "mmm": 3})"), HasSubstr("\"aaa\""));
}

TEST(ConfigReader, ListsIrrelevantKeysWithReasons) {
  auto model = configOf(llamaText, R"({"use_cache": true, "attention_dropout": 0.5})");
  ASSERT_TRUE(bool(model));
  std::vector<std::string> keys;
  for (const IgnoredKey &ignored : model->ignored)
    keys.push_back(ignored.key);
  EXPECT_THAT(keys, testing::ElementsAre("attention_dropout", "use_cache"));
  EXPECT_EQ(model->ignored[0].reason, "only affects training");
}

TEST(ConfigReader, KeyIrrelevantForOneTypeIsUnknownForAnother) {
  EXPECT_EQ(problemOf(qwen3MoeText, R"({"max_window_layers": 2})"), "");
  EXPECT_EQ(problemOf(qwen3MoeText, R"({"max_window_layers": null})"), "");
  EXPECT_THAT(llamaProblem(R"({"max_window_layers": 2})"),
              HasSubstr("has the key \"max_window_layers\""));
}

TEST(ConfigReader, AcceptsFixedKeysWithTheirValuesOnly) {
  EXPECT_EQ(llamaProblem(
                R"({"pretraining_tp": 1, "rope_interleaved": false, "quantization_config": null})"),
            "");
  EXPECT_EQ(llamaProblem(R"({"pretraining_tp": 2})"),
            "config.json: has \"pretraining_tp\": 2, expected one of [1,null] (nothing else is "
            "supported); correct it");
  EXPECT_THAT(llamaProblem(R"({"rope_interleaved": true})"),
              HasSubstr("\"rope_interleaved\": true"));
  EXPECT_THAT(llamaProblem(R"({"sliding_window": 4096})"), HasSubstr("\"sliding_window\": 4096"));
  EXPECT_THAT(
      llamaProblem(R"({"quantization_config": {"bits": 4}})"),
      HasSubstr("\"quantization_config\": the checkpoint is quantized, which is not supported"));
  EXPECT_EQ(
      llamaProblem(R"({"quantization_config": {"quant_method": "gptq"}})"),
      "config.json: \"quantization_config\": the checkpoint is quantized by \"gptq\", which is not "
      "supported; "
      "use the model's original checkpoint with --weights int4 or int8, or a GGUF file of it");
  EXPECT_THAT(llamaProblem(R"({"quantization_config": "gptq"})"),
              HasSubstr("the checkpoint is quantized by \"gptq\""));
  EXPECT_THAT(llamaProblem(R"({"compression_config": {"format": "pack-quantized"}})"),
              HasSubstr("\"compression_config\": the checkpoint is quantized by "
                        "\"compressed-tensors\", which is not supported"));
  EXPECT_THAT(llamaProblem(R"({"compression_config": {"quant_method": "sparseml"}})"),
              HasSubstr("the checkpoint is quantized by \"sparseml\", which is not supported"));
  for (const char *bits : {"load_in_8bit", "load_in_4bit"}) {
    std::string key = R"({"quantization_config": {")" + std::string(bits) + "\": ";
    EXPECT_THAT(llamaProblem(key + "true}}"),
                HasSubstr("\"quantization_config\": the checkpoint is quantized by "
                          "\"bitsandbytes\", which is not supported"));
    EXPECT_THAT(llamaProblem(key + "false}}"),
                HasSubstr("the checkpoint is quantized, which is not supported"));
  }
  EXPECT_EQ(llamaProblem(R"({"compression_config": null, "quantization": null})"), "");
  EXPECT_EQ(
      llamaProblem(R"({"quantization": {"group_size": 64, "bits": 4}})"),
      "config.json: \"quantization\": the checkpoint is quantized by \"MLX\", which is not "
      "supported; "
      "use the model's original checkpoint with --weights int4 or int8, or a GGUF file of it");
  EXPECT_THAT(
      llamaProblem(R"({"quantization_config": {"quant_method": "mxfp4"}})"),
      HasSubstr("the checkpoint is quantized by \"mxfp4\", which is not supported for llama; "
                "use the model's original checkpoint"));
  for (const char *method : {"awq", "fp8", "compressed-tensors", "bitsandbytes"})
    EXPECT_THAT(llamaProblem(R"({"quantization_config": {"quant_method": ")" + std::string(method) +
                             R"("}})"),
                HasSubstr("the checkpoint is quantized by \"" + std::string(method) + "\""));
}

TEST(ConfigReader, RefusesUnknownModelTypes) {
  EXPECT_THAT(
      llamaProblem(R"({"model_type": "rwkv7"})"),
      MatchesRegex("config.json: has the model_type \"rwkv7\", which is unknown; choose a model of "
                   "one of the types .*, llama, mamba2, .*qwen3, qwen3_5.*, qwen3_moe.*"));
  for (auto [type, nearest] : std::initializer_list<std::pair<llvm::StringRef, llvm::StringRef>>{
           {"qwen4", "qwen3"},
           {"gemma3", "gemma3_text"},
           {"deepseek_v32", "deepseek_v3"},
           {"deepseek_v4", "deepseek_v3"},
           {"phi", "phi3"},
           {"olmo3", "olmo2"},
           {"GPT2", "gpt2"},
           {"granitemoe", "granite"}})
    EXPECT_THAT(
        llamaProblem(("{\"model_type\": \"" + type + "\"}").str()),
        HasSubstr(("has the model_type \"" + type + "\", which is unknown (the nearest is \"" +
                   nearest + "\"); choose a model of one of the types ")
                      .str()));
  EXPECT_THAT(llamaProblem(R"({"model_type": "absent"})"),
              HasSubstr("has no key \"model_type\"; add one of "));
  EXPECT_THAT(llamaProblem(R"({"model_type": 3})"), HasSubstr("has the model_type 3"));
}

TEST(ConfigReader, RefusesOtherHeads) {
  EXPECT_THAT(llamaProblem(R"({"architectures": ["LlamaForSequenceClassification"]})"),
              HasSubstr("has \"architectures\": [\"LlamaForSequenceClassification\"], but only "
                        "LlamaForCausalLM is supported for llama; use a causal language model"));
  EXPECT_THAT(problemOf(miniMind3Text, R"({"architectures": ["Other"]})"),
              HasSubstr("has \"architectures\": [\"Other\"], but only MiniMindLM and "
                        "MiniMindForCausalLM are supported for minimind (generation 3); "
                        "use a causal language model"));
  EXPECT_THAT(llamaProblem(R"({"architectures": "LlamaForCausalLM"})"),
              HasSubstr("\"architectures\""));
  EXPECT_EQ(llamaProblem(R"({"architectures": null})"), "");
}

TEST(ConfigReader, NamesMissingKeys) {
  for (llvm::StringRef key : {"hidden_size", "num_hidden_layers", "num_attention_heads",
                              "vocab_size", "intermediate_size", "max_position_embeddings"})
    EXPECT_EQ(llamaProblem(("{\"" + key + "\": \"absent\"}").str()),
              ("config.json: has no key \"" + key + "\", which llama needs; add it").str());
}

TEST(ConfigReader, RefusesAbsurdNumbers) {
  EXPECT_EQ(llamaProblem(R"({"hidden_size": -64})"),
            "config.json: has \"hidden_size\": -64, expected an integer from 1 to 1048576; "
            "correct it");
  EXPECT_THAT(llamaProblem(R"({"hidden_size": 9223372036854775807})"),
              HasSubstr("9223372036854775807"));
  EXPECT_THAT(llamaProblem(R"({"hidden_size": 18446744073709551615})"),
              HasSubstr("\"hidden_size\""));
  EXPECT_THAT(llamaProblem(R"({"hidden_size": 1e300})"), HasSubstr("\"hidden_size\""));
  EXPECT_THAT(llamaProblem(R"({"hidden_size": 64.5})"), HasSubstr("\"hidden_size\": 64.5"));
  EXPECT_THAT(llamaProblem(R"({"hidden_size": "64"})"), HasSubstr("\"hidden_size\": \"64\""));
  EXPECT_THAT(llamaProblem(R"({"hidden_size": true})"), HasSubstr("\"hidden_size\": true"));
  EXPECT_THAT(llamaProblem(R"({"hidden_size": null})"), HasSubstr("\"hidden_size\": null"));
  EXPECT_THAT(llamaProblem(R"({"num_attention_heads": 0})"),
              HasSubstr("\"num_attention_heads\": 0"));
  EXPECT_THAT(llamaProblem(R"({"num_hidden_layers": 100000})"), HasSubstr("from 1 to 4096"));
  EXPECT_THAT(llamaProblem(R"({"rms_norm_eps": 0})"),
              HasSubstr("\"rms_norm_eps\": 0, expected a number from"));
  EXPECT_THAT(llamaProblem(R"({"rms_norm_eps": -1e-5})"), HasSubstr("\"rms_norm_eps\""));
  EXPECT_THAT(llamaProblem(R"({"rope_theta": 1})"), HasSubstr("\"rope_theta\": 1"));
  EXPECT_THAT(llamaProblem(R"({"tie_word_embeddings": "yes"})"),
              HasSubstr("expected true or false"));
  EXPECT_THAT(llamaProblem(R"({"rope_scaling": 4})"), HasSubstr("expected an object"));
}

TEST(ConfigReader, RefusesHeadsThatDoNotFit) {
  EXPECT_THAT(llamaProblem(R"({"num_key_value_heads": 3})"),
              HasSubstr("has 8 attention heads, not a multiple of its 3 key/value heads"));
  EXPECT_THAT(llamaProblem(R"({"num_key_value_heads": 16})"),
              HasSubstr("not a multiple of its 16 key"));
  EXPECT_THAT(
      llamaProblem(R"({"hidden_size": 60})"),
      HasSubstr("has the hidden size 60, not a multiple of its 8 heads, and no key \"head_dim\"; "
                "add it"));
  EXPECT_THAT(llamaProblem(R"({"head_dim": 9})"),
              HasSubstr("has the head size 9, but rope rotates pairs: it must be even"));
  EXPECT_THAT(llamaProblem(R"({"hidden_size": 72})"), HasSubstr("has the head size 9"));
}

TEST(ConfigReader, BoundsTheExpertsInAll) {
  EXPECT_EQ(problemOf(qwen3MoeText, R"({"num_experts": 512, "num_hidden_layers": 512})"), "");
  EXPECT_THAT(
      problemOf(qwen3MoeText, R"({"num_experts": 513, "num_hidden_layers": 512})"),
      HasSubstr("has 513 experts in each of 512 layers, at most 262144 in total are supported"));
}

TEST(ConfigReader, TakesNullForAbsenceOnlyWhereTheFamilyDoes) {
  for (llvm::StringRef key : {"num_key_value_heads", "head_dim", "rope_scaling", "layer_types",
                              "torch_dtype", "bos_token_id", "eos_token_id"})
    EXPECT_EQ(llamaProblem(("{\"" + key + "\": null}").str()), "") << key.str();
  for (llvm::StringRef key : {"hidden_act", "rope_theta", "hidden_size", "rms_norm_eps",
                              "tie_word_embeddings", "attention_bias", "mlp_bias"})
    EXPECT_THAT(llamaProblem(("{\"" + key + "\": null}").str()),
                HasSubstr(("has \"" + key + "\": null, expected").str()));
  for (llvm::StringRef key : {"num_experts", "num_experts_per_tok", "norm_topk_prob"})
    EXPECT_THAT(problemOf(qwen3MoeText, ("{\"" + key + "\": null}").str()),
                HasSubstr(("has \"" + key + "\": null, expected").str()));
}

TEST(ConfigReader, ReadsTheTypeUnderBothNames) {
  auto typeOf = [](llvm::StringRef changes) {
    return llvm::cantFail(configOf(llamaText, changes)).type;
  };
  EXPECT_EQ(typeOf("{}"), StoredType::F32);
  EXPECT_EQ(typeOf(R"({"torch_dtype": "bfloat16"})"), StoredType::BF16);
  EXPECT_EQ(typeOf(R"({"torch_dtype": "absent", "dtype": "float16"})"), StoredType::F16);
  EXPECT_EQ(typeOf(R"({"torch_dtype": "absent"})"), std::nullopt);
  EXPECT_THAT(llamaProblem(R"({"dtype": "bfloat16"})"),
              HasSubstr("has \"torch_dtype\": \"float32\", which contradicts \"dtype\"; keep one "
                        "of them"));
  EXPECT_THAT(
      llamaProblem(R"({"torch_dtype": "float8_e4m3fn"})"),
      HasSubstr("has the weight type \"float8_e4m3fn\", only float32, bfloat16 and float16 are "
                "supported; convert the weights to one of them"));
}

TEST(ConfigReader, ReadsLayerTypes) {
  auto five = [](llvm::StringRef last) {
    return (R"({"layer_types": ["full_attention","full_attention","full_attention","full_attention",")" +
            last + "\"]}")
        .str();
  };
  EXPECT_EQ(llamaProblem(five("full_attention")), "");
  EXPECT_THAT(llamaProblem(five("sliding_attention")),
              HasSubstr("has the layer type \"sliding_attention\" in \"layer_types\", only "
                        "full_attention is supported"));
  EXPECT_THAT(llamaProblem(R"({"layer_types": ["full_attention"]})"),
              HasSubstr("has 1 \"layer_types\" for 5 layers; list one for each layer"));
}

TEST(ConfigReader, ReadsEndTokens) {
  auto eosOf = [](llvm::StringRef changes) {
    return llvm::cantFail(configOf(llamaText, changes)).generation.eos;
  };
  EXPECT_THAT(eosOf("{}"), testing::ElementsAre(2));
  EXPECT_THAT(eosOf(R"({"eos_token_id": [7, 3, 7]})"), testing::ElementsAre(3, 7));
  EXPECT_THAT(eosOf(R"({"eos_token_id": null})"), testing::IsEmpty());
  EXPECT_THAT(llamaProblem(R"({"eos_token_id": 512})"),
              HasSubstr("names the token 512 as BOS or EOS, but the vocabulary has 512; "
                        "use an id of the vocabulary"));
  EXPECT_THAT(llamaProblem(R"({"bos_token_id": -1})"), HasSubstr("\"bos_token_id\": -1"));
}

TEST(ConfigReader, ReadsFoldersAndTheirFaults) {
  TestFolder folder;
  EXPECT_THAT(messageOf(readModelConfig(folder.path(), nullptr)),
              HasSubstr("config.json: cannot be read"));
  folder.write("config.json", "{\"model_type\": \"llama\", \"rms_norm_eps\": NaN}");
  EXPECT_THAT(messageOf(readModelConfig(folder.path(), nullptr)),
              HasSubstr("near key \"rms_norm_eps\""));
  folder.write("config.json", llamaText.str());
  EXPECT_EQ(messageOf(readModelConfig(folder.path(), nullptr)), "");
  folder.write("generation_config.json", R"({"temperature": 0.7, "eos_token_id": [3, 2]})");
  auto model = readModelConfig(folder.path(), nullptr);
  ASSERT_TRUE(bool(model));
  EXPECT_EQ(model->generation.temperature, 0.7);
  EXPECT_THAT(model->generation.eos, testing::ElementsAre(2, 3));
}

} // namespace
