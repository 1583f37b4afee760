// Models in GGUF files compute the same as models in folders.

#include "frontend/import/ModelInput.h"
#include "frontend/support/Json.h"
#include "ir/Interpreter/Npy.h"
#include "tests/unit/RandomBlocks.h"
#include "tests/unit/frontend/TestFolder.h"
#include "tests/unit/frontend/import/GgufFolder.h"
#include "tests/unit/frontend/import/GoldenModel.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/raw_ostream.h"

#include <random>

using namespace mica;
using namespace mica::test;
using testing::HasSubstr;

namespace {

namespace fs = std::filesystem;

std::vector<int64_t> prompt(size_t count, int64_t vocab = 64) {
  std::vector<int64_t> tokens;
  for (size_t i = 0; i < count; ++i)
    tokens.push_back((7 * i + 3) % vocab);
  return tokens;
}

/// The logits of a model for `tokens`; empty, with a failure, if it cannot be run.
std::vector<float> logitsOfModel(const std::string &path, llvm::ArrayRef<int64_t> tokens) {
  mlir::MLIRContext context;
  auto model = readModel(context, path);
  if (!model) {
    ADD_FAILURE() << messageOf(std::move(model));
    return {};
  }
  auto logits = logitsOf(*model, tokens, tokens.size());
  return logits ? *logits : std::vector<float>();
}

/// The text of stage `model`.
std::string irOf(const std::string &path) {
  mlir::MLIRContext context;
  auto model = llvm::cantFail(readModel(context, path));
  std::string text;
  llvm::raw_string_ostream(text) << *model.module;
  return text;
}

class GgufGolden : public testing::TestWithParam<std::string> {};

TEST_P(GgufGolden, LogitsMatchTheFolder) {
  std::string path = (goldens() / GetParam()).string();
  GgufFolder source(path);
  TestFolder folder;
  std::string file = folder.write("m.gguf", source.write().bytes());
  // Factors for long texts apply beyond 64 tokens.
  std::vector<int64_t> tokens = prompt(GetParam() == "phi3-longrope" ? 80 : 40);
  std::vector<float> wanted = logitsOfModel(path, tokens), got = logitsOfModel(file, tokens);
  EXPECT_LT(distance(got, wanted), 1e-5);
  // The attention scores of llama sum the elements of q and k in another order, and MiniMind's
  // norm, which is converted to Qwen3's, rounds differently.
  if (llvm::StringRef(GetParam()).starts_with("qwen3")) {
    EXPECT_EQ(got, wanted);
  }
}

std::vector<std::string> convertible() {
  std::vector<std::string> names;
  for (const auto &entry : fs::directory_iterator(goldens()))
    if (!GgufFolder(entry.path().string()).architecture().empty())
      names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

INSTANTIATE_TEST_SUITE_P(Models, GgufGolden, testing::ValuesIn(convertible()),
                         [](const auto &info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(Gguf, EveryKindOfGoldenIsConverted) { EXPECT_GE(convertible().size(), 20u); }

TEST(Gguf, RowsOfLlamaAreInterleaved) {
  TestFolder folder;
  std::string file = folder.write(
      "m.gguf", GgufFolder((goldens() / "llama-rope-llama3").string()).write().bytes());
  std::string text = irOf(file);
  EXPECT_THAT(text, HasSubstr("interleaved theta(1.000000e+04) scaling(#mica.llama3_scaling<factor "
                              "= 8.000000e+00 : f64, low_freq_factor = 1.000000e+00 : f64, "
                              "high_freq_factor = 4.000000e+00 : f64, original_context = 128>)"));
  EXPECT_THAT(text, HasSubstr("eps(1.000000e-05)")) << "and not what f32 makes of it";
  EXPECT_THAT(text, HasSubstr("module @m"));
}

/// A folder and a GGUF file of a small Qwen3 whose matrices are random blocks of a type.
class BlockModel {
public:
  explicit BlockModel(const TensorType &type) : type(type) {
    add("model.embed_tokens.weight", "token_embd.weight", 64, hidden);
    vector("model.norm.weight", "output_norm.weight", hidden);
    std::string from = "model.layers.0.", to = "blk.0.";
    vector(from + "input_layernorm.weight", to + "attn_norm.weight", hidden);
    vector(from + "post_attention_layernorm.weight", to + "ffn_norm.weight", hidden);
    vector(from + "self_attn.q_norm.weight", to + "attn_q_norm.weight", 64);
    vector(from + "self_attn.k_norm.weight", to + "attn_k_norm.weight", 64);
    add(from + "self_attn.q_proj.weight", to + "attn_q.weight", hidden, hidden);
    add(from + "self_attn.k_proj.weight", to + "attn_k.weight", 128, hidden);
    add(from + "self_attn.v_proj.weight", to + "attn_v.weight", 128, hidden);
    add(from + "self_attn.o_proj.weight", to + "attn_output.weight", hidden, hidden);
    add(from + "mlp.gate_proj.weight", to + "ffn_gate.weight", hidden, hidden);
    add(from + "mlp.up_proj.weight", to + "ffn_up.weight", hidden, hidden);
    add(from + "mlp.down_proj.weight", to + "ffn_down.weight", hidden, hidden);
    file.string("general.architecture", "qwen3").u32("general.quantization_version", 2);
    file.u32("qwen3.context_length", 128).u32("qwen3.embedding_length", hidden);
    file.u32("qwen3.block_count", 1).u32("qwen3.feed_forward_length", hidden);
    file.u32("qwen3.attention.head_count", 4).u32("qwen3.attention.head_count_kv", 2);
    file.u32("qwen3.attention.key_length", 64);
    file.f32("qwen3.attention.layer_norm_rms_epsilon", 1e-6f).f32("qwen3.rope.freq_base", 1e6f);
  }
  std::string writeFile(const TestFolder &folder) const {
    return folder.write("blocks.gguf", file.bytes());
  }
  std::string writeFolder(const TestFolder &folder) const {
    folder.write("plain/config.json", R"({"model_type": "qwen3", "hidden_size": 256,
      "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64,
      "vocab_size": 64, "intermediate_size": 256, "max_position_embeddings": 128,
      "rms_norm_eps": 1e-6, "rope_theta": 1e6, "tie_word_embeddings": true})");
    folder.write("plain/model.safetensors", safetensors(tensors));
    return folder.path("plain");
  }

private:
  static constexpr int64_t hidden = 256;

  void add(const std::string &name, const std::string &fileName, int64_t rows, int64_t columns) {
    int64_t count = rows * columns / type.elements;
    std::vector<uint8_t> blocks =
        randomBlocks(*type.format, count, static_cast<uint32_t>(random()));
    std::string plain(rows * columns * sizeof(float), '\0');
    decodeBlocks(type, blocks.data(), count, reinterpret_cast<float *>(plain.data()));
    file.tensor(fileName, {rows, columns}, std::string(blocks.begin(), blocks.end()), type.number);
    tensors.push_back({name, {rows, columns}, "F32", plain});
  }
  void vector(const std::string &name, const std::string &fileName, int64_t size) {
    std::vector<float> values;
    for (int64_t i = 0; i < size; ++i)
      values.push_back(0.5f + float(random() % 1000) / 1000);
    file.floats(fileName, {size}, values);
    tensors.push_back({name,
                       {size},
                       "F32",
                       std::string(reinterpret_cast<const char *>(values.data()), 4 * size)});
  }

  const TensorType &type;
  std::mt19937 random{11};
  GgufWriter file;
  std::vector<Tensor> tensors;
};

class GgufBlocks : public testing::TestWithParam<const TensorType *> {};

TEST_P(GgufBlocks, LogitsEqualThoseOfDequantizedWeights) {
  BlockModel model(*GetParam());
  TestFolder folder;
  std::vector<float> wanted = logitsOfModel(model.writeFolder(folder), prompt(6)),
                     got = logitsOfModel(model.writeFile(folder), prompt(6));
  ASSERT_FALSE(wanted.empty());
  EXPECT_TRUE(std::isfinite(wanted.front()));
  EXPECT_EQ(got, wanted);
}

INSTANTIATE_TEST_SUITE_P(Types, GgufBlocks, testing::ValuesIn(blockTypes()),
                         [](const auto &info) { return info.param->name.str(); });

/// The file of a golden, to be modified.
class GgufRefusal : public testing::Test {
protected:
  explicit GgufRefusal(const char *name = "qwen3-dense")
      : file(GgufFolder((goldens() / name).string()).write()) {}
  std::string problem() {
    mlir::MLIRContext context;
    return messageOf(readModel(context, folder.write("m.gguf", file.bytes())));
  }
  /// Replaces `from` by `to`, which has the same length.
  void replace(std::string &in, const std::string &from, const std::string &to) {
    size_t at = in.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    in.replace(at, from.size(), to);
  }

  /// Replaces a tensor by zeros of a type, after all others; its data get another name.
  void restore(const std::string &name, const std::vector<int64_t> &shape, size_t bytes,
               uint32_t type) {
    replace(file.entries, name, "x" + name.substr(1));
    file.tensor(name, shape, std::string(bytes, 0), type);
  }

  TestFolder folder;
  GgufWriter file;
};

TEST_F(GgufRefusal, NamesTensorsByTheFilesNames) {
  GgufWriter whole = file;
  replace(file.entries, "blk.0.attn_q.weight", "blk.0.attn_x.weight");
  EXPECT_THAT(problem(), HasSubstr("tensor \"blk.0.attn_q.weight\" [64, 32] is missing"));
  file = whole;
  file.floats("blk.0.attn_rot.weight", {1}, {1});
  EXPECT_THAT(problem(),
              HasSubstr("tensor \"blk.0.attn_rot.weight\" [1] does not belong to qwen3"));
  file = whole;
  file.floats("blk.00.attn_q.weight", {1}, {1});
  EXPECT_THAT(problem(), HasSubstr("tensor \"blk.00.attn_q.weight\" [1] does not belong to qwen3"));
  file = whole;
  file.floats("model.norm.weight", {1}, {1});
  EXPECT_THAT(problem(), HasSubstr("holds tensor \"output_norm.weight\", which"));
}

TEST_F(GgufRefusal, RefusesTypesAndShapes) {
  std::string entry = GgufWriter::raw("output_norm.weight") + GgufWriter::raw<uint32_t>(1) +
                      GgufWriter::raw<uint64_t>(32) + GgufWriter::raw<uint32_t>(0);
  GgufWriter whole = file;
  restore("output_norm.weight", {32}, 34, 8); // Q8_0
  EXPECT_THAT(problem(),
              HasSubstr("tensor \"output_norm.weight\" is a vector of type Q8_0, but only "
                        "matrices may be in blocks; convert it to F32"));
  file = whole;
  std::string other = entry;
  other[other.size() - 4] = 26; // I32
  replace(file.entries, entry, other);
  EXPECT_THAT(problem(), HasSubstr("tensor \"output_norm.weight\" has the type I32, only F64"));
  file = whole;
  other = entry;
  other[other.size() - 12] = 31;
  replace(file.entries, entry, other);
  EXPECT_THAT(problem(),
              HasSubstr("tensor \"output_norm.weight\" has the shape [31], expected [32]"));
}

TEST_F(GgufRefusal, RejectsUnsupportedBlocks) {
  restore("token_embd.weight", {64, 32}, 64 * 40, 9); // Q8_1
  EXPECT_THAT(problem(), HasSubstr("tensor \"token_embd.weight\" has the type Q8_1, only F32, F16, "
                                   "BF16, Q4_0"));
}

TEST(GgufInput, ReportsTheStoredType) {
  TestFolder folder;
  mlir::MLIRContext context;
  auto input =
      llvm::cantFail(readModel(context, BlockModel(*tensorTypeNumbered(12)).writeFile(folder)));
  ASSERT_TRUE(input.storage.has_value());
  EXPECT_EQ(input.storage->type, "Q4_K");
  EXPECT_EQ(input.storage->bits, 4.5);
}

} // namespace
