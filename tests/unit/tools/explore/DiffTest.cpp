//===- DiffTest.cpp - manifests of compared programs ----------------------===//

#include "tools/explore/Diff.h"

#include "gtest/gtest.h"

using namespace mica::explore;

namespace {

std::string failure(llvm::StringRef manifest) {
  llvm::Expected<llvm::json::Object> parsed = parseManifestJson(manifest, "smol");
  return parsed ? "no error" : llvm::toString(parsed.takeError());
}

TEST(DiffManifest, IsAJsonObject) {
  EXPECT_EQ(failure(R"({"name": "smol"})"), "no error");
  EXPECT_EQ(failure("{"), "smol: has a manifest that is not JSON; compile it again");
  EXPECT_EQ(failure("[]"), "smol: has a manifest that is not an object; compile it again");
}

} // namespace
