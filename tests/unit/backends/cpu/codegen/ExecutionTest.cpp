//===- ExecutionTest.cpp - modules at stage loops on several targets ------===//

#include "tests/unit/backends/cpu/codegen/CompiledModule.h"

#include "backends/cpu/codegen/NativeCode.h"
#include "backends/cpu/codegen/Passes.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mica;
using namespace mica::test;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

cpu::TargetDescription targetNamed(llvm::StringRef name) {
  return llvm::cantFail(cpu::describeTarget(name));
}

std::vector<char> compiled(llvm::StringRef text, llvm::StringRef target) {
  auto object = compile(text, targetNamed(target));
  if (!object) {
    ADD_FAILURE() << target.str() << ": " << llvm::toString(object.takeError());
    return {};
  }
  return {object->begin(), object->end()};
}

// y = W x for a packed W of [2][k][16][1] by tasks of 16 rows, with an accumulator on the stack
// within the loop; an entry for a single token, and a general one, which scales by a table.
constexpr llvm::StringLiteral kModel = R"(
module {
  memref.global "private" constant @table : memref<2xf32> = dense<[2.0, 3.0]>
  func.func private @gemv(%begin: index, %end: index, %w: memref<2x8x16xf32> {llvm.noalias}, %x: memref<?x8xf32> {llvm.noalias},
                          %y: memref<?x32xf32> {llvm.noalias}) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %zero = arith.constant dense<0.0> : vector<16xf32>
    %rows = memref.dim %x, %c0 : memref<?x8xf32>
    scf.for %b = %begin to %end step %c1 {
      scf.for %r = %c0 to %rows step %c1 {
        %sum = memref.alloca() : memref<16xf32>
        vector.store %zero, %sum[%c0] : memref<16xf32>, vector<16xf32>
        scf.for %k = %c0 to %c8 step %c1 {
          %row = vector.load %w[%b, %k, %c0] : memref<2x8x16xf32>, vector<16xf32>
          %value = memref.load %x[%r, %k] : memref<?x8xf32>
          %splat = vector.broadcast %value : f32 to vector<16xf32>
          %old = vector.load %sum[%c0] : memref<16xf32>, vector<16xf32>
          %new = vector.fma %row, %splat, %old : vector<16xf32>
          vector.store %new, %sum[%c0] : memref<16xf32>, vector<16xf32>
        }
        %all = vector.load %sum[%c0] : memref<16xf32>, vector<16xf32>
        %column = arith.muli %b, %c16 : index
        vector.store %all, %y[%r, %column] : memref<?x32xf32>, vector<16xf32>
      }
    }
    return
  }
  func.func private @scale(%begin: index, %end: index, %layer: index, %y: memref<?x32xf32, strided<[32, 1], offset: ?>>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %g = memref.get_global @table : memref<2xf32>
    %f = memref.load %g[%layer] : memref<2xf32>
    scf.for %i = %begin to %end step %c1 {
      scf.for %j = %c0 to %c32 step %c1 {
        %v = memref.load %y[%i, %j] : memref<?x32xf32, strided<[32, 1], offset: ?>>
        %s = arith.mulf %v, %f : f32
        memref.store %s, %y[%i, %j] : memref<?x32xf32, strided<[32, 1], offset: ?>>
      }
    }
    return
  }
  func.func private @layer(%x: memref<?x8xf32>, %w: memref<?xi8>, %y: memref<?x32xf32>) {
    %c2 = arith.constant 2 : index
    %c64 = arith.constant 64 : index
    %view = memref.view %w[%c64][] : memref<?xi8> to memref<2x8x16xf32>
    exec.launch @gemv tasks(%c2) ins(%view, %x : memref<2x8x16xf32>, memref<?x8xf32>) outs(%y : memref<?x32xf32>)
    return
  }
  func.func @main_large(%tokens: memref<?xi32> {mica.role = "tokens"}, %x: memref<?x8xf32>, %w: memref<?xi8>, %y: memref<?x32xf32>) {
    func.call @layer(%x, %w, %y) : (memref<?x8xf32>, memref<?xi8>, memref<?x32xf32>) -> ()
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %rows = memref.dim %tokens, %c0 : memref<?xi32>
    %rest = arith.subi %rows, %c1 : index
    %tail = memref.subview %y[1, 0] [%rest, 32] [1, 1] : memref<?x32xf32> to memref<?x32xf32, strided<[32, 1], offset: 32>>
    scf.for %l = %c0 to %c2 step %c1 {
      exec.launch @scale tasks(%rest) ins(%l : index) outs(%tail : memref<?x32xf32, strided<[32, 1], offset: 32>>)
    }
    return
  }
  func.func @main_one(%tokens: memref<?xi32> {mica.role = "tokens"}, %x: memref<?x8xf32>, %w: memref<?xi8>, %y: memref<?x32xf32>)
      attributes {mica.max_rows = 1 : i64} {
    func.call @layer(%x, %w, %y) : (memref<?x8xf32>, memref<?xi8>, memref<?x32xf32>) -> ()
    return
  }
}
)";

struct ModelData {
  std::vector<float> weights = std::vector<float>(16 + 2 * 8 * 16), x, y, expected;
  explicit ModelData(int64_t rows) : x(rows * 8), y(rows * 32), expected(rows * 32) {
    for (size_t i = 16; i < weights.size(); ++i)
      weights[i] = float(i % 7) - 3;
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = float(i % 5) - 2;
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t n = 0; n < 32; ++n) {
        float sum = 0;
        for (int64_t k = 0; k < 8; ++k)
          sum += weights[16 + (n / 16 * 8 + k) * 16 + n % 16] * x[r * 8 + k];
        expected[r * 32 + n] = r == 0 ? sum : sum * 6;
      }
  }
};

/// Ensures that there is at least one target: code for this processor runs on it.
TEST(Execution, NativeIsATarget) { EXPECT_THAT(runnableTargets(), testing::Contains("native")); }

TEST(Execution, ModelOfTwoEntriesOnEveryTarget) {
  for (const std::string &target : runnableTargets()) {
    SCOPED_TRACE(target);
    LoadedModel model(compiled(kModel, target), recordingRuntime);
    ASSERT_EQ(model.error, "");
    for (int64_t rows : {1, 2, 5}) {
      ModelData data(rows);
      std::vector<int32_t> tokens(rows);
      Descriptor<1> t(tokens.data(), {rows}),
          w(data.weights.data(), {int64_t(data.weights.size() * 4)});
      Descriptor<2> x(data.x.data(), {rows, 8}), y(data.y.data(), {rows, 32});
      calls.clear();
      model({&t, &x, &w, &y});
      EXPECT_EQ(data.y, data.expected);
      // A launch of the matmuls and, with several rows, one scaling per layer.
      EXPECT_EQ(calls.tasks, rows == 1 ? std::vector<int64_t>{2}
                                       : (std::vector<int64_t>{2, rows - 1, rows - 1}));
    }
  }
}

TEST(Execution, ProductsGetAddressesAndStrides) {
  LoadedModel model(compiled(R"(
    func.func @main(%tokens: memref<?xi32> {mica.role = "tokens"}, %x: memref<?x80xbf16>, %w: memref<?xi8>, %y: memref<?x100xf32>) {
      %c0 = arith.constant 0 : index
      %c64 = arith.constant 64 : index
      %rows = memref.dim %tokens, %c0 : memref<?xi32>
      %part = memref.subview %x[0, 40] [%rows, 40] [1, 1] : memref<?x80xbf16> to memref<?x40xbf16, strided<[80, 1], offset: 40>>
      %view = memref.view %w[%c64][] : memref<?xi8> to memref<2x32x64x2xbf16>
      exec.matmul accumulate k(40) n(100) ins(%part, %view : memref<?x40xbf16, strided<[80, 1], offset: 40>>, memref<2x32x64x2xbf16>)
          outs(%y : memref<?x100xf32>)
      return
    })",
                             "native"),
                    recordingRuntime);
  ASSERT_EQ(model.error, "");
  std::vector<int32_t> tokens(3);
  std::vector<uint16_t> xs(3 * 80);
  std::vector<uint8_t> weights(64);
  std::vector<float> ys(300);
  Descriptor<1> t(tokens.data(), {3}), w(weights.data(), {64});
  Descriptor<2> x(xs.data(), {3, 80}), y(ys.data(), {3, 100});
  calls.clear();
  model({&t, &x, &w, &y});
  ASSERT_EQ(calls.products.size(), 1u);
  const RuntimeCalls::Matmul &call = calls.products.front();
  EXPECT_EQ(call.a, xs.data() + 40);
  EXPECT_EQ(call.w, weights.data() + 64);
  EXPECT_EQ(call.c, ys.data());
  EXPECT_THAT((std::vector<int64_t>{call.m, call.n, call.k, call.lda, call.ldc, call.format,
                                    call.accumulate}),
              ElementsAre(3, 100, 40, 80, 100, 1, 1));
}

TEST(Execution, ProbesGetNamesAndRows) {
  LoadedModel model(compiled(R"(
    func.func @main(%tokens: memref<?xi32> {mica.role = "tokens"}, %x: memref<?x80xbf16>) {
      %c0 = arith.constant 0 : index
      %layer = arith.constant 7 : index
      %rows = memref.dim %tokens, %c0 : memref<?xi32>
      %part = memref.subview %x[0, 40] [%rows, 40] [1, 1] : memref<?x80xbf16> to memref<?x40xbf16, strided<[80, 1], offset: 40>>
      exec.probe "linear o_proj" layer(%layer) ins(%part : memref<?x40xbf16, strided<[80, 1], offset: 40>>)
      return
    })",
                             "native"),
                    recordingRuntime);
  ASSERT_EQ(model.error, "");
  std::vector<int32_t> tokens(3);
  std::vector<uint16_t> xs(3 * 80);
  Descriptor<1> t(tokens.data(), {3});
  Descriptor<2> x(xs.data(), {3, 80});
  calls.clear();
  model({&t, &x});
  ASSERT_EQ(calls.probes.size(), 1u);
  const RuntimeCalls::Probe &call = calls.probes.front();
  EXPECT_EQ(call.name, "linear o_proj");
  EXPECT_EQ(call.x, xs.data() + 40);
  EXPECT_THAT(
      (std::vector<int64_t>{call.layer, call.rows, call.columns, call.stride, call.numbers}),
      ElementsAre(7, 3, 40, 80, 1));
}

TEST(Execution, Bf16RoundsToNearestEvenOnEveryTarget) {
  constexpr llvm::StringLiteral text = R"(
    func.func private @round(%begin: index, %end: index, %x: memref<?xf32>, %y: memref<?xbf16>, %z: memref<?xbf16>) {
      %c1 = arith.constant 1 : index
      %c16 = arith.constant 16 : index
      scf.for %i = %begin to %end step %c1 {
        %at = arith.muli %i, %c16 : index
        %v = vector.load %x[%at] : memref<?xf32>, vector<16xf32>
        %b = arith.truncf %v : vector<16xf32> to vector<16xbf16>
        vector.store %b, %y[%at] : memref<?xbf16>, vector<16xbf16>
        %s = memref.load %x[%at] : memref<?xf32>
        %r = arith.truncf %s : f32 to bf16
        memref.store %r, %z[%i] : memref<?xbf16>
      }
      return
    }
    func.func @main(%tokens: memref<?xi32> {mica.role = "tokens"}, %x: memref<?xf32>, %y: memref<?xbf16>, %z: memref<?xbf16>) {
      %c0 = arith.constant 0 : index
      %n = memref.dim %tokens, %c0 : memref<?xi32>
      exec.launch @round tasks(%n) ins(%x : memref<?xf32>) outs(%y, %z : memref<?xbf16>, memref<?xbf16>)
      return
    })";
  std::vector<float> xs;
  std::vector<uint16_t> expected;
  for (uint32_t high : {0x3f80u, 0x3f81u, 0xc2ffu, 0x7f7fu, 0x0080u})
    for (uint32_t low : {0x0000u, 0x0001u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
      uint32_t bits = high << 16 | low;
      xs.push_back(std::bit_cast<float>(bits));
      expected.push_back((bits + 0x7fff + (high & 1)) >> 16);
    }
  xs.push_back(INFINITY);
  expected.push_back(0x7f80);
  xs.push_back(-0.0f);
  expected.push_back(0x8000);
  while (xs.size() % 16 != 0) {
    xs.push_back(1);
    expected.push_back(0x3f80);
  }
  for (const std::string &target : runnableTargets()) {
    SCOPED_TRACE(target);
    LoadedModel model(compiled(text, target), recordingRuntime);
    ASSERT_EQ(model.error, "");
    int64_t size = xs.size(), tasks = size / 16;
    std::vector<int32_t> tokens(tasks);
    std::vector<uint16_t> ys(size), zs(tasks);
    Descriptor<1> t(tokens.data(), {tasks}), x(xs.data(), {size}), y(ys.data(), {size}),
        z(zs.data(), {tasks});
    model({&t, &x, &y, &z});
    EXPECT_EQ(ys, expected);
    for (int64_t i = 0; i < tasks; ++i)
      EXPECT_EQ(zs[i], expected[16 * i]);
  }
}

} // namespace
