//===- SupportTest.cpp - errors as one line -------------------------------===//

#include "tools/support/Support.h"

#include "backends/runtime/support/Report.h"

#include "gtest/gtest.h"

using namespace mica::tool;

namespace {

std::string printed(llvm::StringRef file, llvm::StringRef message, llvm::StringRef other = {}) {
  mica::rt::setProgramName(""); // as in tools
  testing::internal::CaptureStderr();
  EXPECT_EQ(report(file, llvm::createStringError(message), other), kFailed);
  return testing::internal::GetCapturedStderr();
}

TEST(Report, NamesTheFileOnce) {
  EXPECT_EQ(printed("m", "is broken"), "mica: error: m: is broken\n");
  EXPECT_EQ(printed("m", "m/config.json: is broken"), "mica: error: m/config.json: is broken\n");
  EXPECT_EQ(printed("m", "out: is full", "out"), "mica: error: out: is full\n");
}

TEST(Report, AFileWithACommonPrefixIsNotNamed) {
  EXPECT_EQ(printed("m", "must be"), "mica: error: m: must be\n");
  EXPECT_EQ(printed("m", "--max-seq 9 is too large", "-"),
            "mica: error: m: --max-seq 9 is too large\n");
  EXPECT_EQ(printed("m/", "m/config.json: is broken"), "mica: error: m/config.json: is broken\n");
}

TEST(Report, IsOneLineWithoutControlCharacters) {
  EXPECT_EQ(printed("m", "a\nb\x1b[0m\n"), "mica: error: m: a\\nb\\x1b[0m\n");
}

} // namespace
