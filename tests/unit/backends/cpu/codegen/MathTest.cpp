//===- MathTest.cpp - polynomials compared with double precision ----------===//

#include "tests/unit/backends/cpu/codegen/CompiledModule.h"

#include "gtest/gtest.h"

#include <cmath>

using namespace mica;
using namespace mica::test;

namespace {

/// y[i] = op x[i], computed by vectors of 16 and by scalars.
std::string modelOf(llvm::StringRef op) {
  std::string text = R"(
    func.func private @k(%begin: index, %end: index, %x: memref<?xf32>, %y: memref<?xf32>, %z: memref<?xf32>) {
      %c1 = arith.constant 1 : index
      %c16 = arith.constant 16 : index
      scf.for %i = %begin to %end step %c1 {
        %at = arith.muli %i, %c16 : index
        %v = vector.load %x[%at] : memref<?xf32>, vector<16xf32>
        %w = math.OP %v : vector<16xf32>
        vector.store %w, %y[%at] : memref<?xf32>, vector<16xf32>
        %s = memref.load %x[%at] : memref<?xf32>
        %r = math.OP %s : f32
        memref.store %r, %z[%i] : memref<?xf32>
      }
      return
    }
    func.func @main(%tokens: memref<?xi32> {mica.role = "tokens"}, %x: memref<?xf32>, %y: memref<?xf32>, %z: memref<?xf32>) {
      %c0 = arith.constant 0 : index
      %n = memref.dim %tokens, %c0 : memref<?xi32>
      exec.launch @k tasks(%n) ins(%x : memref<?xf32>) outs(%y, %z : memref<?xf32>, memref<?xf32>)
      return
    })";
  for (size_t at; (at = text.find("OP")) != std::string::npos;)
    text.replace(at, 2, op);
  return text;
}

/// `count` evenly spaced inputs in [from, to]; `count` is a multiple of 16.
std::vector<float> spread(double from, double to, int count = 16 * 4096) {
  std::vector<float> xs(count);
  for (int i = 0; i < count; ++i)
    xs[i] = float(from + (to - from) * i / (count - 1));
  return xs;
}

std::vector<float> run(const LoadedModel &model, std::vector<float> xs) {
  int64_t size = xs.size(), tasks = size / 16;
  std::vector<int32_t> tokens(tasks);
  std::vector<float> ys(size), zs(tasks);
  Descriptor<1> t(tokens.data(), {tasks}), x(xs.data(), {size}), y(ys.data(), {size}),
      z(zs.data(), {tasks});
  model({&t, &x, &y, &z});
  for (int64_t i = 0; i < tasks; ++i)
    EXPECT_EQ(std::bit_cast<uint32_t>(zs[i]), std::bit_cast<uint32_t>(ys[16 * i]))
        << "scalar differs from vector at " << xs[16 * i];
  return ys;
}

struct Case {
  const char *op;
  double (*exact)(double);
  double from, to;
  double relative, absolute; ///< largest allowed |y - exact| <= relative |exact| + absolute
};

class MathTest : public testing::TestWithParam<Case> {};

TEST_P(MathTest, IsCloseToDoublePrecision) {
  const Case &param = GetParam();
  for (const std::string &target : runnableTargets()) {
    auto object = compile(modelOf(param.op), llvm::cantFail(cpu::describeTarget(target)));
    ASSERT_TRUE(bool(object)) << llvm::toString(object.takeError());
    LoadedModel model(*object, recordingRuntime);
    ASSERT_EQ(model.error, "");
    std::vector<float> xs = spread(param.from, param.to), ys = run(model, xs);
    double worst = 0, where = 0;
    for (size_t i = 0; i < xs.size(); ++i) {
      double exact = param.exact(xs[i]),
             excess = std::abs(ys[i] - exact) - param.relative * std::abs(exact);
      if (!(excess <= worst))
        worst = excess, where = xs[i];
    }
    EXPECT_LE(worst, param.absolute) << target << " at " << where;
  }
}

INSTANTIATE_TEST_SUITE_P(Functions, MathTest,
                         testing::Values(Case{"exp", std::exp, -87, 88, 2.5e-7, 0},
                                         Case{"exp", std::exp, -1, 1, 2.0e-7, 0},
                                         Case{"tanh", std::tanh, -10, 10, 5e-7, 0},
                                         Case{"erf", std::erf, -5, 5, 1e-6, 1e-7},
                                         Case{"log", std::log, 1e-3, 1e4, 3e-7, 1e-7},
                                         Case{"sin", std::sin, -131072, 131072, 1e-7, 1.5e-7},
                                         Case{"cos", std::cos, -131072, 131072, 1e-7, 1.5e-7},
                                         Case{"sin", std::sin, -4, 4, 1e-7, 1e-7},
                                         Case{"cos", std::cos, -4, 4, 1e-7, 1e-7},
                                         Case{"rsqrt", [](double x) { return 1 / std::sqrt(x); },
                                              1e-6, 1e6, 2e-7, 0}),
                         [](const testing::TestParamInfo<Case> &info) {
                           return std::string(info.param.op) + std::to_string(info.index);
                         });

TEST(Math, ExpUnderflowsToZero) {
  auto object = compile(modelOf("exp"), llvm::cantFail(cpu::describeTarget("native")));
  ASSERT_TRUE(bool(object));
  LoadedModel model(*object, recordingRuntime);
  std::vector<float> xs(16, -INFINITY);
  xs[1] = -1000;
  xs[2] = -104;
  std::vector<float> ys = run(model, xs);
  for (float y : ys)
    EXPECT_LT(y, 1.2e-38f);
}

} // namespace
