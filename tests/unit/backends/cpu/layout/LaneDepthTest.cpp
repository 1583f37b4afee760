#include "backends/cpu/layout/LaneDepth.h"
#include "ir/Mica/Mica.h"

#include "mlir/AsmParser/AsmParser.h"

#include <gtest/gtest.h>

using namespace mica;

TEST(LaneDepth, ALaneHas32Bits) {
  mlir::MLIRContext context;
  context.loadDialect<MicaDialect>();
  auto depth = [&](llvm::StringRef type) {
    return cpu::laneDepth(mlir::parseType(type, &context));
  };
  EXPECT_EQ(depth("f32"), 1);
  EXPECT_EQ(depth("bf16"), 2);
  EXPECT_EQ(depth("!mica.int8"), 4);
  EXPECT_EQ(depth("!mica.block<int4_g32>"), 4);
}
