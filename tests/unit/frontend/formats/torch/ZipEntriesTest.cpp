#include "frontend/formats/torch/ZipEntries.h"

#include "tests/unit/frontend/TestFolder.h"
#include "tests/unit/frontend/ZipWriter.h"

using namespace mica;
using namespace mica::test;

namespace {

llvm::Expected<llvm::StringMap<ZipEntry>> read(const std::string &archive) {
  return readZipEntries(llvm::arrayRefFromStringRef(archive), "m");
}

std::string problemOf(const std::vector<ZipMember> &members, const ZipForm &form = {}) {
  return messageOf(read(zipArchive(members, form)));
}

const std::vector<ZipMember> two = {{"m/a", "first"}, {"m/b", ""}};

TEST(ZipEntries, AreLocatedByTheDirectory) {
  for (const ZipForm &form : {ZipForm(), ZipForm{.comment = "a comment"}, ZipForm{.isWide = true},
                              ZipForm{.comment = std::string(65535, 'c'), .isWide = true}}) {
    std::string archive = zipArchive(two, form);
    auto entries = read(archive);
    ASSERT_TRUE(bool(entries)) << messageOf(std::move(entries));
    ASSERT_EQ(entries->size(), 2u);
    ZipEntry first = entries->lookup("m/a");
    EXPECT_EQ(archive.substr(first.offset, first.size), "first");
    EXPECT_EQ(first.crc, llvm::crc32(llvm::arrayRefFromStringRef("first")));
    EXPECT_EQ(entries->lookup("m/b").size, 0u);
  }
  EXPECT_EQ(messageOf(read(zipArchive({}))), "") << "which holds nothing";
}

TEST(ZipEntries, NeedADirectory) {
  std::string missing =
      "m: is not a whole zip archive (its directory is missing); download it again";
  EXPECT_EQ(messageOf(read("")), missing);
  EXPECT_EQ(messageOf(read(std::string(100, 'x'))), missing);
  EXPECT_EQ(problemOf(two, {.comment = std::string(65536, 'c')}), missing);
  for (uint64_t place : {uint64_t(0), ~uint64_t(0)})
    EXPECT_EQ(problemOf(two, {.isWide = true, .wideDirectory = place}),
              "m: is not a whole zip archive (its 64-bit directory is missing); download it again");
}

TEST(ZipEntries, NeedAWholeDirectory) {
  std::string cut = "m: is not a whole zip archive (its directory is truncated); download it again";
  EXPECT_EQ(problemOf(two, {.entries = 3}), cut);
  EXPECT_EQ(problemOf(two, {.isWide = true, .entries = ~uint64_t(0)}), cut);
  std::string archive = zipArchive(two);
  size_t second = archive.rfind("PK\1\2");
  archive[second + 29] = '\x7f'; // the size of its name
  EXPECT_EQ(messageOf(read(archive)), cut);
}

TEST(ZipEntries, MustBeStoredAsTheyAre) {
  std::string packed = "m: holds \"a\" compressed or encrypted; convert the model to safetensors";
  EXPECT_EQ(problemOf({{.name = "a", .data = "x", .method = 8}}), packed);
  EXPECT_EQ(problemOf({{.name = "a", .data = "x", .flags = 1}}), packed);
  EXPECT_EQ(problemOf({{.name = "a", .data = "x", .stored = 0}}), packed);
}

TEST(ZipEntries, MustLieInTheArchive) {
  auto broken = [](const std::string &what) {
    return "m: is not a whole zip archive (\"a\"" + what + "); download it again";
  };
  for (uint64_t place : {uint64_t(1), uint64_t(1) << 31})
    EXPECT_EQ(problemOf({{.name = "a", .data = "x", .local = place}}),
              broken(" is not where its directory says"));
  EXPECT_EQ(problemOf({{.name = "a", .data = "x", .size = 1000}}), broken(" is cut"));
  EXPECT_EQ(problemOf({{.name = "a", .data = "x", .size = ~uint64_t(0)}}, {.isWide = true}),
            broken(" is cut"));
  EXPECT_EQ(problemOf({{"a", "x"}, {"a", "y"}}), broken(" occurs in it twice"));
}

} // namespace
