//===- CompilerTest.cpp - modules that no frontend has checked ------------===//

#include "backends/cpu/driver/Compiler.h"

#include "tests/unit/Paths.h"

#include "mlir/Parser/Parser.h"

#include "gtest/gtest.h"

using namespace mlir;
using namespace mica;

namespace {

class CompilerTest : public testing::Test {
protected:
  CompilerTest() {
    DialectRegistry registry;
    cpu::registerCompilerDialects(registry);
    context.appendDialectRegistry(registry);
    module = parseSourceFile<ModuleOp>(MICA_SOURCE_DIR "/tests/lit/ir/tiny-model.mlir", &context);
  }

  /// The error of compiling to `stage` without weights.
  std::string errorAt(Stage stage) {
    cpu::CompileOptions options;
    options.emit = stage;
    options.target = llvm::cantFail(cpu::describeTarget("x86-64-v3"));
    auto report = cpu::compile(*module, nullptr, options, "/nowhere/output");
    return report ? "" : llvm::toString(report.takeError());
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

TEST_F(CompilerTest, NeedsADescriptionOfTheModel) {
  ASSERT_TRUE(module);
  (*module)->removeAttr("mica.model");
  EXPECT_EQ(errorAt(Stage::Kernels), "the module has no mica.model with max_positions: "
                                     "add `mica.model = {max_positions = N}` to its attributes");
}

TEST_F(CompilerTest, NeedsWeightsForAProgram) {
  ASSERT_TRUE(module);
  EXPECT_EQ(errorAt(Stage::Exe), "a program needs the model's weights, but the folder has none");
}

} // namespace
