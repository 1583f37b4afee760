#include "frontend/formats/checkpoint/WeightFiles.h"

#include "tests/unit/Paths.h"
#include "tests/unit/frontend/TestFolder.h"

#include "llvm/ADT/StringExtras.h"

#include <array>

using namespace mica;
using namespace mica::test;
using testing::HasSubstr;

namespace {

constexpr const char *shard1 = "model-00001-of-00002.safetensors";
constexpr const char *shard2 = "model-00002-of-00002.safetensors";

std::string indexOf(const std::string &map) {
  return "{\"metadata\":{\"total_size\":8},\"weight_map\":{" + map + "}}";
}

std::string entry(const std::string &tensor, const std::string &file) {
  return "\"" + tensor + "\":\"" + file + "\"";
}

/// A folder with tensor a in the first shard, b in the second, and `index`.
struct Sharded {
  explicit Sharded(const std::string &index) {
    folder.write(shard1, safetensors({{"a", {1}, "F32", "aaaa"}}));
    folder.write(shard2, safetensors({{"b", {1}, "F32", "bbbb"}}));
    folder.write("model.safetensors.index.json", index);
  }
  TestFolder folder;
};

std::string problemWithIndex(const std::string &index) {
  Sharded sharded(index);
  return messageOf(WeightFiles::open(sharded.folder.path()));
}

TEST(WeightFiles, OpensASingleFile) {
  TestFolder folder;
  folder.write("model.safetensors", safetensors({{"a", {2}, "U8", "xy"}, {"b", {1}, "U8", "z"}}));
  auto weights = WeightFiles::open(folder.path());
  ASSERT_TRUE(bool(weights));
  EXPECT_EQ(weights->tensors().size(), 2u);
  ASSERT_TRUE(weights->find("b"));
  EXPECT_EQ(llvm::toStringRef(weights->bytes(*weights->find("a"))), "xy");
  weights->release(*weights->find("a"));
  EXPECT_EQ(llvm::toStringRef(weights->bytes(*weights->find("b"))), "z");
  EXPECT_EQ(weights->find("c"), nullptr);
  EXPECT_EQ(weights->folder(), folder.path());
}

TEST(WeightFiles, OpensShards) {
  Sharded sharded(indexOf(entry("a", shard1) + "," + entry("b", shard2)));
  auto weights = WeightFiles::open(sharded.folder.path());
  ASSERT_TRUE(bool(weights));
  EXPECT_EQ(llvm::toStringRef(weights->bytes(*weights->find("a"))), "aaaa");
  EXPECT_EQ(llvm::toStringRef(weights->bytes(*weights->find("b"))), "bbbb");
  EXPECT_EQ(weights->pathOf(*weights->find("b")), sharded.folder.path(shard2));
}

TEST(WeightFiles, JoinsBlocksWithTheirScales) {
  TestFolder folder;
  std::string blocks(2 * 3 * 16, 'b'), scales = "abcdef";
  folder.write("model.safetensors",
               safetensors({{"x_blocks", {2, 3, 16}, "U8", blocks},
                            {"x_scales", {2, 3}, "U8", scales},
                            {"y_blocks", {2, 3, 16}, "U8", blocks},
                            {"y_scales", {3, 2}, "U8", scales},
                            {"z_blocks", {1, 16}, "U8", blocks.substr(0, 16)}}));
  auto weights = WeightFiles::open(folder.path());
  ASSERT_TRUE(bool(weights));
  const TensorInfo &x = *weights->find("x_blocks");
  EXPECT_EQ(shown(x.shape), "[2, 96]");
  EXPECT_EQ(storedNameOf(x), "MXFP4");
  ASSERT_TRUE(weights->scalesOf(x));
  EXPECT_EQ(llvm::toStringRef(weights->bytes(*weights->scalesOf(x))), scales);
  for (const char *other : {"y_blocks", "z_blocks"})
    EXPECT_EQ(weights->scalesOf(*weights->find(other)), nullptr) << "whose scales are not its own";
}

TEST(WeightFiles, SurvivesAMove) {
  TestFolder folder;
  folder.write("model.safetensors", safetensors({{"a", {2}, "U8", "xy"}}));
  auto weights = WeightFiles::open(folder.path());
  ASSERT_TRUE(bool(weights));
  WeightFiles moved = std::move(*weights);
  EXPECT_EQ(llvm::toStringRef(moved.bytes(*moved.find("a"))), "xy");
}

TEST(WeightFiles, RefusesAMissingShard) {
  std::string all = entry("a", shard1) + "," + entry("b", shard2) + ",";
  EXPECT_THAT(problemWithIndex(indexOf(all + entry("c", "model-3.safetensors"))),
              HasSubstr("model-3.safetensors: cannot be read (No such file or directory)"));
}

/// The shards themselves define which tensors they contain.
TEST(WeightFiles, TheIndexNamesShardsOnly) {
  std::string all = entry("a", shard1) + "," + entry("b", shard2);
  for (const std::string &map : {
           entry("a", shard2) + "," + entry("b", shard1), // each in the other shard
           all + "," + entry("c", shard1),                // one that does not exist
           entry("x", shard1) + "," + entry("y", shard2), // none of the existing ones
       }) {
    Sharded sharded(indexOf(map));
    auto weights = WeightFiles::open(sharded.folder.path());
    ASSERT_TRUE(bool(weights)) << messageOf(std::move(weights));
    EXPECT_EQ(llvm::toStringRef(weights->bytes(*weights->find("a"))), "aaaa");
    EXPECT_EQ(weights->pathOf(*weights->find("b")), sharded.folder.path(shard2));
    EXPECT_EQ(weights->tensors().size(), 2u);
  }
}

/// F64 tensors are converted to F32, and read as if they had been stored as F32.
TEST(WeightFiles, MakesF32OfF64) {
  TestFolder folder;
  std::array<double, 3> values = {1, -2.5, 0.1};
  std::string data(reinterpret_cast<const char *>(values.data()), sizeof values);
  folder.write("model.safetensors", safetensors({{"a", {3}, "F64", data}}));
  auto weights = WeightFiles::open(folder.path());
  ASSERT_TRUE(bool(weights)) << messageOf(std::move(weights));
  const TensorInfo &a = *weights->find("a");
  EXPECT_EQ(a.type, StoredType::F32);
  EXPECT_EQ(storedNameOf(a), "F64");
  for (int time = 0; time < 2; ++time) {
    llvm::ArrayRef<uint8_t> bytes = weights->bytes(a);
    std::array<float, 3> made{};
    ASSERT_EQ(bytes.size(), sizeof made);
    std::memcpy(made.data(), bytes.data(), sizeof made);
    EXPECT_THAT(made, testing::ElementsAre(1.0f, -2.5f, 0.1f));
    weights->release(a);
  }
}

/// A torch file with tensors that are not row-major.
TEST(WeightFiles, PutsStridedTensorsInOrder) {
  TestFolder folder;
  std::filesystem::copy(MICA_SOURCE_DIR "/tests/fuzz/corpus/torch-file/transposed.bin",
                        folder.path("pytorch_model.bin"));
  auto weights = WeightFiles::open(folder.path());
  ASSERT_TRUE(bool(weights)) << messageOf(std::move(weights));
  const TensorInfo &t = *weights->find("t");
  EXPECT_EQ(shown(t.shape), "[3, 2]");
  llvm::ArrayRef<uint8_t> bytes = weights->bytes(t);
  std::array<float, 6> values{};
  ASSERT_EQ(bytes.size(), sizeof values);
  std::memcpy(values.data(), bytes.data(), sizeof values);
  EXPECT_THAT(values, testing::ElementsAre(0, 3, 1, 4, 2, 5));
}

TEST(WeightFiles, RefusesATensorInTwoShards) {
  TestFolder folder;
  folder.write("one.safetensors", safetensors({{"a", {1}}}));
  folder.write("two.safetensors", safetensors({{"a", {1}}, {"b", {1}}}));
  folder.write("model.safetensors.index.json",
               indexOf(entry("a", "one.safetensors") + "," + entry("b", "two.safetensors")));
  EXPECT_THAT(messageOf(WeightFiles::open(folder.path())),
              HasSubstr("holds tensor \"a\", which " + folder.path("one.safetensors") +
                        " holds too; download the weights again"));
}

TEST(WeightFiles, RefusesShardNamesThatLeaveTheFolder) {
  for (const char *name :
       {"../secret.safetensors", "/etc/x.safetensors", "sub/x.safetensors", "..", "", "model.bin",
        ".hidden.safetensors", "a\\\\b.safetensors", "a\\u0000.safetensors"})
    EXPECT_THAT(problemWithIndex(indexOf(entry("a", name))),
                HasSubstr("which is not the plain name of a .safetensors file"))
        << name;
  EXPECT_THAT(
      problemWithIndex(indexOf("\"a\":7")),
      HasSubstr("places tensor \"a\" in 7, which is not the plain name of a .safetensors file"));
  std::string many;
  for (int i = 0; i < 4097; ++i)
    many += (i ? "," : "") + entry("t" + std::to_string(i), std::to_string(i) + ".safetensors");
  EXPECT_THAT(
      problemWithIndex(indexOf(many)),
      HasSubstr(
          "names 4097 shards, at most 4096 are supported; merge the shards into fewer files"));
}

TEST(WeightFiles, RefusesABrokenIndex) {
  EXPECT_THAT(problemWithIndex("{}"), HasSubstr("has no weight_map with tensors in it"));
  EXPECT_THAT(problemWithIndex(indexOf("")), HasSubstr("has no weight_map"));
  EXPECT_THAT(problemWithIndex(indexOf(entry("a", shard1) + "," + entry("a", shard1))),
              HasSubstr("key \"a\" occurs twice"));
  EXPECT_THAT(problemWithIndex("{"), HasSubstr("is not valid JSON"));
}

TEST(WeightFiles, ReportsMissingWeights) {
  TestFolder folder;
  EXPECT_THAT(messageOf(WeightFiles::open(folder.path())),
              HasSubstr("holds neither model.safetensors nor model.safetensors.index.json nor "
                        "pytorch_model.bin; download the weights"));
  EXPECT_THAT(messageOf(WeightFiles::open(folder.path("none"))), HasSubstr("does not exist"));
  EXPECT_FALSE(WeightFiles::present(folder.path()));
  folder.write("pytorch_model.bin", "x");
  EXPECT_THAT(messageOf(WeightFiles::open(folder.path())),
              HasSubstr("is not a whole zip archive (its directory is missing)"));
  EXPECT_THAT(messageOf(WeightFiles::open(folder.path("pytorch_model.bin"))),
              HasSubstr("is not a folder; pass a model folder"));
}

TEST(WeightFiles, RefusesADirectoryInPlaceOfTheFile) {
  TestFolder folder;
  folder.write("model.safetensors/inside", "x");
  EXPECT_THAT(messageOf(WeightFiles::open(folder.path())),
              HasSubstr("model.safetensors: is a directory where a file is expected"));
}

} // namespace
