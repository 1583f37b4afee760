#include "frontend/support/MappedFile.h"

#include "tests/unit/frontend/TestFolder.h"

#include "llvm/ADT/StringExtras.h"

#include <sys/stat.h>
#include <unistd.h>

using namespace mica;
using namespace mica::test;
using testing::HasSubstr;

namespace {

TEST(MappedFile, ShowsTheBytes) {
  TestFolder folder;
  auto file = MappedFile::open(folder.write("a", "hello"));
  ASSERT_TRUE(bool(file));
  EXPECT_EQ(llvm::toStringRef(file->bytes()), "hello");
  file->release(file->bytes());
  EXPECT_EQ(llvm::toStringRef(file->bytes()), "hello") << "released pages are read again";
}

TEST(MappedFile, SurvivesAMove) {
  TestFolder folder;
  auto file = MappedFile::open(folder.write("a", "hello"));
  ASSERT_TRUE(bool(file));
  MappedFile other = std::move(*file);
  EXPECT_EQ(llvm::toStringRef(other.bytes()), "hello");
}

TEST(MappedFile, RefusesNonFiles) {
  TestFolder folder;
  std::string missing = folder.path("missing");
  EXPECT_EQ(messageOf(MappedFile::open(missing)),
            missing +
                ": cannot be read (No such file or directory); download it or pass another file");
  EXPECT_EQ(messageOf(MappedFile::open(folder.path())),
            folder.path() + ": is a directory where a file is expected; replace it with a file");
  EXPECT_EQ(messageOf(MappedFile::openNamed(folder.path())),
            folder.path() + ": is a directory where a file is expected; pass a file");
  EXPECT_THAT(messageOf(MappedFile::open(folder.write("empty", ""))), HasSubstr("is empty"));
  std::string fifo = folder.path("fifo");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(messageOf(MappedFile::open(fifo)),
            fifo + ": is not a regular file; replace it with a regular file");
}

TEST(MappedFile, RefusesUnreadableFiles) {
  if (::geteuid() == 0)
    GTEST_SKIP() << "root may read everything";
  TestFolder folder;
  std::string path = folder.write("secret", "x");
  ::chmod(path.c_str(), 0);
  EXPECT_THAT(messageOf(MappedFile::open(path)), HasSubstr("Permission denied"));
}

} // namespace
