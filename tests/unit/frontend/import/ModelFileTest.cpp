#include "frontend/import/ModelFile.h"

#include "frontend/import/ModelInput.h"
#include "tests/unit/Paths.h"
#include "tests/unit/frontend/import/ModelFolder.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/raw_ostream.h"

using namespace mica;
using namespace mica::test;
using testing::EndsWith;
using testing::HasSubstr;

namespace {

/// The IR of TinyModel, as written by `--emit=model`.
std::string tinyText() {
  TestFolder folder;
  TinyModel().writeTo(folder);
  mlir::MLIRContext context;
  auto input = llvm::cantFail(readModel(context, folder.path()));
  std::string text;
  llvm::raw_string_ostream(text) << *input.module;
  return text;
}

std::string replaced(std::string text, const std::string &from, const std::string &to) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

/// The error for IR `text` with the weights of `model`; empty if it is accepted.
std::string problemOf(const std::string &text, const TinyModel &model = {}) {
  TestFolder folder;
  model.writeTo(folder);
  std::filesystem::remove(folder.path("config.json"));
  mlir::MLIRContext context;
  return messageOf(readModel(context, folder.write("edited.mlir", text)));
}

TEST(ModelFile, NeedsNoConfig) { EXPECT_EQ(problemOf(tinyText()), ""); }

TEST(ModelFile, FindsTheWeightsInItsFolder) {
  TestFolder folder;
  std::filesystem::create_directory(folder.path("tiny"));
  folder.write("tiny/model.safetensors", safetensors(TinyModel().tensors));
  mlir::MLIRContext context;
  auto input = readModel(context, folder.write("tiny.mlir", tinyText()));
  ASSERT_TRUE(bool(input));
  EXPECT_EQ(input->folder, folder.path("tiny"));
}

TEST(ModelFile, RoundTripsImportedModels) {
  size_t count = 0;
  for (auto &entry : std::filesystem::directory_iterator(MICA_SOURCE_DIR "/tests/goldens/models")) {
    SCOPED_TRACE(entry.path().string());
    ++count;
    mlir::MLIRContext context;
    auto first = readModel(context, entry.path().string());
    ASSERT_TRUE(bool(first));
    std::string text, again;
    llvm::raw_string_ostream(text) << *first->module;
    TestFolder folder;
    std::filesystem::copy(entry.path() / "model.safetensors", folder.path("model.safetensors"));
    auto second = readModel(context, folder.write("model.mlir", text));
    ASSERT_TRUE(bool(second)) << messageOf(std::move(second));
    llvm::raw_string_ostream(again) << *second->module;
    EXPECT_EQ(text, again);
  }
  EXPECT_GT(count, 0u);
}

TEST(ModelFile, MayBeEdited) {
  EXPECT_EQ(problemOf(replaced(tinyText(), "half theta(1.000000e+04)",
                               "interleaved theta(5.000000e+05)")),
            "");
}

TEST(ModelFile, LeavesOutTensorsThatItDoesNotName) {
  TestFolder folder;
  TinyModel tiny;
  tiny.tensors.push_back({"model.layers.7.norm.weight", {32}});
  tiny.writeTo(folder);
  mlir::MLIRContext context;
  auto input = readModel(context, folder.write("edited.mlir", tinyText()));
  ASSERT_TRUE(bool(input));
  ASSERT_EQ(input->ignoredTensors.size(), 1u);
  EXPECT_EQ(input->ignoredTensors[0].reason, "not referenced by the IR");
}

TEST(ModelFile, LocatesSyntaxErrors) {
  std::string problem = problemOf(replaced(tinyText(), "mica.rmsnorm", "mica.rmsnrom"));
  EXPECT_THAT(problem, testing::ContainsRegex("edited\\.mlir:[0-9]+:[0-9]+: .*rmsnrom"));
}

TEST(ModelFile, LocatesVerificationErrors) {
  std::string problem = problemOf(replaced(tinyText(), "eps(1.000000e-05)", "eps(-1.000000e-05)"));
  EXPECT_THAT(problem, testing::ContainsRegex("edited\\.mlir:[0-9]+:[0-9]+: .*eps"));
}

TEST(ModelFile, RefusesOtherStages) {
  EXPECT_THAT(problemOf("module {}"), EndsWith("is not stage model (no attribute mica.model); use "
                                               "IR written by `mica compile --emit model`"));
  EXPECT_THAT(
      problemOf(replaced(tinyText(), "@main", "@other")),
      EndsWith("is not stage model (no @main); use IR written by `mica compile --emit model`"));
  EXPECT_THAT(problemOf(std::string("ML\xefR") + "xxxx"),
              EndsWith("is MLIR bytecode; write the IR as text"));
  EXPECT_THAT(problemOf("func.func private @main()"),
              EndsWith("is not an MLIR module; correct the IR"));
  EXPECT_THAT(problemOf(replaced(tinyText(), "mica.weight @model.norm.weight ",
                                 "mica.weight @pair from [\"a\", \"b\"] interleave : "
                                 "tensor<128x32xf32>\n  mica.weight @model.norm.weight ")),
              EndsWith("the weight \"pair\" is interleaved or packed, which is not "
                       "stage model; correct the IR"));
  EXPECT_THAT(
      problemOf(replaced(tinyText(), "attributes {", "attributes {mica.ranks = 2 : i64, ")),
      EndsWith("is partitioned for several ranks, but is expected as a whole; use IR written by "
               "`mica compile --emit model`"));
  EXPECT_THAT(problemOf("module { \"foreign.op\"() : () -> () }"),
              EndsWith("only Mica's and upstream's dialects are supported; correct the IR"));
}

TEST(ModelFile, RefusesSizesThatNoIrHas) {
  TestFolder folder;
  std::string path = folder.write("edited.mlir", "");
  std::filesystem::resize_file(path, (256u << 20) + 1); // takes no space
  mlir::MLIRContext context;
  EXPECT_THAT(messageOf(readModel(context, path)),
              EndsWith("is larger than the 268435456 bytes that IR may have; correct it"));
}

TEST(ModelFile, RefusesDepthBeforeTheParserRecurses) {
  EXPECT_THAT(problemOf("module attributes {a = " + std::string(100000, '[')),
              HasSubstr("nests brackets deeper than 200 levels"));
  EXPECT_EQ(problemOf(tinyText() + "\n// " + std::string(1000, '[')), "") << "comments do not nest";
}

TEST(ModelFile, ChecksTensorsAgainstItsSymbols) {
  TinyModel tiny;
  tiny.erase("model.norm.weight");
  EXPECT_THAT(problemOf(tinyText(), tiny),
              HasSubstr("tensor \"model.norm.weight\" [32] is missing"));
  tiny = TinyModel();
  tiny.tensor("model.norm.weight").type = "BF16";
  EXPECT_THAT(problemOf(tinyText(), tiny),
              EndsWith("tensor \"model.norm.weight\" has the type BF16, but the IR says F32; "
                       "correct the IR or download the weights that belong to it"));
  tiny = TinyModel();
  tiny.tensor("model.norm.weight").shape = {16};
  EXPECT_THAT(problemOf(tinyText(), tiny), HasSubstr("has the shape [16], expected [32]"));
}

TEST(ModelFile, ChecksSourcesThatAreJoined) {
  std::string from = "mica.weight @model.norm.weight : tensor<32xf32>";
  auto joined = [&](const std::string &sources) {
    return replaced(tinyText(), from,
                    "mica.weight @model.norm.weight from [" + sources +
                        "] concat : tensor<32xf32>");
  };
  TinyModel tiny;
  tiny.tensors.push_back({"first", {12}});
  tiny.tensors.push_back({"second", {20}});
  EXPECT_EQ(problemOf(joined("\"first\", \"second\""), tiny), "");
  EXPECT_THAT(problemOf(joined("\"first\", \"first\""), tiny),
              EndsWith("the sources of \"model.norm.weight\" have 24 rows, but the IR says 32; "
                       "correct the IR or download the weights that belong to it"));
  EXPECT_THAT(problemOf(joined("\"first\", \"third\""), tiny), HasSubstr("\"third\""));
}

} // namespace
