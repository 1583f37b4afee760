// The importer's result for published models, run by the interpreter, has the logits of the
// authors' own code.

#include "frontend/config/ConfigReader.h"
#include "frontend/import/ModelInput.h"
#include "frontend/support/Json.h"
#include "ir/Interpreter/Npy.h"
#include "tests/unit/frontend/TestFolder.h"
#include "tests/unit/frontend/import/GoldenModel.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <map>

using namespace mica;
using namespace mica::test;

namespace {

namespace fs = std::filesystem;

/// A golden: its prompt and its logits, and the following ids.
struct Golden {
  explicit Golden(const std::string &name, const std::string &kind = "golden") {
    auto object = llvm::cantFail(readJsonObject((goldens() / name / (kind + ".json")).string()));
    for (const llvm::json::Value &token : *object.getArray("prompt"))
      prompt.push_back(*token.getAsInteger());
    for (const llvm::json::Value &token : *object.getArray("greedy"))
      greedy.push_back(*token.getAsInteger());
    auto array =
        llvm::cantFail(interp::readNpy((goldens() / name / (kind + ".logits.npy")).string()));
    logits.resize(array.bytes.size() / sizeof(float));
    std::memcpy(logits.data(), array.bytes.data(), array.bytes.size());
  }
  std::vector<int64_t> prompt, greedy;
  std::vector<float> logits;
};

/// The distance of the model at `path` from `golden`; infinite, with a failure, if it cannot be
/// run.
double distanceOf(const std::string &path, const Golden &golden, size_t chunk) {
  mlir::MLIRContext context;
  auto model = readModel(context, path);
  if (!model) {
    ADD_FAILURE() << messageOf(std::move(model));
    return std::numeric_limits<double>::infinity();
  }
  auto logits = logitsOf(*model, golden.prompt, chunk);
  if (!logits) {
    ADD_FAILURE() << messageOf(std::move(logits));
    return std::numeric_limits<double>::infinity();
  }
  return distance(*logits, golden.logits);
}

class GoldenTest : public testing::TestWithParam<std::string> {};

TEST_P(GoldenTest, LogitsOfOnePrefill) {
  Golden golden(GetParam());
  EXPECT_LT(distanceOf((goldens() / GetParam()).string(), golden, golden.prompt.size()), 1e-5);
}

TEST_P(GoldenTest, LogitsOfChunksWithTheCache) {
  Golden golden(GetParam());
  EXPECT_LT(distanceOf((goldens() / GetParam()).string(), golden, 7), 1e-5);
}

/// A rope with frequencies that depend on the sequence length, and the threshold.
class LengthGoldenTest : public testing::TestWithParam<std::pair<const char *, int64_t>> {};

TEST_P(LengthGoldenTest, LogitsAboveTheThreshold) {
  Golden golden(GetParam().first, "golden.above");
  std::string path = (goldens() / GetParam().first).string();
  EXPECT_LT(distanceOf(path, golden, golden.prompt.size()), 1e-5);
  EXPECT_LT(distanceOf(path, golden, 31), 1e-5);
}

/// Up to the threshold all rows are those of a short text; then the text is recomputed, and later
/// rows use their own lengths.
TEST_P(LengthGoldenTest, LogitsAcrossTheThreshold) {
  Golden golden(GetParam().first, "golden.across");
  auto threshold = static_cast<size_t>(GetParam().second);
  mlir::MLIRContext context;
  auto model = llvm::cantFail(readModel(context, (goldens() / GetParam().first).string()));
  std::vector<int64_t> ids = golden.prompt;
  ids.insert(ids.end(), golden.greedy.begin(), golden.greedy.end() - 1);
  ASSERT_GT(ids.size(), threshold + 1);
  std::vector<int64_t> lengths;
  for (size_t position = 0; position < ids.size(); ++position)
    lengths.push_back(static_cast<int64_t>(std::max(position, threshold) + 1));
  auto before =
      llvm::cantFail(logitsOf(model, llvm::ArrayRef(ids).take_front(threshold), threshold));
  auto after = llvm::cantFail(logitsOf(model, ids, ids.size(), "main", lengths));
  size_t vocab = before.size() / threshold, first = golden.prompt.size() - 1;
  std::vector<float> rows(before.begin() + static_cast<ptrdiff_t>(first * vocab), before.end());
  rows.insert(rows.end(), after.begin() + static_cast<ptrdiff_t>(threshold * vocab), after.end());
  EXPECT_LT(distance(rows, golden.logits), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Models, LengthGoldenTest,
                         testing::Values(std::pair("llama-rope-dynamic", 128),
                                         std::pair("phi3-longrope", 64)),
                         [](const auto &info) { return info.index ? "longrope" : "dynamic"; });

std::string nameOfTest(const testing::TestParamInfo<std::string> &info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenTest, testing::ValuesIn(goldenNames()), nameOfTest);

/// Goldens are small and have several layers, and every family has one whose number of heads is not
/// a power of two.
TEST(Goldens, AreSmallWithOddShapes) {
  std::map<std::string, bool> hasOdd;
  for (const std::string &name : goldenNames()) {
    std::string folder = (goldens() / name).string();
    uintmax_t size = 0;
    for (const auto &file : fs::directory_iterator(folder))
      size += file.file_size();
    EXPECT_LE(size, 150'000u) << name;
    auto weights = llvm::cantFail(WeightFiles::open(folder));
    auto config = llvm::cantFail(readModelConfig(folder, &weights));
    EXPECT_GE(config.layers.size(), 2u) << name;
    EXPECT_LE(config.layers.size(), 5u) << name;
    hasOdd[config.family] |= !llvm::isPowerOf2_64(config.layerTypes.front().attention.heads);
  }
  EXPECT_FALSE(hasOdd.empty());
  for (const auto &[family, odd] : hasOdd)
    EXPECT_TRUE(odd) << family;
}

/// The IR of a golden with all occurrences of `from` replaced by `to`, compiled without its config.
double distanceOfMutant(const std::string &name, const std::string &from, const std::string &to) {
  std::string text;
  {
    mlir::MLIRContext context;
    auto model = llvm::cantFail(readModel(context, (goldens() / name).string()));
    llvm::raw_string_ostream(text) << *model.module;
  }
  EXPECT_NE(text.find(from), std::string::npos) << from;
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  TestFolder folder;
  fs::copy(goldens() / name / "model.safetensors", folder.path("model.safetensors"));
  Golden golden(name);
  return distanceOf(folder.write("edited.mlir", text), golden, golden.prompt.size());
}

TEST(GoldenMutants, EditedIrChangesTheLogits) {
  EXPECT_LT(distanceOfMutant("minimind2-dense", "half", "half"), 1e-5) << "nothing edited";
  EXPECT_GT(distanceOfMutant("minimind2-dense", " half ", " interleaved "), 1e-3);
  EXPECT_GT(distanceOfMutant("minimind1-dense", " interleaved ", " half "), 1e-3);
  EXPECT_GT(distanceOfMutant("llama-gqa", "eps(1.000000e-05)", "eps(1.000000e-06)"), 1e-3);
  EXPECT_GT(distanceOfMutant("minimind2-dense", "theta(1.000000e+06)", "theta(1.000000e+04)"),
            1e-3);
}

} // namespace
