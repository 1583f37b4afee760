//===- DiffTest.cpp - manifests of compared programs ----------------------===//

#include "tools/explore/Diff.h"

#include "gtest/gtest.h"

using namespace mica::explore;

namespace {

std::string failure(llvm::StringRef manifest) {
  llvm::Expected<llvm::json::Object> parsed = parseManifestJson(manifest, "smol");
  return parsed ? "no error" : llvm::toString(parsed.takeError());
}

TEST(DiffManifest, IsAJsonObject) {
  EXPECT_EQ(failure(R"({"name": "smol"})"), "no error");
  EXPECT_EQ(failure("{"), "smol: has a manifest that is not JSON; compile it again");
  EXPECT_EQ(failure("[]"), "smol: has a manifest that is not an object; compile it again");
}

DiffSide program(llvm::StringRef manifest) {
  llvm::Expected<llvm::json::Object> parsed = parseManifestJson(manifest, "smol");
  return {"smol", std::move(*parsed), std::nullopt};
}

std::string differences(llvm::StringRef a, llvm::StringRef b) {
  return diffText(diffOf(program(a), program(b), {}));
}

TEST(DiffOfPrograms, ListsOpsOfFunctionsThatDiffer) {
  EXPECT_EQ(
      differences(
          R"({"ops": {"main": {"mica.linear": 2, "mica.rmsnorm": 1}, "old": {"mica.add": 3}}})",
          R"({"ops": {"main": {"mica.linear": 3, "mica.rmsnorm": 1, "mica.cast": 1}}})"),
      "A: smol\nB: smol\nfunctions at stage kernels\n"
      "  @main: 3 ops -> 5 ops, mica.cast - -> 1, mica.linear 2 -> 3\n"
      "  @old: 3 ops -> -\n");
}

TEST(DiffOfPrograms, NamesCaches) {
  EXPECT_EQ(
      differences(R"({"caches": [{"name": "keys0", "bytes_per_token": 8}], "eos": [2]})",
                  R"({"caches": [{"name": "keys0", "bytes_per_token": 4}], "eos": [2, 3]})"),
      "A: smol\nB: smol\nconfig\n  caches.keys0.bytes_per_token: 8 -> 4\n  eos: [2] -> [2,3]\n"
      "bytes\n  caches_per_token: 8 -> 4\n");
}

TEST(DiffOfModels, JoinsEqualDifferencesOfLayers) {
  auto model = [](int64_t bytes) {
    Record record;
    for (const char *name : {"layers.0.proj", "layers.1.proj", "norm"})
      record.weights.push_back({name, "tensor<4xf32>", "f32", 0, 0, bytes, 0});
    record.sizes["layers"] = bytes / 8;
    return DiffSide{"smol", {}, record};
  };
  EXPECT_EQ(diffText(diffOf(model(16), model(8), {})),
            "A: smol\nB: smol\nconfig\n  model.layers: 2 -> 1\nbytes\n  weights: 16 -> 8\nweights\n"
            "  layers.*.proj (2 times): tensor<4xf32> (16 bytes) -> tensor<4xf32> (8 bytes)\n"
            "  norm: tensor<4xf32> (16 bytes) -> tensor<4xf32> (8 bytes)\n");
}

} // namespace
