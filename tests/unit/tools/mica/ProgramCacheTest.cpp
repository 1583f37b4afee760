//===- ProgramCacheTest.cpp - caching, waiting, eviction ------------------===//

#include "tools/mica/ProgramCache.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <atomic>
#include <chrono>
#include <future>
#include <thread>

using namespace mica::tool;

namespace {

class ProgramCacheTest : public testing::Test {
protected:
  ProgramCacheTest() { EXPECT_FALSE(llvm::sys::fs::createUniqueDirectory("mica-cache", folder)); }
  ~ProgramCacheTest() override { llvm::sys::fs::remove_directories(folder); }

  std::string path(llvm::StringRef name) const { return (folder + "/" + name).str(); }
  static llvm::Error write(llvm::StringRef path, size_t bytes) {
    std::error_code error;
    llvm::raw_fd_ostream stream(path, error);
    stream << std::string(bytes, 'x');
    return llvm::errorCodeToError(error);
  }
  /// Requests `key`, writing `bytes` if it is new. Returns whether it was.
  bool get(ProgramCache &cache, llvm::StringRef key, size_t bytes) {
    bool made = false;
    auto isWhole = [&](const std::string &) { return whole; };
    auto result = cache.get(key, isWhole, [&](llvm::StringRef target) {
      EXPECT_FALSE(llvm::sys::fs::exists(target));
      made = true;
      return write(target, bytes);
    });
    EXPECT_TRUE(bool(result)) << llvm::toString(result.takeError());
    EXPECT_TRUE(llvm::sys::fs::exists(path(key)));
    // Times of use are different.
    std::this_thread::sleep_for(std::chrono::milliseconds(15));
    return made;
  }

  llvm::SmallString<128> folder;
  bool whole = true; ///< whether an existing program is intact
};

bool always(const std::string &) { return true; }

TEST_F(ProgramCacheTest, CompilesAProgramOnce) {
  ProgramCache cache(folder.str().str(), 1000);
  EXPECT_TRUE(get(cache, "a", 10));
  EXPECT_FALSE(get(cache, "a", 10));
  EXPECT_TRUE(get(cache, "b", 10));
}

TEST_F(ProgramCacheTest, EvictsLeastRecentlyUsed) {
  ProgramCache cache(folder.str().str(), 250);
  get(cache, "a", 100);
  get(cache, "b", 100);
  get(cache, "a", 100);
  get(cache, "c", 100);
  EXPECT_TRUE(llvm::sys::fs::exists(path("a")));
  EXPECT_FALSE(llvm::sys::fs::exists(path("b")));
  EXPECT_TRUE(llvm::sys::fs::exists(path("c")));
}

TEST_F(ProgramCacheTest, KeepsTheRequestedProgramEvenIfItIsTooLarge) {
  ProgramCache cache(folder.str().str(), 50);
  get(cache, "a", 100);
  get(cache, "b", 100);
  EXPECT_FALSE(llvm::sys::fs::exists(path("a")));
}

TEST_F(ProgramCacheTest, RecompilesADamagedProgram) {
  ProgramCache cache(folder.str().str(), 1000);
  EXPECT_TRUE(get(cache, "a", 10));
  whole = false;
  EXPECT_TRUE(get(cache, "a", 20));
  uint64_t bytes = 0;
  ASSERT_FALSE(llvm::sys::fs::file_size(path("a"), bytes));
  EXPECT_EQ(bytes, 20u);
}

TEST_F(ProgramCacheTest, AFileThatIsNotAProgramIsNotIntact) {
  EXPECT_FALSE(isWholeProgram(path("none")));
  ASSERT_FALSE(bool(write(path("a"), 10000)));
  EXPECT_FALSE(isWholeProgram(path("a")));
}

TEST_F(ProgramCacheTest, TemporaryFilesOfRunningProcessesAreKeptAndNotCounted) {
  ProgramCache cache(folder.str().str(), 250), other(folder.str().str(), 250);
  get(cache, "b", 100);
  auto make = [&](llvm::StringRef target) {
    EXPECT_FALSE(bool(write(path(".z.mica-1.tmp"), 1000)));
    get(cache, "a", 100);
    EXPECT_TRUE(llvm::sys::fs::exists(path(".z.mica-1.tmp")));
    EXPECT_TRUE(llvm::sys::fs::exists(path("b")));
    return write(target, 10);
  };
  llvm::cantFail(other.get("z", always, make));
}

TEST_F(ProgramCacheTest, TemporaryFilesOfDeadProcessesAreRemoved) {
  ProgramCache cache(folder.str().str(), 250);
  for (llvm::StringRef name : {".z.mica-1.tmp", ".z.mica-2.tmp", ".a.mica-1.tmp", "y.lock"})
    ASSERT_FALSE(bool(write(path(name), name.ends_with(".lock") ? 0 : 1000)));
  get(cache, "b", 100);
  get(cache, "a", 100);
  std::error_code error;
  std::vector<std::string> left;
  for (llvm::sys::fs::directory_iterator it(folder, error), end; it != end; it.increment(error))
    left.push_back(llvm::sys::path::filename(it->path()).str());
  EXPECT_THAT(left, testing::UnorderedElementsAre("a", "a.lock", "b", "b.lock"));
}

TEST_F(ProgramCacheTest, ProgramsAreListedAndRemoved) {
  ProgramCache cache(folder.str().str(), 1000);
  get(cache, "a", 10);
  get(cache, "b", 20);
  get(cache, "a", 10);
  std::vector<CachedProgram> programs = cache.programs();
  ASSERT_EQ(programs.size(), 2u);
  EXPECT_EQ(programs[0].name, "b");
  EXPECT_EQ(programs[0].bytes, 20u);
  EXPECT_EQ(programs[1].path, path("a"));
  EXPECT_FALSE(bool(cache.remove(programs[0])));
  EXPECT_FALSE(llvm::sys::fs::exists(path("b")));
  EXPECT_FALSE(llvm::sys::fs::exists(path("b.lock")));
  EXPECT_EQ(cache.programs().size(), 1u);
  EXPECT_TRUE(ProgramCache(path("none"), 1).programs().empty());
}

TEST_F(ProgramCacheTest, AProgramInUseIsNotRemoved) {
  ProgramCache cache(folder.str().str(), 1000);
  llvm::cantFail(cache.get("a", always, [&](llvm::StringRef target) {
    llvm::Error refused = cache.remove({{path("a")}, "a"});
    EXPECT_THAT(llvm::toString(std::move(refused)),
                testing::HasSubstr(": is in use by `mica run` (Resource temporarily unavailable); "
                                   "try again later"));
    return write(target, 10);
  }));
}

TEST_F(ProgramCacheTest, AFailureIsReportedAndRetried) {
  ProgramCache cache(folder.str().str(), 1000);
  auto result =
      cache.get("a", always, [](llvm::StringRef) { return llvm::createStringError("no"); });
  ASSERT_FALSE(bool(result));
  EXPECT_EQ(llvm::toString(result.takeError()), "no");
  EXPECT_TRUE(get(cache, "a", 10));
}

/// The number of open descriptors of this process for this path.
int numOpen(llvm::StringRef path) {
  int count = 0;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator it("/proc/self/fd", error), end; it != end && !error;
       it.increment(error)) {
    llvm::SmallString<128> target;
    count += !llvm::sys::fs::real_path(it->path(), target) && target == path;
  }
  return count;
}

TEST_F(ProgramCacheTest, ASecondCallerWaitsForTheFirst) {
  ProgramCache first(folder.str().str(), 1000), second(folder.str().str(), 1000);
  llvm::SmallString<128> lockFile;
  ASSERT_FALSE(llvm::sys::fs::real_path(folder, lockFile));
  lockFile += "/a.lock";
  std::promise<void> begun;
  std::atomic<bool> written = false;
  // It ends once the second caller waits for the lock, or later.
  auto make = [&](llvm::StringRef target) {
    begun.set_value();
    auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (numOpen(lockFile) < 2 && std::chrono::steady_clock::now() < end)
      std::this_thread::yield();
    EXPECT_EQ(numOpen(lockFile), 2);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    written = true;
    return write(target, 10);
  };
  std::thread other([&] { EXPECT_EQ(llvm::cantFail(first.get("a", always, make)), path("a")); });
  begun.get_future().wait();
  auto makeAgain = [&](llvm::StringRef target) {
    ADD_FAILURE() << "the second caller did not wait, or did not see the program";
    return write(target, 20);
  };
  EXPECT_EQ(llvm::cantFail(second.get("a", always, makeAgain)), path("a"));
  EXPECT_TRUE(written);
  other.join();
}

TEST_F(ProgramCacheTest, TheKeyDependsOnFilesAndOptions) {
  auto key = [&](llvm::StringRef options) { return llvm::cantFail(cacheKey(folder, options, {})); };
  ASSERT_FALSE(bool(write(path("config.json"), 10)));
  std::string before = key("o");
  EXPECT_EQ(before.size(), 16u);
  EXPECT_EQ(key("o"), before);
  EXPECT_NE(key("p"), before);
  ASSERT_FALSE(bool(write(path("notes.md"), 10)));
  EXPECT_EQ(key("o"), before);
  ASSERT_FALSE(bool(write(path("model.safetensors"), 10)));
  EXPECT_NE(key("o"), before);
  ASSERT_FALSE(bool(write(path("config.json"), 11)));
  EXPECT_NE(key("o"), before);
}

TEST_F(ProgramCacheTest, TheKeyDependsOnNamedTemplates) {
  auto key = [&] { return llvm::cantFail(cacheKey(folder, "o", {})); };
  std::string without = key();
  ASSERT_FALSE(llvm::sys::fs::create_directories(path("additional_chat_templates")));
  ASSERT_FALSE(bool(write(path("additional_chat_templates/tool_use.jinja"), 3)));
  std::string with = key();
  EXPECT_NE(with, without);
  ASSERT_FALSE(bool(write(path("additional_chat_templates/tool_use.jinja"), 4)));
  EXPECT_NE(key(), with);
}

TEST_F(ProgramCacheTest, TheKeyDependsOnCompilerAndLauncher) {
  ASSERT_FALSE(bool(write(path("config.json"), 10)));
  llvm::SmallString<128> tools;
  ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("mica-tools", tools));
  llvm::scope_exit cleanup([&] { llvm::sys::fs::remove_directories(tools); });
  std::string compiler = (tools + "/mica").str(), launcher = (tools + "/launcher").str();
  ASSERT_FALSE(bool(write(compiler, 10)));
  ASSERT_FALSE(bool(write(launcher, 10)));
  auto key = [&] { return llvm::cantFail(cacheKey(folder, "o", {compiler, launcher})); };
  std::string before = key();
  EXPECT_EQ(key(), before);
  ASSERT_FALSE(bool(write(launcher, 11)));
  std::string otherLauncher = key();
  EXPECT_NE(otherLauncher, before);
  ASSERT_FALSE(bool(write(compiler, 11)));
  EXPECT_NE(key(), otherLauncher);
  // A missing tool is an error that names it.
  llvm::sys::fs::remove(launcher);
  auto none = cacheKey(folder, "o", {compiler, launcher});
  ASSERT_FALSE(bool(none));
  EXPECT_THAT(llvm::toString(none.takeError()), testing::HasSubstr(launcher));
}

} // namespace
