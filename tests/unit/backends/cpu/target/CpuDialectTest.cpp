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
  CpuDialectTest() { context.loadDialect<CpuDialect>(); }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module =
      mlir::ModuleOp::create(mlir::UnknownLoc::get(&context));
};

void expectSame(const TargetDescription &got, const TargetDescription &expected) {
  EXPECT_EQ(got.cpu, expected.cpu);
  EXPECT_EQ(got.features, expected.features);
  EXPECT_EQ(got.absent, expected.absent);
#define MICA_TARGET_NUMBER(name, Getter, initial) EXPECT_EQ(got.name, expected.name) << #name;
#define MICA_TARGET_FLAG(name, Getter, parameter, met, needs)                                      \
  EXPECT_EQ(got.name, expected.name) << #name;
#include "backends/cpu/target/TargetFacts.def"
}

/// What the verifier of the attribute says of a target; nothing if it is valid.
std::string refusal(const TargetDescription &target, mlir::MLIRContext &context) {
  std::string message;
  mlir::ScopedDiagnosticHandler handler(
      &context, [&](mlir::Diagnostic &diagnostic) { message = diagnostic.str(); });
  llvm::SmallVector<llvm::StringRef> features(target.features.begin(), target.features.end());
  bool valid =
      bool(TargetAttr::getChecked([&] { return mlir::emitError(mlir::UnknownLoc::get(&context)); },
                                  &context, llvm::StringRef(target.cpu),
#define MICA_TARGET_NUMBER(name, Getter, initial) int64_t{target.name},
#define MICA_TARGET_FLAG(name, Getter, parameter, met, needs) target.name,
#include "backends/cpu/target/TargetFacts.def"
                                  mlir::Builder(&context).getStrArrayAttr(features)));
  EXPECT_EQ(valid, message.empty());
  return message;
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
    EXPECT_EQ(refusal(*target, context), "");
  }
}

/// With one more flag set each time, two that were in each other's place would differ once.
TEST_F(CpuDialectTest, AModuleKeepsEachFlag) {
  TargetDescription target = llvm::cantFail(describeTarget("sapphirerapids"));
#define MICA_TARGET_FLAG(name, Getter, parameter, met, needs) target.name = false;
#include "backends/cpu/target/TargetFacts.def"
#define MICA_TARGET_FLAG(name, Getter, parameter, met, needs)                                      \
  target.name = true;                                                                              \
  setTarget(*module, target);                                                                      \
  expectSame(targetOf(*module), target);                                                           \
  EXPECT_EQ(refusal(target, context), "");
#include "backends/cpu/target/TargetFacts.def"
}

/// Every flag that needs something is refused without it, in the words of the list.
TEST_F(CpuDialectTest, FlagsRequireTheListedFeatures) {
  TargetDescription plain = llvm::cantFail(describeTarget("x86-64-v3")), target;
#define MICA_TARGET_FLAG(name, Getter, parameter, met, needs)                                      \
  target = plain;                                                                                  \
  target.name = true;                                                                              \
  EXPECT_EQ(refusal(target, context), (met) ? "" : parameter " needs " needs);
#include "backends/cpu/target/TargetFacts.def"
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
