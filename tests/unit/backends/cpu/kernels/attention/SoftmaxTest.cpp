//===- SoftmaxTest.cpp - 2^x compared with double precision ---------------===//

#include "backends/cpu/kernels/attention/Softmax.h"
#include "ir/Exec/Exec.h"
#include "tests/unit/backends/cpu/kernels/attention/KernelText.h"

#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

#include <cmath>

using namespace mlir;
using namespace mica;
using namespace mica::test;

namespace {

/// y[i] = 2^x[i], one task per 16 elements.
std::string textOf(const cpu::TargetDescription &target) {
  std::unique_ptr<MLIRContext> context = makeKernelContext();
  context->loadAllAvailableDialects();
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(R"(
    func.func @main(%tokens: memref<?xi32> {mica.role = "tokens"}, %x: memref<?xf32>, %y: memref<?xf32>) {
      %c0 = arith.constant 0 : index
      %n = memref.dim %tokens, %c0 : memref<?xi32>
      exec.launch @exp2 tasks(%n) ins(%x : memref<?xf32>) outs(%y : memref<?xf32>)
      return
    })",
                                  ParserConfig(context.get(), /*verifyAfterParse=*/false));
  cpu::KernelLibrary kernels(*module, target);
  Type buffer = MemRefType::get(ShapedType::kDynamic, Float32Type::get(context.get()));
  auto identity = exec::KernelAttr::get(context.get(), "exp2", ArrayAttr::get(context.get(), {}));
  kernels.getOrCreate(identity, {buffer, buffer}, module->getLoc(),
                      [](cpu::KernelBuilder &b, ValueRange args) {
                        b.loop(args[0], args[1], 1, [&](Value task) {
                          Value at = b.mul(task, cpu::kLanes);
                          b.storeVector(emitExp2(b, b.loadVector(args[2], at)), args[3], at);
                        });
                      },
                      /*cost=*/{});
  std::string text;
  llvm::raw_string_ostream(text) << *module;
  return text;
}

class Exp2 : public testing::TestWithParam<std::string> {
protected:
  void SetUp() override {
    auto target = llvm::cantFail(cpu::describeTarget(GetParam()));
    model = std::make_unique<LoadedModel>(llvm::cantFail(compile(textOf(target), target)),
                                          recordingRuntime);
    ASSERT_EQ(model->error, "");
  }

  std::vector<float> run(std::vector<float> xs) {
    int64_t size = xs.size(), tasks = size / cpu::kLanes;
    EXPECT_EQ(size % cpu::kLanes, 0);
    std::vector<int32_t> tokens(tasks);
    std::vector<float> ys(size, NAN);
    Descriptor<1> t(tokens.data(), {tasks}), x(xs.data(), {size}), y(ys.data(), {size});
    (*model)({&t, &x, &y});
    return ys;
  }
  float run(float x) { return run(std::vector<float>(cpu::kLanes, x)).front(); }

  std::unique_ptr<LoadedModel> model;
};

// All of [-1/2, 0] in steps of its coarsest unit in the last place, then every 2^-14 down to -126.
TEST_P(Exp2, IsCloseToDoublePrecision) {
  std::vector<float> xs;
  for (int64_t i = 0; i < (1 << 24); ++i)
    xs.push_back(static_cast<float>(-i) * 0x1p-25f);
  for (int64_t i = 0; i < 126 << 14; ++i)
    xs.push_back(static_cast<float>(-i) * 0x1p-14f);
  xs.resize(xs.size() / cpu::kLanes * cpu::kLanes);
  std::vector<float> ys = run(xs);
  double worst = 0, where = 0;
  for (auto [x, y] : llvm::zip_equal(xs, ys)) {
    double exact = std::exp2(double(x)), off = std::abs(y - exact) / exact;
    if (!(off <= worst)) {
      worst = off;
      where = x;
    }
  }
  RecordProperty("worst", std::to_string(worst * 1e9));
  EXPECT_LE(worst, 5.5e-7) << "at " << where;
}

TEST_P(Exp2, IsExactAtIntegers) {
  for (int n = 0; n > -127; --n)
    EXPECT_EQ(run(static_cast<float>(n)), std::ldexp(1.0f, n)) << n;
}

// Masked scores result in zero: no subnormal numbers, no signs, no NaN.
TEST_P(Exp2, IsZeroFarBelow) {
  for (float x : {-127.0f, -127.5f, -128.0f, -150.0f, -1e10f, -1e20f, -1e30f, -3e38f, -INFINITY})
    EXPECT_EQ(llvm::bit_cast<uint32_t>(run(x)), 0u) << x;
}

// In between are the smallest normal numbers: the error is less than the smallest of them.
TEST_P(Exp2, DoesNotWrapAroundBelowTheSmallest) {
  std::vector<float> xs;
  for (int64_t i = 0; i < (1 << 16); ++i)
    xs.push_back(-126.0f - static_cast<float>(i) * 0x1p-16f);
  for (auto [x, y] : llvm::zip_equal(xs, run(xs))) {
    EXPECT_GE(y, 0) << x;
    EXPECT_LE(std::abs(y - std::exp2(double(x))), 0x1p-126) << x;
  }
}

// The highest score of a block may exceed the maximum by a rounding error, because the maximum was
// rounded separately.
TEST_P(Exp2, IsGoodBarelyAboveZero) {
  for (float x : {0x1p-24f, 0x1p-12f, 0.25f, 1.0f})
    EXPECT_NEAR(run(x), std::exp2(double(x)), 5.5e-7 * std::exp2(double(x)));
}

TEST_P(Exp2, KeepsNaN) { EXPECT_TRUE(std::isnan(run(NAN))); }

INSTANTIATE_TEST_SUITE_P(On, Exp2, testing::ValuesIn(runnableTargets({"native", "x86-64-v3"})));

} // namespace
