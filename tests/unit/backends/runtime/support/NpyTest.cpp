#include "backends/runtime/support/Npy.h"
#include "tests/unit/backends/runtime/FakeProgram.h"

#include <cstring>
#include <fstream>
#include <gmock/gmock.h>
#include <iterator>

using namespace mica::rt;
using namespace mica::test;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {
/// The floats after the header.
std::vector<float> floatsOf(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), {});
  std::vector<float> values((bytes.size() - npyHeaderSize) / sizeof(float));
  if (!values.empty())
    std::memcpy(values.data(), bytes.data() + npyHeaderSize, values.size() * sizeof(float));
  return values;
}

TEST(Npy, HeaderFollowsTheFormat) {
  std::string header = npyHeader(3, 512);
  ASSERT_EQ(header.size(), 128u);
  EXPECT_EQ(header.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  EXPECT_EQ(static_cast<unsigned char>(header[8]) + 256 * static_cast<unsigned char>(header[9]),
            118);
  EXPECT_THAT(header, HasSubstr("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 512), }"));
  EXPECT_EQ(header.back(), '\n');
  EXPECT_EQ(npyHeader(int64_t(1) << 40, int64_t(1) << 31).size(), 128u);
}

TEST(Npy, SequencesFollowEachOther) {
  mica::test::TemporaryFolder folder;
  std::string path = folder.file("l.npy");
  auto writer = NpyWriter::create(path, 2, {4, 3, 2});
  ASSERT_TRUE(writer) << writer.error().message;
  // Interleaved; the first and the second sequence do not use all of their rows.
  ASSERT_TRUE((*writer)->append(1, std::vector<float>{10, 11}));
  ASSERT_TRUE((*writer)->append(0, std::vector<float>{0, 1, 2, 3}));
  ASSERT_TRUE((*writer)->append(2, std::vector<float>{20, 21}));
  ASSERT_TRUE((*writer)->append(1, std::vector<float>{12, 13}));
  ASSERT_TRUE((*writer)->append(2, std::vector<float>{22, 23}));
  EXPECT_THAT(folder.entries(), testing::Not(testing::Contains("l.npy")));
  ASSERT_TRUE((*writer)->commit());
  EXPECT_THAT(folder.entries(), ElementsAre("l.npy"));
  EXPECT_THAT(floatsOf(path), ElementsAre(0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23));
}

TEST(Npy, NoRowsAtAll) {
  mica::test::TemporaryFolder folder;
  auto writer = NpyWriter::create(folder.file("l.npy"), 7, {0});
  ASSERT_TRUE(writer);
  ASSERT_TRUE((*writer)->commit());
  EXPECT_TRUE(floatsOf(folder.file("l.npy")).empty());
}

TEST(Npy, FileIsRemovedWithoutCommit) {
  mica::test::TemporaryFolder folder;
  {
    auto writer = NpyWriter::create(folder.file("l.npy"), 2, {1});
    ASSERT_TRUE(writer);
    ASSERT_TRUE((*writer)->append(0, std::vector<float>{1, 2}));
  }
  EXPECT_TRUE(folder.entries().empty());
}

TEST(Npy, ImpossiblePaths) {
  auto error = [](const std::string &path) {
    return NpyWriter::create(path, 2, {1}).error().message;
  };
  EXPECT_THAT(error("/nowhere/l.npy"),
              HasSubstr("/nowhere/l.npy: cannot be written (its folder does not exist)"));
  EXPECT_THAT(error("/dev/full"), HasSubstr("/dev cannot hold regular files"));
  EXPECT_THAT(error("/tmp"), HasSubstr("it is a directory"));
}
} // namespace
