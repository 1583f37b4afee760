#include "backends/runtime/support/TextFile.h"
#include "tests/unit/backends/runtime/program/TestPrograms.h"

#include <fstream>
#include <gmock/gmock.h>

using namespace mica;
using namespace mica::rt;
using testing::ElementsAre;

namespace {
class TextLinesTest : public testing::Test {
protected:
  std::vector<std::string> linesOf(const std::string &text) {
    std::ofstream(path, std::ios::binary) << text;
    auto lines = TextLines::open(path, "requests", "-f");
    std::vector<std::string> all;
    for (;;) {
      Result<std::string_view> line = (*lines)->next();
      EXPECT_TRUE(line);
      if (!line || line->empty())
        return all;
      all.emplace_back(*line);
    }
  }

  test::TestFolder folder;
  std::string path = folder.file("text");
};

TEST_F(TextLinesTest, LinesHaveTheirEnds) {
  EXPECT_THAT(linesOf(""), ElementsAre());
  EXPECT_THAT(linesOf("a"), ElementsAre("a"));
  EXPECT_THAT(linesOf("a\n"), ElementsAre("a\n"));
  EXPECT_THAT(linesOf("\n\na\r\nb"), ElementsAre("\n", "\n", "a\r\n", "b"));
  // About the size of the read buffer.
  for (size_t size : {65535, 65536, 65537, 200000}) {
    std::string first(size, 'x'), second(size, 'y');
    EXPECT_THAT(linesOf(first + "\n" + second + "\nz"),
                ElementsAre(first + "\n", second + "\n", "z"));
  }
}

TEST_F(TextLinesTest, SeekToAnyLine) {
  std::string text;
  for (int i = 0; i < 30000; ++i)
    text += std::to_string(i) + "\n";
  std::ofstream(path, std::ios::binary) << text;
  auto lines = TextLines::open(path, "requests", "-f");
  ASSERT_TRUE(lines);
  std::vector<uint64_t> places;
  for (int i = 0; i < 30000; ++i) {
    places.push_back((*lines)->place());
    EXPECT_EQ(*(*lines)->next(), std::to_string(i) + "\n");
  }
  EXPECT_EQ((*lines)->place(), text.size());
  for (int i : {29999, 0, 12000, 12001, 3, 29000}) {
    (*lines)->goTo(places[i]);
    EXPECT_EQ((*lines)->place(), places[i]);
    EXPECT_EQ(*(*lines)->next(), std::to_string(i) + "\n");
  }
}

TEST_F(TextLinesTest, ErrorsNameTheFile) {
  auto missing = TextLines::open(folder.file("none"), "requests", "-f");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().message,
            "cannot read the requests from '" + folder.file("none") +
                "': No such file or directory; choose another file with -f");
}
} // namespace
