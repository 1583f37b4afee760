#include "backends/runtime/commands/InputHistory.h"

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

using mica::rt::InputHistory;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

struct InputHistoryTest : testing::Test {
  InputHistoryTest() { std::filesystem::remove(path); }
  ~InputHistoryTest() override { std::filesystem::remove(path); }
  std::string path = testing::TempDir() + "mica-turn-history-" + std::to_string(getpid());
};

TEST_F(InputHistoryTest, InputIsRecalled) {
  InputHistory history(path);
  EXPECT_THAT(*history.read(10), IsEmpty());
  for (const char *turn : {"one", "two\nlines\n", "C:\\new\\", "\\n", "Größe"})
    ASSERT_TRUE(static_cast<bool>(history.append(turn)));
  EXPECT_THAT(*history.read(10), ElementsAre("one", "two\nlines\n", "C:\\new\\", "\\n", "Größe"));
  EXPECT_THAT(*history.read(2), ElementsAre("\\n", "Größe"));
  EXPECT_EQ(std::filesystem::status(path).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

TEST_F(InputHistoryTest, LinesOfOtherProgramsAreInputs) {
  std::ofstream(path, std::ios::binary) << "a\\";
  EXPECT_THAT(*InputHistory(path).read(10), ElementsAre("a\\"));
  ASSERT_TRUE(static_cast<bool>(InputHistory(path).append("next")));
  EXPECT_THAT(*InputHistory(path).read(10), ElementsAre("a\\", "next"));
}

TEST_F(InputHistoryTest, ReportsImpossibleFiles) {
  EXPECT_THAT(InputHistory(testing::TempDir()).read(10).error().message,
              HasSubstr("cannot read the history " + testing::TempDir() + ": it is a folder"));
  EXPECT_THAT(InputHistory("/nowhere/at/all").append("x").error().message,
              HasSubstr("cannot write the history /nowhere/at/all: No such file"));
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_THAT(InputHistory(path).read(10).error().message,
              HasSubstr("cannot read the history " + path + ": it is not a regular file"));
}

TEST_F(InputHistoryTest, OfALargeFileTheLastPartIsRead) {
  std::ofstream(path) << "first\n";
  std::filesystem::resize_file(path, 1u << 26);
  std::ofstream(path, std::ios::app) << "\nlast but one\nlast\n";
  EXPECT_THAT(*InputHistory(path).read(10), ElementsAre("last but one", "last"));
}

} // namespace
