#include "tests/unit/Paths.h"
#include "tests/unit/frontend/config/ConfigText.h"

#include <filesystem>
#include <map>

using namespace mica;
using namespace mica::test;
using testing::HasSubstr;

namespace {

/// Keys and values of published config.json files, which have more keys than goldens: those of
/// their authors' code, and of older versions of transformers.
TEST(Published, ConfigsAreRead) {
  struct Row {
    const char *family;
    size_t layers, layerTypes;
  };
  const std::map<std::string, Row> rows = {
      {"bamba-9b", {"bamba", 32, 2}},
      {"falcon-h1-0.5b", {"falcon_h1", 36, 1}},
      {"gemma4-31b", {"gemma4", 60, 2}},
      {"granite-4.0-h-micro", {"granitemoehybrid", 40, 2}},
      {"lfm2-1.2b", {"lfm2", 16, 2}},
      {"lfm2-8b-a1b", {"lfm2_moe", 24, 3}},
      {"llama-3.2-1b", {"llama", 16, 1}},
      {"mamba-codestral-7b", {"mamba2", 64, 1}},
      {"nemotron-3-nano-30b-a3b", {"nemotron_h", 52, 3}},
      {"qwen3-0.6b", {"qwen3", 28, 1}},
      {"qwen3-30b-a3b", {"qwen3_moe", 48, 1}},
      {"qwen3-next-80b-a3b", {"qwen3_next", 48, 2}},
      {"qwen3.5-27b", {"qwen3_5", 64, 2}},
      {"qwen3.5-35b-a3b", {"qwen3_5_moe", 40, 2}},
      {"qwen3.6-27b", {"qwen3_5", 64, 2}},
      {"smollm2-135m", {"llama", 30, 1}},
  };
  size_t numRead = 0;
  for (auto &entry : std::filesystem::directory_iterator(MICA_SOURCE_DIR "/tests/data/configs")) {
    std::string name = entry.path().stem().string();
    auto row = rows.find(name);
    ASSERT_NE(row, rows.end()) << name << " has no row";
    auto config = readJsonObject(entry.path().string());
    ASSERT_TRUE(bool(config)) << llvm::toString(config.takeError());
    auto model = modelConfigFrom(*config, name, nullptr);
    ASSERT_TRUE(bool(model)) << llvm::toString(model.takeError());
    EXPECT_EQ(model->family, row->second.family) << name;
    EXPECT_EQ(model->layers.size(), row->second.layers) << name;
    EXPECT_EQ(model->layerTypes.size(), row->second.layerTypes) << name;
    ++numRead;
  }
  EXPECT_EQ(numRead, rows.size());
}

/// Keys of published files that must have a certain value, because another would change results.
TEST(Published, OtherValuesAreRefused) {
  auto problem = [](const std::string &name, llvm::StringRef key, llvm::json::Value value) {
    llvm::json::Object config = llvm::cantFail(
        readJsonObject(std::string(MICA_SOURCE_DIR "/tests/data/configs/") + name + ".json"));
    llvm::json::Object *text = config.getObject("text_config");
    (text ? *text : config)[key] = std::move(value);
    return messageOf(modelConfigFrom(config, name, nullptr));
  };
  EXPECT_EQ(problem("qwen3.6-27b", "output_gate_type", "silu"), "");
  EXPECT_THAT(problem("qwen3.6-27b", "output_gate_type", "sigmoid"),
              HasSubstr("has \"text_config.output_gate_type\": \"sigmoid\", expected one of "
                        "[\"silu\",\"swish\"]"));
  EXPECT_THAT(problem("falcon-h1-0.5b", "attn_layer_indices", llvm::json::Array{1}),
              HasSubstr("has \"attn_layer_indices\": [1], expected one of [null]"));
  EXPECT_THAT(problem("mamba-codestral-7b", "rms_norm", false), HasSubstr("\"rms_norm\": false"));
}

} // namespace
