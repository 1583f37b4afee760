#include "passes/support/Stage.h"

#include <gtest/gtest.h>

using namespace mica;

namespace {

TEST(Stages, NamesRoundTrip) {
  EXPECT_EQ(getStages().size(), kStageCount);
  for (const StageInfo &info : getStages()) {
    EXPECT_EQ(parseStage(info.name), info.stage);
    EXPECT_FALSE(info.help.empty());
    EXPECT_EQ(getStageInfo(info.stage).name, info.name);
  }
  EXPECT_EQ(parseStage("graph"), std::nullopt);
}

} // namespace
