#include "backends/runtime/support/NestedJson.h"

#include <algorithm>
#include <ctime>
#include <fstream>
#include <gtest/gtest.h>
#include <limits>
#include <malloc.h>

using namespace mica::rt;
using Json = nlohmann::ordered_json;

namespace {
std::string repeated(std::string_view text, size_t count) {
  std::string all;
  for (size_t i = 0; i < count; ++i)
    all += text;
  return all;
}

std::string problemOf(std::string_view text) {
  std::string problem;
  EXPECT_TRUE(parseNested(text, problem).is_discarded()) << text.substr(0, 100);
  return problem;
}

std::string keys(size_t count) {
  std::string text = "{";
  for (size_t i = 0; i < count; ++i)
    text += (i ? ",\"" : "\"") + std::to_string(i) + "\":0";
  return text + "}";
}

/// The seconds that it takes to parse `text`, the least of several attempts.
double secondsFor(const std::string &text) {
  double least = std::numeric_limits<double>::infinity();
  for (int attempt = 0; attempt < 5; ++attempt) {
    // Of this thread alone: the machine may be busy.
    auto now = [] {
      timespec time{};
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
      return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
    };
    double begin = now();
    std::string problem;
    EXPECT_FALSE(parseNested(text, problem).is_discarded()) << problem;
    least = std::min(least, now() - begin);
  }
  return least;
}
} // namespace

TEST(NestedJson, IsWhatTheLibraryParses) {
  for (const char *text : {"0", "null", "[]", "{}", "\"a\\u00e9\\ud83e\\udd8a\"",
                           "[1, -2, 3.5, 1e300, true, false, null]", "18446744073709551615",
                           "-9223372036854775808", R"({"b": [{}, {"a": {"c": [[]]}}], "a": {}})",
                           R"([{"z": 1, "y": [2, {"x": 3}], "w": {"v": {}}}, "end"])"}) {
    std::string problem;
    Json parsed = parseNested(text, problem);
    EXPECT_EQ(problem, "");
    EXPECT_EQ(parsed.dump(), Json::parse(text).dump());
    EXPECT_EQ(parsed, Json::parse(text));
  }
}

TEST(NestedJson, OtherTexts) {
  for (auto [text, problem] :
       {std::pair("", "1: unexpected end of input; expected '[', '{', or a literal"),
        {"{", "2: unexpected end of input; expected string literal"},
        {"[1", "3: unexpected end of input; expected ']'"},
        {"[1,]", "4: unexpected ']'; expected '[', '{', or a literal"},
        {"{\"a\"}", "5: unexpected '}'; expected ':'"},
        {"{} {}", "4: unexpected '{'; expected end of input"},
        {"\"\xff\"", "2: invalid string: ill-formed UTF-8 byte"},
        {"[1, \"a", "7: invalid string: missing closing quote"},
        {"nul", "4: invalid literal"}})
    EXPECT_EQ(problemOf(text), std::string("not JSON at byte ") + problem) << text;
  EXPECT_EQ(problemOf("[1, -1e999]"),
            "the number at byte 5 is beyond a double; write a smaller one");
  EXPECT_EQ(problemOf("[1,, \"\\ud800\"]"),
            "not JSON at byte 4: unexpected ','; expected '[', '{', or a literal");
  EXPECT_LT(problemOf("[" + repeated("a", 100000)).size(), 100u);
  EXPECT_EQ(problemOf(R"(["\ud800"])"),
            "\\ud800 is an unpaired surrogate; write both halves or the character itself");
  EXPECT_EQ(problemOf(R"([{"a": {}, "b": 1, "a": 2}])"),
            "the key \"a\" occurs twice in one object; leave one out");
  EXPECT_EQ(problemOf(repeated("[", 101)), "nested more than 100 deep; shorten it");
}

TEST(NestedJson, Limits) {
  std::string problem;
  EXPECT_FALSE(parseNested(repeated("[", 100) + repeated("]", 100), problem).is_discarded());
  std::string objects = repeated("{},", kMaxParts - 2);
  EXPECT_FALSE(parseNested("[" + objects + "{}]", problem).is_discarded()) << problem;
  for (const char *more : {"{},{}", "{\"a\":1}", "{},[]", "{},\"\""})
    EXPECT_EQ(problemOf("[" + objects + more + "]"),
              "has more than 1048576 strings and objects; shorten it");
}

/// A value of /proc/self/status in bytes.
static uint64_t statusValue(const std::string &name) {
  std::ifstream file("/proc/self/status");
  uint64_t kilobytes = 0;
  for (std::string word; file >> word;)
    if (word == name + ":" && file >> kilobytes)
      break;
  return kilobytes << 10;
}

/// The resident memory that parsing takes at most.
static uint64_t peakOf(const std::string &text) {
  malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << "5"; // resets the maximum
  uint64_t before = statusValue("VmRSS");
  std::string problem;
  Json value = parseNested(text, problem);
  EXPECT_FALSE(value.is_discarded()) << problem;
  return statusValue("VmHWM") - before;
}

TEST(NestedJson, MemoryIsEstimated) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers take memory of their own";
#endif
  // What malloc has left of others' memory, and pages.
  constexpr uint64_t tolerance = 2 << 20;
  constexpr size_t n = 1000000;
  for (const std::string &text :
       {"[" + repeated("5,", 3 * n) + "5]", "[" + repeated("{},", n) + "0]",
        "[" + repeated("[],", n) + "0]", "[" + repeated("[5],", n) + "0]",
        "[" + repeated("\"\",", n) + "0]", "[" + repeated("\"a text that is longer\",", n) + "0]",
        "[" + repeated("{\"\":5},", n / 2) + "0]", keys(n),
        "[\"" + repeated(R"(a\"\u00e4,)", 2 * n) + "\"]"}) {
    uint64_t peak = peakOf(text), estimate = maxParsedBytes(text);
    EXPECT_LE(peak, estimate + tolerance) << text.substr(0, 20);
    EXPECT_LE(estimate, 5 * peak + tolerance) << text.substr(0, 20);
  }
}

TEST(NestedJson, Stops) {
  std::stop_source source;
  std::string problem;
  EXPECT_FALSE(parseNested("[1]", problem, source.get_token()).is_discarded());
  source.request_stop();
  EXPECT_TRUE(parseNested("[1]", problem, source.get_token()).is_discarded());
  EXPECT_EQ(problem, "");
}

/// The time is proportional to the size, apart from sorting and the processor's caches: eight times
/// the text does not take 64 times as long.
TEST(NestedJson, TimeIsLinear) {
  auto expectLinear = [](const char *what, auto make) {
    constexpr size_t size = 4000;
    double small = secondsFor(make(size)), large = secondsFor(make(8 * size));
    EXPECT_LT(large, 40 * small) << what;
  };
  expectLinear("objects", [](size_t n) { return "[" + repeated("{},", n) + "0]"; });
  expectLinear("keys", keys);
  // A value before a key is not copied for each key after it, or for each level around it.
  expectLinear("levels", [](size_t n) {
    constexpr size_t levels = 90;
    return repeated(R"({"a":)", levels) + "[" + repeated("{},", n) + "0]" +
           repeated(R"(,"b":0,"c":0})", levels);
  });
}
