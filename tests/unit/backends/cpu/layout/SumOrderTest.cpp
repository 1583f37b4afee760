#include "backends/cpu/layout/SumOrder.h"

#include <gtest/gtest.h>

using namespace mica;
using namespace mica::cpu;

namespace {

TEST(SumOrder, SumsHaveTheSegmentsOfTheLibrary) {
  auto segment = [](Precision type, int64_t k, llvm::StringRef name) {
    return sumSegment(type, k, llvm::cantFail(cpu::describeTarget(name)));
  };
  for (Precision type : {Precision::F32, Precision::BF16}) {
    EXPECT_EQ(segment(type, 500, "znver5"), 500);
    EXPECT_EQ(segment(type, 1024, "znver5"), 512);
    EXPECT_EQ(segment(type, 1025, "znver5"), 1024);
    EXPECT_EQ(segment(type, 4096, "x86-64-v3"), 4096) << "generated kernels take all products";
  }
  EXPECT_EQ(segment(Precision::BF16, 4096, "x86-64-v4"), 4096) << "not by oneDNN";
  EXPECT_EQ(segment(Precision::BF16, 4096, "sapphirerapids"), 4096) << "by tiles";
  EXPECT_EQ(segment(Precision::F32, 4096, "sapphirerapids"), 1024);
}

} // namespace
