#include "ir/Mica/EntrySignature.h"
#include "ir/Mica/Mica.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"

#include <gmock/gmock.h>

using namespace mlir;
using namespace mica;
using testing::ElementsAre;

namespace {

class EntrySignatureTest : public testing::Test {
protected:
  EntrySignatureTest() {
    context.loadDialect<MicaDialect, func::FuncDialect>();
    module = parseSourceString<ModuleOp>(R"(
!cache = !mica.kv_cache<2 x 2 x 8 x f32>
func.func private @layer(%x: tensor<?xi32>) { return }
func.func @main(%o: tensor<?xi32> {mica.role = "logit_indices"}, %k: !cache {mica.role = "cache"},
    %p: tensor<?xi32> {mica.role = "positions"}, %t: tensor<?xi32> {mica.role = "tokens"},
    %v: !cache {mica.role = "cache"}, %x: tensor<?x96xf32>)
    -> (!cache {mica.role = "cache"}, tensor<?x96xf32> {mica.role = "logits"}, !cache {mica.role = "cache"}) {
  return %k, %x, %v : !cache, tensor<?x96xf32>, !cache
})",
                                         &context);
  }

  func::FuncOp function(StringRef name) { return module->lookupSymbol<func::FuncOp>(name); }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

/// The number of an argument, -1 for null.
int numberOf(BlockArgument argument) {
  return argument ? static_cast<int>(argument.getArgNumber()) : -1;
}

TEST_F(EntrySignatureTest, FindsArgumentsAndResultsByRole) {
  EntrySignature signature(function("main"));
  EXPECT_EQ(numberOf(signature.argument(EntryRole::Tokens)), 3);
  EXPECT_EQ(numberOf(signature.argument(EntryRole::LogitIndices)), 0);
  EXPECT_EQ(numberOf(signature.argument(EntryRole::Lengths)), -1);
  EXPECT_EQ(numberOf(signature.rowVector()), 2) << "outputs are not rows";
  EXPECT_EQ(signature.argumentRole(1), EntryRole::Cache);
  EXPECT_EQ(signature.argumentRole(5), std::nullopt);
  EXPECT_EQ(signature.result(EntryRole::Logits), 1u);
  EXPECT_EQ(signature.result(EntryRole::Tokens), std::nullopt);
  EXPECT_EQ(signature.resultRole(2), EntryRole::Cache);
  EXPECT_EQ(signature.vocabulary(), 96);
  SmallVector<int> states =
      llvm::map_to_vector(signature.states(), [](BlockArgument state) { return numberOf(state); });
  EXPECT_THAT(states, ElementsAre(1, 4));
  EXPECT_THAT(signature.stateResults(), ElementsAre(0u, 2u));
}

TEST_F(EntrySignatureTest, AnswersForFunctionsWithoutRoles) {
  EntrySignature signature(function("layer"));
  EXPECT_EQ(numberOf(signature.rowVector()), -1);
  EXPECT_EQ(signature.vocabulary(), 0);
  EXPECT_TRUE(signature.states().empty());
  EXPECT_EQ(EntrySignature::roleOf(function("layer").getArgument(0)), std::nullopt);
  EXPECT_EQ(EntrySignature::roleOf(function("main").getArgument(3)), EntryRole::Tokens);
}

TEST_F(EntrySignatureTest, WritesAndErasesRoles) {
  func::FuncOp main = function("main");
  EntrySignature signature(main);
  main.getBody().front().getTerminator()->eraseOperand(1);
  ASSERT_TRUE(succeeded(main.eraseArgument(5)) && succeeded(main.eraseResult(1)));
  EXPECT_TRUE(succeeded(signature.verifyComplete()));
  signature.setArgumentRole(2, EntryRole::Lengths);
  EXPECT_EQ(signature.argumentRole(2), EntryRole::Lengths);
  signature.setResultRole(0, EntryRole::Logits);
  EXPECT_EQ(signature.result(EntryRole::Logits), 0u);
  signature.eraseRoles();
  EXPECT_EQ(numberOf(signature.rowVector()), -1);
  EXPECT_EQ(signature.resultRole(1), std::nullopt);
  ScopedDiagnosticHandler quiet(&context, [](Diagnostic &) { return success(); });
  EXPECT_TRUE(failed(signature.verifyComplete()));
}

/// The number of a role is its row.
TEST(EntryRoles, AreFoundByNameAndNumber) {
  for (const EntryRoleInfo &info : kEntryRoles) {
    EXPECT_EQ(infoOf(info.role).name, info.name);
    EXPECT_EQ(entryRoleNamed(info.name), info.role);
  }
  EXPECT_EQ(entryRoleNamed("pages"), std::nullopt);
}

} // namespace
