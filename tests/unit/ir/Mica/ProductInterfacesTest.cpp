#include "ir/Mica/Mica.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"

#include <gmock/gmock.h>

using namespace mlir;
using namespace mica;
using testing::ElementsAre;

namespace {

class ProductInterfaces : public testing::Test {
protected:
  ProductInterfaces() {
    context.loadDialect<MicaDialect, func::FuncDialect>();
    module = parseSourceString<ModuleOp>(R"(
func.func @f(%x: tensor<?x64xf32>, %h: tensor<?x2x64xf32>, %w: tensor<64x64xf32>, %b: tensor<64xf32>,
    %weights: tensor<?x2xf32>, %experts: tensor<?x2xi32>, %gate: tensor<4x64x64xf32>, %up: tensor<4x64x64xf32>,
    %down: tensor<4x64x64xf32>, %heads: tensor<2x64x64xf32>, %cache: !mica.kv_cache<5 x 4 x 8 x f32>, %layer: index) {
  %0 = mica.linear %x, %w bias(%b : tensor<64xf32>) : tensor<?x64xf32>, tensor<64x64xf32> -> tensor<?x64xf32>
  %1 = mica.moe_experts %x, %weights, %experts, %gate, %down up(%up : tensor<4x64x64xf32>)
      residual(%0 : tensor<?x64xf32>) silu inner(64)
      : tensor<?x64xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<4x64x64xf32>, tensor<4x64x64xf32> -> tensor<?x64xf32>
  %2 = mica.head_linear %h, %heads : tensor<?x2x64xf32>, tensor<2x64x64xf32> -> tensor<?x2x64xf32>
  %3 = mica.moe_experts %x, %weights, %experts, %gate, %down up(%up : tensor<4x64x64xf32>)
      silu inner(64)
      : tensor<?x64xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<4x64x64xf32>, tensor<4x64x64xf32> -> tensor<?x64xf32>
  %4 = mica.kv_read %cache[%layer] : !mica.kv_cache<5 x 4 x 8 x f32> -> tensor<?x?x4x8xf32>
  return
})",
                                         &context);
  }

  void SetUp() override {
    ASSERT_TRUE(module);
    function = module->lookupSymbol<func::FuncOp>("f");
    for (Operation &op : function.front())
      ops.push_back(&op);
  }
  Value argument(unsigned index) { return function.getArgument(index); }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  func::FuncOp function;
  std::vector<Operation *> ops;
};

TEST_F(ProductInterfaces, NameRowsAndMatrices) {
  auto linear = cast<MultipliesRows>(ops[0]), experts = cast<MultipliesRows>(ops[1]),
       heads = cast<MultipliesRows>(ops[2]);
  EXPECT_EQ(linear.getMultipliedRows().get(), argument(0));
  EXPECT_THAT(linear.getMatrices(), ElementsAre(argument(2)));
  EXPECT_TRUE(linear.getInnerMatrices().empty());
  EXPECT_THAT(linear.getBiases(), ElementsAre(argument(3)));
  EXPECT_EQ(experts.getMultipliedRows().get(), argument(0));
  EXPECT_THAT(experts.getMatrices(), ElementsAre(argument(6), argument(7)));
  EXPECT_THAT(experts.getInnerMatrices(), ElementsAre(argument(8)));
  EXPECT_TRUE(experts.getBiases().empty());
  EXPECT_THAT(heads.getMatrices(), ElementsAre(argument(9)));
}

TEST_F(ProductInterfaces, ShowKernelSelectionAndResiduals) {
  auto selects = cast<SelectsKernel>(ops[0]);
  EXPECT_FALSE(selects.getKernel());
  selects.setKernel(KernelKind::OneDnn);
  EXPECT_EQ(cast<LinearOp>(ops[0]).getKernel(), KernelKind::OneDnn);
  EXPECT_FALSE(isa<SelectsKernel>(ops[1]) || isa<SelectsKernel>(ops[2]));
  EXPECT_FALSE(cast<AddsResidual>(ops[0]).getResidual());
  EXPECT_EQ(cast<AddsResidual>(ops[1]).getResidual(), ops[0]->getResult(0));
  auto other = cast<AddsResidual>(ops[3]);
  other.getResidualMutable().assign(ops[1]->getResult(0));
  EXPECT_EQ(other.getResidual(), ops[1]->getResult(0));
  EXPECT_FALSE(isa<AddsResidual>(ops[2]));
}

TEST_F(ProductInterfaces, AreNotThoseOfReads) {
  auto read = cast<ReadsState>(ops[4]);
  EXPECT_EQ(read.getState(), argument(10));
  EXPECT_EQ(read.getLayer(), argument(11));
  EXPECT_FALSE(isa<MultipliesRows>(ops[4]) || isa<UpdatesState>(ops[4]));
}

} // namespace
