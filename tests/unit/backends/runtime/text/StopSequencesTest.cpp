#include "backends/runtime/text/StopSequences.h"

#include <gtest/gtest.h>
#include <vector>

using mica::rt::StopSequences;

namespace {

/// The printed part of `text` if it arrives in pieces of `size` bytes.
std::string printed(const std::string &text, const std::vector<std::string> &strings, size_t size) {
  StopSequences stop(strings);
  std::string out;
  for (size_t at = 0; at < text.size(); at += size)
    out += stop.push(std::string_view(text).substr(at, size));
  return out + stop.finish();
}

TEST(StopSequences, StopStringsAreNeverPrinted) {
  for (size_t size = 1; size < 12; ++size) {
    EXPECT_EQ(printed("one two\n\nUser: three", {"\n\nUser:"}, size), "one two") << size;
    EXPECT_EQ(printed("aaaab", {"aab"}, size), "aa") << size;
    EXPECT_EQ(printed("abcabd!", {"abd", "d!"}, size), "abc") << size;
    EXPECT_EQ(printed("stop", {"stop"}, size), "") << size;
  }
}

TEST(StopSequences, TheFirstOfSeveralCounts) {
  EXPECT_EQ(printed("a END b STOP", {"STOP", "END"}, 100), "a ");
  EXPECT_EQ(printed("a STOPPED", {"STOPPED", "STOP"}, 100), "a ");
}

TEST(StopSequences, PartialStopStringsArePrinted) {
  for (size_t size = 1; size < 12; ++size) {
    EXPECT_EQ(printed("ends with STO", {"STOP"}, size), "ends with STO") << size;
    EXPECT_EQ(printed("aabaabaaac", {"aabaaac!"}, size), "aabaabaaac") << size;
  }
}

TEST(StopSequences, HoldsBackNoMoreThanNeeded) {
  const std::string string = "\nUser:";
  StopSequences stop({&string, 1});
  EXPECT_EQ(stop.push("line"), "line");
  EXPECT_EQ(stop.push(" two\n"), " two");
  EXPECT_EQ(stop.push("more"), "\nmore");
  EXPECT_FALSE(stop.stopped());
  EXPECT_EQ(stop.push("\nUser: x"), "");
  EXPECT_TRUE(stop.stopped());
  EXPECT_EQ(stop.push("y") + stop.finish(), "");
}

} // namespace
