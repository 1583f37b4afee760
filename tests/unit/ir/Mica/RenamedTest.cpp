//===- RenamedTest.cpp - names of earlier versions of the IR --------------===//

#include "ir/Mica/Renamed.h"
#include "tests/unit/Paths.h"

#include "llvm/Support/MemoryBuffer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mica;
using testing::HasSubstr;

namespace {

TEST(Renamed, NamesAreUniqueAndCurrent) {
  for (const Renaming &renaming : renamings()) {
    EXPECT_TRUE(renamedTo(renaming.to).empty()) << renaming.to.str() << " was renamed again";
    EXPECT_EQ(renamedTo(renaming.from), renaming.to) << renaming.from.str() << " occurs twice";
  }
  EXPECT_EQ(renamedTo("mica.rmsnorm"), "");
  EXPECT_EQ(renamedHint("gain_offset"), "; it was renamed to 'weight_offset'");
  EXPECT_EQ(renamedHint("eps"), "");
}

/// `!mica.int8` is still a type, but only of cached keys and values (invalid-quantized.mlir).
constexpr llvm::StringLiteral kNarrowedTypes[] = {
    "| type of weights | `!mica.int8` | `!mica.block<int8_g32>` |",
    "| type of activations | `!mica.int8` | `!mica.int_rows` |",
};

TEST(Renamed, TheDocumentationListsThem) {
  auto file = llvm::MemoryBuffer::getFile(MICA_SOURCE_DIR "/docs/ir-changes.md");
  ASSERT_TRUE(bool(file)) << file.getError().message();
  std::string text = (*file)->getBuffer().str();
  for (const Renaming &renaming : renamings())
    EXPECT_THAT(text, HasSubstr(("| `" + renaming.from + "` | `" + renaming.to + "` |").str()));
  for (llvm::StringRef row : kNarrowedTypes)
    EXPECT_THAT(text, HasSubstr(row.str()));
}

} // namespace
