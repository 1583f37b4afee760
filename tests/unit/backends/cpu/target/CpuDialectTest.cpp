//===- CpuDialectTest.cpp - targets as attributes of modules --------------===//

#include "backends/cpu/target/CpuDialect.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/IR/Verifier.h"

#include "gtest/gtest.h"

using namespace mica::cpu;

namespace {

class CpuDialectTest : public testing::Test {
protected:
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module =
      mlir::ModuleOp::create(mlir::UnknownLoc::get(&context));
};

void expectSame(const TargetDescription &got, const TargetDescription &expected) {
  EXPECT_EQ(got.cpu, expected.cpu);
  EXPECT_EQ(got.features, expected.features);
  EXPECT_EQ(got.absent, expected.absent);
  EXPECT_EQ(got.vectorBits, expected.vectorBits);
  EXPECT_EQ(got.bf16Dot, expected.bf16Dot);
  EXPECT_EQ(got.fastBf16Dot, expected.fastBf16Dot);
  EXPECT_EQ(got.int8Dot, expected.int8Dot);
  EXPECT_EQ(got.tiles, expected.tiles);
  EXPECT_EQ(got.prefetchPages, expected.prefetchPages);
  EXPECT_EQ(got.prefetchBytes, expected.prefetchBytes);
}

TEST_F(CpuDialectTest, AModuleKeepsAllOfATarget) {
  for (llvm::StringRef name : {"native", "x86-64-v3", "x86-64-v4", "znver5", "skylake-avx512",
                               "cooperlake", "sapphirerapids", "alderlake", "znver3"}) {
    SCOPED_TRACE(name.str());
    llvm::Expected<TargetDescription> target = describeTarget(name);
    if (!target) {
      EXPECT_EQ(name, "native") << llvm::toString(target.takeError());
      continue;
    }
    setTarget(*module, *target);
    EXPECT_TRUE(succeeded(mlir::verify(*module)));
    expectSame(targetOf(*module), *target);
    auto attribute = module.get()->getAttrOfType<TargetAttr>(kTargetAttr);
    // Again with the verifier, which `get` does not run.
    EXPECT_TRUE(TargetAttr::getChecked(
        [&] { return mlir::emitError(module->getLoc()); }, &context, attribute.getCpu(),
        attribute.getVectorBits(), attribute.getBf16Dot(), attribute.getFastBf16Dot(),
        attribute.getInt8Dot(), attribute.getTiles(), attribute.getPrefetchPages(),
        attribute.getPrefetchBytes(), attribute.getFeatures()));
  }
}

TEST_F(CpuDialectTest, OpsHaveTheTargetOfTheirModule) {
  setTarget(*module, llvm::cantFail(describeTarget("znver5")));
  auto builder = mlir::OpBuilder::atBlockEnd(module->getBody());
  mlir::Operation *op = mlir::UnrealizedConversionCastOp::create(
      builder, module->getLoc(), builder.getI32Type(), mlir::ValueRange());
  EXPECT_EQ(targetOf(op).cpu, "znver5");
}

TEST_F(CpuDialectTest, AModuleWithoutATargetHasTheDefault) {
  expectSame(targetOf(*module), llvm::cantFail(describeTarget("x86-64-v4")));
}

} // namespace
