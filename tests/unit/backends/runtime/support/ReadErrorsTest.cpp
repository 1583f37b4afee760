// SIGBUS of mapped files that have become too short.
#include "backends/runtime/support/ReadErrors.h"
#include "tests/unit/backends/runtime/FakeModelFixture.h"
#include "tests/unit/backends/runtime/Generation.h"

#include <fcntl.h>
#include <fstream>
#include <gmock/gmock.h>
#include <sys/mman.h>

using namespace mica;
using namespace mica::rt;
using namespace mica::test;
using testing::HasSubstr;

namespace {
constexpr size_t pageBytes = 4096;

/// Reads memory even if nothing uses the value.
int read(const std::byte *address) {
  return static_cast<int>(*static_cast<const volatile std::byte *>(address));
}

/// Two mapped pages of ones, whose file ends after the first.
class ShortFile {
public:
  ShortFile() {
    std::string path = folder.file("pages");
    std::ofstream(path) << std::string(2 * pageBytes, '\1');
    int fd = open(path.c_str(), O_RDONLY);
    void *pages = mmap(nullptr, 2 * pageBytes, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    mapping = Mapping(pages, 2 * pageBytes);
    std::filesystem::resize_file(path, pageBytes);
  }

  std::span<const std::byte> bytes() const { return mapping.bytes(); }
  int at(size_t offset) const { return read(&bytes()[offset]); }

private:
  TemporaryFolder folder;
  Mapping mapping;
};
} // namespace

TEST(ReadErrors, GuardedPagesReadAsZeros) {
  handleReadErrors();
  ShortFile file;
  ReadErrorGuard guard(file.bytes());
  EXPECT_EQ(file.at(pageBytes - 1), 1);
  EXPECT_FALSE(guard.failed());
  EXPECT_EQ(file.at(pageBytes + 7), 0);
  EXPECT_TRUE(guard.failed());
  EXPECT_EQ(file.at(0), 1);
}

TEST(ReadErrorsDeathTest, OtherPagesEndTheProcess) {
  handleReadErrors();
  ShortFile guarded, other;
  EXPECT_EXIT(
      {
        ReadErrorGuard guard(guarded.bytes());
        other.at(pageBytes);
      },
      testing::ExitedWithCode(1), "mica: error: the program file could not be read while running");
  EXPECT_EXIT(
      {
        {
          ReadErrorGuard guard(guarded.bytes());
        }
        guarded.at(pageBytes);
      },
      testing::ExitedWithCode(1), "mica: error: the program file could not be read while running");
}

namespace {
class ReadErrorsOfModel : public FakeModelFixture {};
} // namespace

TEST_F(ReadErrorsOfModel, RequestsFail) {
  handleReadErrors();
  model->surviveReadErrors();
  Generation generation;
  generation.settings.maxTokens = 3;
  auto before = generation.run(*model, {{1, 5}});
  ASSERT_TRUE(before) << before.error().message;
  EXPECT_EQ(before->texts.front().tokens, fakeContinuation({1, 5}, 3));
  ASSERT_FALSE(model->weights().empty());
  std::filesystem::resize_file(folder.file("fake"), pageBytes);
  EXPECT_EQ(read(model->weights().data()), 0);
  std::string error = "the program file could not be read while running";
  ASSERT_FALSE(model->checkReadable());
  EXPECT_THAT(model->checkReadable().error().message, HasSubstr(error));
  auto after = generation.run(*model, {{1, 5}});
  ASSERT_FALSE(after);
  EXPECT_THAT(after.error().message, HasSubstr(error));
}
