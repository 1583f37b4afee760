// The multi-token prediction head of Qwen's models, run by the interpreter.

#include "frontend/import/ModelInput.h"
#include "frontend/support/Json.h"
#include "ir/Interpreter/Npy.h"
#include "ir/Mica/EntrySignature.h"
#include "tests/unit/frontend/import/GoldenModel.h"
#include "tests/unit/frontend/import/ModelFolder.h"
#include "tools/support/CheckpointWeights.h"

#include <cstring>

using namespace mica;
using namespace mica::test;
using namespace mlir;
using testing::HasSubstr;

namespace {

constexpr const char *goldens = MICA_SOURCE_DIR "/tests/goldens/mtp/";
constexpr const char *golden = MICA_SOURCE_DIR "/tests/goldens/mtp/qwen3-5";

interp::Value indices(MLIRContext &context, const std::vector<int64_t> &values) {
  interp::Tensor tensor =
      interp::Tensor::zeros(IntegerType::get(&context, 32), {int64_t(values.size())});
  tensor.ints.assign(values.begin(), values.end());
  return tensor;
}

/// A step of the model or of its head with rows of one sequence.
class Steps {
public:
  Steps(const ModelInput &model, int64_t positions)
      : module(const_cast<OwningOpRef<ModuleOp> &>(model.module).get()),
        interpreter(module, [&model, this](llvm::StringRef name) {
          return storedTensor(*model.weights, name, module.getContext());
        }) {
    auto main = module.lookupSymbol<func::FuncOp>("main");
    for (BlockArgument state : EntrySignature(main).states())
      states.push_back(
          interp::Value::makeCache(llvm::cast<SequenceState>(state.getType()), 1, positions));
  }

  /// The logits of all rows; `hidden` is replaced.
  std::vector<float> run(llvm::StringRef name, const std::vector<int64_t> &tokens, int64_t first,
                         interp::Tensor &hidden) {
    auto entry = module.lookupSymbol<func::FuncOp>(name);
    EntrySignature signature(entry);
    std::vector<int64_t> zeros(tokens.size()), rows, positions;
    for (size_t i = 0; i < tokens.size(); ++i) {
      rows.push_back(int64_t(i));
      positions.push_back(first + int64_t(i));
    }
    llvm::SmallVector<interp::Value> arguments(entry.getNumArguments());
    auto give = [&](EntryRole role, const std::vector<int64_t> &values) {
      arguments[signature.argument(role).getArgNumber()] = indices(*module.getContext(), values);
    };
    give(EntryRole::Tokens, tokens);
    give(EntryRole::Sequences, zeros);
    give(EntryRole::Positions, positions);
    give(EntryRole::LogitIndices, rows);
    arguments[signature.hidden().getArgNumber()] = interp::Value(hidden);
    for (auto [argument, state] : llvm::zip_equal(signature.states(), states))
      arguments[argument.getArgNumber()] = state;
    auto results = llvm::cantFail(interpreter.run(entry, arguments));
    for (auto [state, next] : llvm::zip_equal(states, signature.stateResults()))
      state = results[next].clone();
    hidden = *results[*signature.result(EntryRole::Hidden)].getTensor();
    return results[*signature.result(EntryRole::Logits)].getTensor()->floats;
  }

private:
  ModuleOp module;
  interp::Interpreter interpreter;
  llvm::SmallVector<interp::Value> states;
};

struct Golden {
  explicit Golden(const std::string &golden) {
    auto object = llvm::cantFail(readJsonObject(golden + "/golden.json"));
    for (const llvm::json::Value &token : *object.getArray("prompt"))
      prompt.push_back(*token.getAsInteger());
    for (const llvm::json::Value &token : *object.getArray("greedy"))
      greedy.push_back(*token.getAsInteger());
    for (const llvm::json::Value &token : *object.getArray("drafts")->front().getAsArray())
      draft.push_back(*token.getAsInteger());
    auto array = llvm::cantFail(interp::readNpy(golden + "/golden.mtp_logits.npy"));
    logits.resize(array.bytes.size() / sizeof(float));
    std::memcpy(logits.data(), array.bytes.data(), array.bytes.size());
  }
  std::vector<int64_t> prompt, greedy, draft;
  std::vector<float> logits;
};

interp::Tensor zeroRows(MLIRContext &context, size_t rows, int64_t width) {
  return interp::Tensor::zeros(Float32Type::get(&context), {int64_t(rows), width});
}

interp::Tensor rowsOf(const interp::Tensor &all, size_t first, size_t count, int64_t width) {
  interp::Tensor rows = all;
  rows.floats.assign(all.floats.begin() + int64_t(first) * width,
                     all.floats.begin() + int64_t(first + count) * width);
  rows.shape[0] = int64_t(count);
  return rows;
}

/// The names of all goldens.
std::vector<std::string> names() {
  std::vector<std::string> found;
  for (const auto &entry : std::filesystem::directory_iterator(goldens))
    found.push_back(entry.path().filename().string());
  llvm::sort(found);
  return found;
}

/// A checkpoint with a head.
class MtpHeads : public testing::TestWithParam<std::string> {
protected:
  std::string folder = goldens + GetParam();
  Golden expected{folder};
};

/// Logits of the head for a prompt, in chunks with its cache, then tokens that continue with its
/// own hidden states.
TEST_P(MtpHeads, EqualTheReference) {
  constexpr int64_t width = 24;
  for (size_t chunk : {size_t(1), size_t(7), size_t(39)}) {
    MLIRContext context;
    auto model = llvm::cantFail(readModel(context, folder, WeightsNeeded::Yes, MtpHead::Kept));
    Steps steps(model, 64);
    size_t count = expected.prompt.size();
    interp::Tensor all = zeroRows(context, count, width);
    steps.run("main", expected.prompt, 0, all);
    std::vector<float> logits;
    for (size_t first = 0; first + 1 < count; first += chunk) {
      size_t rows = std::min(chunk, count - 1 - first);
      interp::Tensor hidden = rowsOf(all, first, rows, width);
      auto next = expected.prompt.begin() + int64_t(first) + 1;
      llvm::append_range(logits,
                         steps.run("draft", {next, next + int64_t(rows)}, int64_t(first), hidden));
    }
    EXPECT_LT(distance(logits, expected.logits), 1e-5);
    interp::Tensor hidden = rowsOf(all, count - 1, 1, width);
    std::vector<int64_t> drafted;
    int64_t token = expected.greedy.front();
    for (size_t i = 0; i < expected.draft.size(); ++i) {
      std::vector<float> row = steps.run("draft", {token}, int64_t(count - 1 + i), hidden);
      token = std::max_element(row.begin(), row.end()) - row.begin();
      drafted.push_back(token);
    }
    EXPECT_EQ(drafted, expected.draft);
  }
}

/// The model itself has the same logits with its head.
TEST_P(MtpHeads, LeaveTheModelAsItIs) {
  MLIRContext context;
  auto with = llvm::cantFail(readModel(context, folder, WeightsNeeded::Yes, MtpHead::Kept));
  auto without = llvm::cantFail(readModel(context, folder));
  EXPECT_FALSE(without.module->lookupSymbol("draft"));
  EXPECT_GT(without.ignoredTensors.size(), with.ignoredTensors.size());
  Steps steps(with, 64);
  interp::Tensor hidden = zeroRows(context, expected.prompt.size(), 24);
  EXPECT_EQ(steps.run("main", expected.prompt, 0, hidden),
            llvm::cantFail(logitsOf(without, expected.prompt, expected.prompt.size())));
}

INSTANTIATE_TEST_SUITE_P(Families, MtpHeads, testing::ValuesIn(names()), [](const auto &test) {
  std::string name = test.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

std::string problemOf(const std::string &path) {
  MLIRContext context;
  return messageOf(readModel(context, path, WeightsNeeded::Yes, MtpHead::Kept));
}

TEST(Mtp, RefusesFurtherTensorsOfAHead) {
  auto weights = llvm::cantFail(WeightFiles::open(golden));
  for (const char *name : {"mtp.layers.1.self_attn.q_proj.weight", "mtp.embed_tokens.weight"}) {
    std::vector<Tensor> tensors = {{name, {4, 4}}};
    for (const TensorInfo &tensor : weights.tensors())
      tensors.push_back({tensor.name, {tensor.shape.begin(), tensor.shape.end()}});
    TestFolder folder;
    std::filesystem::copy(std::string(golden) + "/config.json", folder.path("config.json"));
    folder.write("model.safetensors", safetensors(tensors));
    EXPECT_THAT(problemOf(folder.path()),
                HasSubstr("tensor \"" + std::string(name) +
                          "\" [4, 4] does not belong to a supported multi-token prediction (MTP) "
                          "head, which has one layer and uses the model's embeddings; leave "
                          "--keep-mtp out"));
  }
}

/// Also without weights.
TEST(Mtp, ReadsTheKeysOfTheHead) {
  TestFolder folder;
  auto write = [&](llvm::StringRef name, llvm::StringRef part, llvm::json::Value layers,
                   llvm::json::Value embeddings) {
    auto config = llvm::cantFail(readJsonObject(goldens + name.str() + "/config.json"));
    llvm::json::Object &keys = part.empty() ? config : *config.getObject(part);
    keys["mtp_num_hidden_layers"] = std::move(layers);
    keys["mtp_use_dedicated_embeddings"] = std::move(embeddings);
    folder.write("config.json", llvm::formatv("{0}", llvm::json::Value(std::move(config))));
  };
  auto read = [&](MtpHead mtp) {
    auto context = std::make_unique<MLIRContext>();
    auto model = readModel(*context, folder.path(), WeightsNeeded::No, mtp);
    if (!model)
      return messageOf(std::move(model));
    std::string keys;
    for (const IgnoredKey &key : model->ignoredKeys)
      if (llvm::StringRef(key.key).contains("mtp_"))
        keys += key.key + " " + key.reason + "\n";
    return keys;
  };
  write("qwen3-5", "", 2, false);
  constexpr const char *reason =
      " describes the multi-token prediction (MTP) head, see --keep-mtp\n";
  EXPECT_EQ(read(MtpHead::LeftOut), "mtp_num_hidden_layers" + std::string(reason) +
                                        "mtp_use_dedicated_embeddings" + reason);
  EXPECT_THAT(read(MtpHead::Kept),
              HasSubstr("config.json: --keep-mtp: has \"mtp_num_hidden_layers\": 2, expected 1: a "
                        "multi-token prediction (MTP) head of one layer that uses the model's "
                        "embeddings; leave --keep-mtp out"));
  write("qwen3-5-vision", "text_config", 1, true);
  EXPECT_THAT(read(MtpHead::Kept),
              HasSubstr("--keep-mtp: has \"text_config.mtp_use_dedicated_embeddings\": true, "
                        "expected false"));
  write("qwen3-5", "", 1, false);
  EXPECT_EQ(read(MtpHead::Kept), "") << "they are not ignored";
}

/// Names of ignored tensors of a head refer to the option.
TEST(Mtp, TensorsOfAHeadThatIsLeftOutNameTheOption) {
  MLIRContext context;
  auto model = llvm::cantFail(readModel(context, golden));
  auto found = llvm::find_if(model.ignoredTensors, [](const IgnoredTensor &tensor) {
    return tensor.name == "mtp.fc.weight";
  });
  ASSERT_NE(found, model.ignoredTensors.end());
  EXPECT_EQ(found->reason, "is for multi-token prediction (MTP), see --keep-mtp");
}

TEST(Mtp, RefusesOtherModels) {
  std::string models = MICA_SOURCE_DIR "/tests/goldens/models/";
  EXPECT_THAT(
      problemOf(models + "llama-gqa"),
      HasSubstr(
          "--keep-mtp: multi-token prediction (MTP) is only supported for Qwen models that combine "
          "gated delta nets and attention, this is llama; leave --keep-mtp out"));
  EXPECT_THAT(
      problemOf(models + "qwen3-5"),
      HasSubstr("--keep-mtp: the weights have no multi-token prediction (MTP) head, which has a "
                "tensor \"mtp.fc.weight\"; leave --keep-mtp out"));
  EXPECT_THAT(
      problemOf("model.gguf"),
      HasSubstr("model.gguf: --keep-mtp: multi-token prediction (MTP) is only supported for model "
                "folders; pass a model folder, or leave --keep-mtp out"));
}

} // namespace
