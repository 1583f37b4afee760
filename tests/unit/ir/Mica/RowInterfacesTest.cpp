#include "ir/Mica/Activations.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"

#include <gmock/gmock.h>

using namespace mlir;
using namespace mica;
using testing::ElementsAre;

namespace {

class RowInterfaces : public testing::Test {
protected:
  RowInterfaces() {
    context.loadDialect<MicaDialect, func::FuncDialect>();
    module = parseSourceString<ModuleOp>(R"(
!cache = !mica.kv_cache<5 x 4 x 8 x f32>
func.func @f(%x: tensor<?x64xf32>, %w: tensor<64xf32>, %b: tensor<64xf32>, %gate: tensor<4x64xf32>, %c: tensor<4xf32>,
    %qkv: tensor<?x128xf32>, %table: tensor<?x2x4xf32>, %k: !cache, %v: !cache, %n: tensor<8xf32>, %layer: index,
    %s: tensor<?xi32>, %p: tensor<?xi32>, %e: tensor<96x64xf32>) {
  %0 = mica.layernorm %x, %w bias(%b : tensor<64xf32>) eps(1.0e-5)
      : tensor<?x64xf32>, tensor<64xf32> -> tensor<?x64xf32>
  %weights, %experts = mica.moe_gate %x, %gate e_score_correction_bias(%c : tensor<4xf32>) sigmoid k(2)
      : tensor<?x64xf32>, tensor<4x64xf32> -> tensor<?x2xf32>, tensor<?x2xi32>
  %q, %k1, %v1 = mica.qkv_append %qkv, %table, %k, %v[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>)
      norms(%n, %n : tensor<8xf32>, tensor<8xf32>) half eps(1.0e-5)
      : tensor<?x128xf32>, tensor<?x2x4xf32>, !cache, !cache -> tensor<?x8x8xf32>
  %4 = mica.add %x, %0 : tensor<?x64xf32>
  %5 = mica.relu2 %x : tensor<?x64xf32>
  %6 = mica.rope_table %p lengths(%s : tensor<?xi32>) rotary_dim(8) theta(1.0e+04)
      scaling(#mica.dynamic_scaling<factor = 4.0, original_context = 2048>) : tensor<?xi32> -> tensor<?x2x4xf32>
  %7 = mica.rope %q, %p half theta(1.0e+04) : tensor<?x8x8xf32>, tensor<?xi32>
  %8 = mica.embedding %s, %e : tensor<?xi32>, tensor<96x64xf32> -> tensor<?x64xf32>
  %9 = mica.select_rows %x, %s : tensor<?x64xf32>, tensor<?xi32> -> tensor<?x64xf32>
  return
})",
                                         &context);
  }

  void SetUp() override {
    ASSERT_TRUE(module);
    for (Operation &op : module->lookupSymbol<func::FuncOp>("f").front())
      ops.push_back(&op);
  }
  Value argument(unsigned index) {
    return module->lookupSymbol<func::FuncOp>("f").getArgument(index);
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  std::vector<Operation *> ops;
};

TEST_F(RowInterfaces, NameVectors) {
  EXPECT_THAT(cast<ReadsVectors>(ops[0]).getVectors(), ElementsAre(argument(1), argument(2)));
  EXPECT_THAT(cast<ReadsVectors>(ops[1]).getVectors(), ElementsAre(Value(), argument(4), Value()));
  EXPECT_THAT(cast<ReadsVectors>(ops[2]).getVectors(), ElementsAre(argument(9), argument(9)));
  EXPECT_FALSE(isa<ReadsVectors>(ops[3]));
}

TEST_F(RowInterfaces, NameTheMatrixOfRouters) {
  auto router = cast<RoutesRows>(ops[1]);
  EXPECT_EQ(router.getGate(), argument(3));
  EXPECT_THAT(router.getVectors(), ElementsAre(Value(), argument(4), Value())) << "as its base";
  EXPECT_FALSE(isa<RoutesRows>(ops[0]));
}

TEST_F(RowInterfaces, NameTheResultThatIsRounded) {
  auto norm = cast<RoundsResult>(ops[0]), append = cast<RoundsResult>(ops[2]);
  EXPECT_EQ(norm.getRoundedResult(), ops[0]->getResult(0));
  EXPECT_TRUE(norm.canQuantizeResult());
  EXPECT_EQ(append.getRoundedResult(), cast<QkvAppendOp>(ops[2]).getQ());
  EXPECT_FALSE(append.canQuantizeResult()) << "it has a part of a row at a time";
  EXPECT_FALSE(isa<RoundsResult>(ops[1]) || isa<RoundsResult>(ops[3]));
}

TEST_F(RowInterfaces, NameActivations) {
  EXPECT_EQ(cast<AppliesActivation>(ops[4]).getActivation(), Activation::Relu2);
  EXPECT_FALSE(isa<AppliesActivation>(ops[3]));
}

TEST(Activations, HaveOpsOfTheSameNames) {
  unsigned number = 0;
  forEachActivationOp([&](auto op) {
    using Op = decltype(op);
    EXPECT_EQ(Op::getActivation(), symbolizeActivation(number++));
    EXPECT_EQ(Op::getOperationName(), ("mica." + stringifyActivation(Op::getActivation())).str());
  });
  EXPECT_EQ(number, getMaxEnumValForActivation() + 1);
}

TEST_F(RowInterfaces, NameTheInputsOfRope) {
  auto table = cast<RotatesByPosition>(ops[5]), rope = cast<RotatesByPosition>(ops[6]);
  EXPECT_EQ(table.getPositions(), argument(12));
  EXPECT_EQ(table.getLengths(), argument(11));
  EXPECT_TRUE(isa<DynamicScalingAttr>(table.getScalingAttr()));
  EXPECT_EQ(rope.getPositions(), argument(12));
  EXPECT_FALSE(rope.getLengths());
  EXPECT_FALSE(rope.getScalingAttr());
  EXPECT_FALSE(isa<RotatesByPosition>(ops[3]));
}

TEST_F(RowInterfaces, NameRolesInAStep) {
  using enum EntryRole;
  using enum StepRows;
  auto rope = cast<HasStepRoles>(ops[6]), select = cast<HasStepRoles>(ops[8]);
  auto isOperand = [](Value value, StepRole role) {
    return testing::AllOf(testing::Field(&StepOperand::value, value),
                          testing::Field(&StepOperand::role, role));
  };
  EXPECT_THAT(rope.getStepRoles(),
              ElementsAre(isOperand(ops[2]->getResult(0), OfTokens),
                          isOperand(argument(12), Positions), isOperand(Value(), Lengths)));
  EXPECT_EQ(rope.getResultRole(), std::nullopt) << "that of its rows";
  EXPECT_THAT(select.getStepRoles(),
              ElementsAre(isOperand(argument(0), OfTokens), isOperand(argument(11), LogitIndices)));
  EXPECT_EQ(select.getResultRole(), StepRole(OfOutputs));
  EXPECT_EQ(cast<HasStepRoles>(ops[5]).getResultRole(), StepRole(OfTokens));
  EXPECT_FALSE(isa<HasStepRoles>(ops[3]));
}

TEST_F(RowInterfaces, NameTheGatheredTable) {
  auto gather = cast<GathersRows>(ops[7]);
  EXPECT_EQ(gather.getTokens(), argument(11));
  EXPECT_EQ(gather.getTable(), argument(13));
  EXPECT_EQ(gather.getTableRows(), 96);
  EXPECT_TRUE(isa<HasStepRoles>(ops[7])) << "as its base";
  EXPECT_FALSE(isa<GathersRows>(ops[8]));
}

} // namespace
