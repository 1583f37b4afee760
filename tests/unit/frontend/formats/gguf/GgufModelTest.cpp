#include "frontend/formats/gguf/GgufModel.h"

#include "tests/unit/frontend/GgufWriter.h"
#include "tests/unit/frontend/TestFolder.h"

using namespace mica;
using namespace mica::test;
using testing::HasSubstr;

namespace {

/// Part `number` of `count` with one tensor.
GgufWriter part(unsigned number, unsigned count, const std::string &tensor) {
  GgufWriter file;
  file.value("split.no", GgufKind::U16, GgufWriter::raw<uint16_t>(number));
  file.value("split.count", GgufKind::U16, GgufWriter::raw<uint16_t>(count));
  file.value("split.tensors.count", GgufKind::I32, GgufWriter::raw<int32_t>(count));
  file.floats(tensor, {2}, {float(number), 1});
  return file;
}

class Split : public testing::Test {
protected:
  Split() {
    for (unsigned i = 0; i < 3; ++i)
      write(i, part(i, 3, "t" + std::to_string(i)));
  }
  std::string nameOf(unsigned number) {
    return folder.path("m-0000" + std::to_string(number + 1) + "-of-00003.gguf");
  }
  void write(unsigned number, const GgufWriter &file) {
    folder.write(std::filesystem::path(nameOf(number)).filename(), file.bytes());
  }
  std::string problem() { return messageOf(GgufModel::open(nameOf(0))); }

  TestFolder folder;
};

TEST_F(Split, PartsAreJoined) {
  auto model = GgufModel::open(nameOf(0));
  ASSERT_TRUE(bool(model)) << messageOf(std::move(model));
  ASSERT_EQ(model->tensors().size(), 3u);
  const GgufTensor *last = model->findTensor("t2");
  ASSERT_TRUE(last);
  EXPECT_EQ(model->pathOf(*last), nameOf(2));
  float value;
  std::memcpy(&value, model->bytes(*last).data(), sizeof value);
  EXPECT_EQ(value, 2);
  EXPECT_EQ(ggufName(nameOf(0)), "m");
  EXPECT_EQ(ggufFiles(nameOf(0)).size(), 3u);
}

TEST_F(Split, OnlyTheFirstPartIsAModel) {
  EXPECT_THAT(messageOf(GgufModel::open(nameOf(1))),
              HasSubstr("is part 2 of a model; pass the first part, " + nameOf(0)));
}

TEST_F(Split, PartsMustBelongTogether) {
  write(1, part(2, 3, "t1"));
  EXPECT_THAT(problem(),
              HasSubstr("does not say that it is part 2 of 3 (split.no, split.count); download the "
                        "parts of one model"));
  write(1, GgufWriter());
  EXPECT_THAT(problem(), HasSubstr("does not say that it is part 2 of 3"));
  write(1, part(1, 3, "t1").u32("llama.block_count", 1));
  EXPECT_THAT(
      problem(),
      HasSubstr("has the key \"llama.block_count\", which belongs in the first part; download "
                "the parts of one model"));
  write(1, part(1, 3, "t0"));
  EXPECT_THAT(problem(), HasSubstr("holds tensor \"t0\", which " + nameOf(0) +
                                   " holds too; download the parts of "
                                   "one model"));
  write(1, part(1, 3, "t1").floats("more", {1}, {1}));
  EXPECT_THAT(problem(), HasSubstr("says that the parts hold 3 tensors (split.tensors.count), but "
                                   "they hold 4; download the parts of one model"));
  std::filesystem::remove(nameOf(1));
  EXPECT_THAT(problem(), HasSubstr("cannot be read"));
}

TEST_F(Split, NamesMustAgreeWithTheMetadata) {
  std::string path = folder.write("m.gguf", part(0, 3, "t0").bytes());
  EXPECT_THAT(
      messageOf(GgufModel::open(path)),
      HasSubstr("is part 1 of 3 by its metadata, but not by its name; rename the first part to "
                "NAME-00001-of-00003.gguf and the others accordingly"));
  path = folder.write("m.gguf", GgufWriter().string("split.count", "three").bytes());
  EXPECT_THAT(messageOf(GgufModel::open(path)),
              HasSubstr("has \"split.count\": \"three\", expected an integer from 0 to 4096"));
}

TEST(GgufModel, FilesAreRecognized) {
  TestFolder folder;
  EXPECT_TRUE(isGguf(folder.write("a.gguf", "junk"))) << "by its name";
  EXPECT_TRUE(isGguf(folder.write("a.bin", GgufWriter().bytes()))) << "by its bytes";
  EXPECT_FALSE(isGguf(folder.write("b.bin", "GG")));
  EXPECT_FALSE(isGguf(folder.path()));
  EXPECT_EQ(ggufName("x/model.Q4_K_M.gguf"), "model.Q4_K_M");
  EXPECT_EQ(ggufFiles("model.gguf").size(), 1u);
}

} // namespace
