//===- ObjectCacheTest.cpp - a cache of compiled code ---------------------===//

#include "backends/cpu/driver/ObjectCache.h"

#include "backends/cpu/codegen/NativeCode.h"
#include "tests/unit/backends/cpu/codegen/LoadedModel.h"

#include "mlir/Parser/Parser.h"
#include "llvm/AsmParser/Parser.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/SourceMgr.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>

using namespace llvm;
using namespace mica::cpu;

namespace {

class ObjectCacheTest : public testing::Test {
protected:
  ObjectCacheTest() {
    SmallString<128> path;
    EXPECT_FALSE(sys::fs::createUniqueDirectory("objects", path));
    folder = path.str().str();
  }
  ~ObjectCacheTest() override {
    ::unsetenv("MICA_OBJECT_CACHE");
    std::filesystem::remove_all(folder);
  }

  std::unique_ptr<Module> parse(StringRef ir, TargetMachine &machine) {
    SMDiagnostic diagnostic;
    std::unique_ptr<Module> module = parseAssemblyString(ir, diagnostic, context);
    module->setDataLayout(machine.createDataLayout());
    module->setTargetTriple(machine.getTargetTriple());
    return module;
  }
  static std::unique_ptr<TargetMachine> machineFor(StringRef target) {
    return cantFail(createTargetMachine(cantFail(describeTarget(target))));
  }
  std::string pathOf(StringRef key) const { return folder + "/" + key.str() + ".o"; }
  /// Makes `key` look unused for `seconds`.
  void age(StringRef key, int seconds) const {
    timespec times[2] = {};
    times[0].tv_sec = times[1].tv_sec = ::time(nullptr) - seconds;
    ASSERT_EQ(::utimensat(AT_FDCWD, pathOf(key).c_str(), times, 0), 0);
  }

  LLVMContext context;
  std::string folder;
};

constexpr const char *kOne = "define i32 @f() { ret i32 1 }",
                     *kTwo = "define i32 @f() { ret i32 2 }";

TEST_F(ObjectCacheTest, KeysDependOnCodeAndTarget) {
  auto v3 = machineFor("x86-64-v3"), v4 = machineFor("x86-64-v4");
  std::string key = ObjectCache::keyOf(*parse(kOne, *v3), *v3);
  EXPECT_EQ(key, ObjectCache::keyOf(*parse(kOne, *v3), *v3));
  EXPECT_NE(key, ObjectCache::keyOf(*parse(kTwo, *v3), *v3));
  EXPECT_NE(key, ObjectCache::keyOf(*parse(kOne, *v4), *v4));
}

TEST_F(ObjectCacheTest, KeysOfModulesDependOnAttributesAndLocations) {
  mlir::MLIRContext mlirContext;
  mlirContext.allowUnregisteredDialects();
  auto keyOf = [&](StringRef text) {
    auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &mlirContext, "file");
    return ObjectCache::keyOf(*module);
  };
  std::string key = keyOf(R"(module attributes {test.a = 1} {} loc("x"))");
  EXPECT_EQ(key.size(), 16u);
  EXPECT_EQ(key, keyOf(R"(module attributes {test.a = 1} {} loc("x"))"));
  EXPECT_NE(key, keyOf(R"(module attributes {test.a = 2} {} loc("x"))"));
  EXPECT_NE(key, keyOf(R"(module attributes {test.a = 1} {} loc("y"))"));
}

TEST_F(ObjectCacheTest, FindsWhatItStored) {
  ObjectCache cache(folder);
  EXPECT_EQ(cache.find("1"), std::nullopt);
  cantFail(cache.store("1", "object"));
  EXPECT_EQ(cache.find("1"), "object");
  cantFail(cache.store("1", "another"));
  EXPECT_EQ(cache.find("1"), "another");
}

TEST_F(ObjectCacheTest, IgnoresDamagedFiles) {
  ObjectCache cache(folder);
  cantFail(cache.store("1", "an object of some bytes"));
  std::fstream(pathOf("1"), std::ios::in | std::ios::out) << "x";
  EXPECT_EQ(cache.find("1"), std::nullopt);
  for (uint64_t size : {20, 8, 7, 0}) {
    std::filesystem::resize_file(pathOf("1"), size);
    EXPECT_EQ(cache.find("1"), std::nullopt) << size << " bytes";
  }
}

TEST_F(ObjectCacheTest, RemovesTheLeastRecentlyUsed) {
  // Each file has 8 bytes more than its object.
  ObjectCache cache(folder, 40);
  std::ofstream(folder + "/other file") << std::string(100, 'x');
  for (const char *key : {"1", "2", "3"}) {
    cantFail(cache.store(key, "12345"));
    age(key, 1000 - 100 * (key[0] - '0'));
  }
  // A use counts as well.
  EXPECT_EQ(cache.find("1"), "12345");
  cantFail(cache.store("4", "12345"));
  EXPECT_EQ(cache.find("2"), std::nullopt);
  for (const char *key : {"1", "3", "4"})
    EXPECT_EQ(cache.find(key), "12345") << key;
  EXPECT_TRUE(sys::fs::exists(folder + "/other file"));
}

TEST_F(ObjectCacheTest, CompilesOnlyOnce) {
  ObjectCache cache(folder);
  auto machine = machineFor("x86-64-v3");
  auto compiled = [&](StringRef ir, const ObjectCache *objects) {
    return cantFail(mica::test::compileToObject(*parse(ir, *machine), *machine, objects))
        .str()
        .str();
  };
  std::string object = compiled(kOne, &cache);
  EXPECT_EQ(object, compiled(kOne, nullptr));
  EXPECT_NE(object, compiled(kTwo, &cache));
  // The second time, the object is not compiled but read.
  cantFail(cache.store(ObjectCache::keyOf(*parse(kOne, *machine), *machine), "from the cache"));
  EXPECT_EQ(compiled(kOne, &cache), "from the cache");
}

TEST_F(ObjectCacheTest, ReportsWhatCannotBeWritten) {
  Error error = ObjectCache(folder + "/missing").store("1", "object");
  EXPECT_THAT(toString(std::move(error)),
              testing::AllOf(testing::StartsWith(folder + "/missing/1.o: "),
                             testing::HasSubstr("set MICA_OBJECT_CACHE to another folder")));
}

TEST_F(ObjectCacheTest, FolderIsAVariableOfTheEnvironment) {
  ::unsetenv("MICA_OBJECT_CACHE");
  EXPECT_EQ(cantFail(ObjectCache::fromEnvironment()).has_value(), false);
  ::setenv("MICA_OBJECT_CACHE", "", 1);
  EXPECT_EQ(cantFail(ObjectCache::fromEnvironment()).has_value(), false);
  ::setenv("MICA_OBJECT_CACHE", folder.c_str(), 1);
  std::optional<ObjectCache> cache = cantFail(ObjectCache::fromEnvironment());
  ASSERT_TRUE(cache);
  cantFail(cache->store("1", "object"));
  EXPECT_TRUE(sys::fs::exists(pathOf("1")));
  ::setenv("MICA_OBJECT_CACHE", (folder + "/missing").c_str(), 1);
  EXPECT_EQ(toString(ObjectCache::fromEnvironment().takeError()),
            "MICA_OBJECT_CACHE: " + folder +
                "/missing is not a folder; create it or set another one");
}

} // namespace
