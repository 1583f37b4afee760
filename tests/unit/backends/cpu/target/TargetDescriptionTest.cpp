//===- TargetDescriptionTest.cpp - targets by name and the native one -----===//

#include "backends/cpu/target/TargetDescription.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mica::cpu;
using testing::HasSubstr;

namespace {

std::string errorOf(llvm::StringRef name) {
  llvm::Expected<TargetDescription> target = describeTarget(name);
  return target ? "" : llvm::toString(target.takeError());
}

TEST(TargetDescription, Level3HasNoAvx512) {
  TargetDescription target = llvm::cantFail(describeTarget("x86-64-v3"));
  EXPECT_EQ(target.cpu, "x86-64-v3");
  EXPECT_EQ(target.vectorBits, 256u);
  EXPECT_TRUE(target.has("avx2") && target.has("fma") && target.has("bmi2"));
  EXPECT_FALSE(target.has("avx512f") || target.bf16Dot || target.int8Dot || target.tiles);
}

TEST(TargetDescription, KnowsFeaturesOfNamedCpus) {
  TargetDescription level4 = llvm::cantFail(describeTarget("x86-64-v4"));
  EXPECT_EQ(level4.vectorBits, 512u);
  EXPECT_FALSE(level4.bf16Dot || level4.int8Dot);
  TargetDescription zen5 = llvm::cantFail(describeTarget("znver5"));
  EXPECT_TRUE(zen5.bf16Dot && zen5.fastBf16Dot && zen5.int8Dot);
  EXPECT_FALSE(zen5.tiles || zen5.prefetchPages);
  TargetDescription alder = llvm::cantFail(describeTarget("alderlake"));
  EXPECT_TRUE(alder.int8Dot && alder.vectorBits == 256);
  TargetDescription rapids = llvm::cantFail(describeTarget("sapphirerapids"));
  EXPECT_TRUE(rapids.bf16Dot && rapids.tiles);
  EXPECT_TRUE(rapids.prefetchPages);
  EXPECT_FALSE(rapids.fastBf16Dot || level4.prefetchPages);
}

/// Levels apply to any vendor.
TEST(TargetDescription, PageInterleavedPrefetchOnIntelOnly) {
  for (llvm::StringRef name : {"haswell", "broadwell", "skylake-avx512", "icelake-server",
                               "cooperlake", "graniterapids", "alderlake"})
    EXPECT_TRUE(llvm::cantFail(describeTarget(name)).prefetchPages) << name.str();
  for (llvm::StringRef name : {"x86-64-v3", "x86-64-v4", "bdver4", "znver1", "znver3", "znver4"})
    EXPECT_FALSE(llvm::cantFail(describeTarget(name)).prefetchPages) << name.str();
}

TEST(TargetDescription, SomeZensPrefetchBlocks) {
  for (llvm::StringRef name : {"znver1", "znver2", "znver3"})
    EXPECT_EQ(llvm::cantFail(describeTarget(name)).prefetchBytes, 2048u) << name.str();
  EXPECT_EQ(llvm::cantFail(describeTarget("znver5")).prefetchBytes, 6144u);
  for (llvm::StringRef name : {"znver4", "x86-64-v3", "x86-64-v4", "haswell", "alderlake"})
    EXPECT_EQ(llvm::cantFail(describeTarget(name)).prefetchBytes, 0u) << name.str();
}

TEST(TargetDescription, AProgramRequiresOnlyFeaturesThatItsCodeUses) {
  TargetDescription rapids = llvm::cantFail(describeTarget("sapphirerapids"));
  for (const char *used :
       {"avx2", "fma", "bmi2", "avx512f", "avx512bf16", "avx512vnni", "amx-tile", "amx-bf16"})
    EXPECT_TRUE(rapids.has(used)) << used;
  for (const char *unused : {"aes", "sha", "rdseed", "xsaves", "clwb"}) {
    EXPECT_FALSE(rapids.has(unused)) << unused;
    EXPECT_THAT(rapids.absent, testing::Contains(unused)) << "the code generator must not use it";
  }
}

TEST(TargetDescription, FeatureStringHasSigns) {
  TargetDescription target;
  target.features = {"avx", "avx2"};
  target.absent = {"sse4a"};
  EXPECT_EQ(target.featureString(), "+avx,+avx2,-sse4a");
}

TEST(TargetDescription, NativeIsMeasured) {
  llvm::Expected<TargetDescription> target = describeTarget("native");
  if (!target) {
    llvm::consumeError(target.takeError());
    GTEST_SKIP() << "this machine is below x86-64-v3";
  }
  EXPECT_NE(target->cpu, "native");
  EXPECT_TRUE(target->has("avx2"));
  for (const std::string &feature : target->absent)
    EXPECT_FALSE(target->has(feature)) << feature;
}

TEST(TargetDescription, RefusesUnknownNamesAndNamesSimilarOnes) {
  EXPECT_THAT(errorOf("zenver5"),
              testing::AllOf(HasSubstr("unknown target 'zenver5'"), HasSubstr("znver5")));
  EXPECT_THAT(errorOf("qqqqqqqqqqqq"), HasSubstr("x86-64-v3, x86-64-v4"));
  EXPECT_THAT(
      errorOf(""),
      testing::EndsWith("unknown target ''; use native or the name of a CPU such as x86-64-v3, "
                        "x86-64-v4, znver4, sapphirerapids"));
}

TEST(TargetDescription, RefusesCpusBelowLevel3) {
  std::string error = errorOf("nehalem");
  std::string missing =
      llvm::StringRef(error).split('(').second.split(" lacks ").second.split(')').first.str();
  EXPECT_THAT(missing, HasSubstr("avx2"));
  EXPECT_EQ(error,
            "target 'nehalem' is below x86-64-v3 (it lacks " + missing + "); use a newer one");
  EXPECT_THAT(errorOf("i386"), HasSubstr("unknown target"));
}

} // namespace
