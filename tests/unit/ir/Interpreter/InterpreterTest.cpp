//===- InterpreterTest.cpp - the interpreter's interface ------------------===//

#include "ir/Interpreter/Interpreter.h"
#include "ir/Interpreter/Moe.h"
#include "ir/Interpreter/OpTable.h"
#include "tests/unit/RegisteredOps.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Parser/Parser.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mica;
using namespace mica::interp;
using ::testing::HasSubstr;

namespace {

class InterpreterTest : public ::testing::Test {
protected:
  InterpreterTest() {
    context.loadDialect<MicaDialect, func::FuncDialect, arith::ArithDialect, scf::SCFDialect>();
  }

  func::FuncOp parse(StringRef text, StringRef name = "f") {
    module = parseSourceString<ModuleOp>(text, &context);
    return module->lookupSymbol<func::FuncOp>(name);
  }

  Tensor floats(SmallVector<int64_t> shape, std::vector<float> values) {
    return Tensor{shape, Float32Type::get(&context), std::move(values), {}};
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

std::string errorOf(llvm::Expected<SmallVector<interp::Value>> outcome) {
  return outcome ? "" : llvm::toString(outcome.takeError());
}

TEST_F(InterpreterTest, ImplementsEveryOp) {
  SmallVector<StringRef> known = OpTable::get().names();
  std::vector<std::string> registered = test::registeredMicaOps(context);
  ASSERT_GT(registered.size(), 50u);
  for (const std::string &name : registered)
    // Declarations are not computed.
    if (name != WeightOp::getOperationName() && name != EqualizeOp::getOperationName())
      EXPECT_TRUE(llvm::is_contained(known, name)) << name;
}

TEST_F(InterpreterTest, RoundsToNearestTiesToEven) {
  Type bf16 = BFloat16Type::get(&context), f16 = Float16Type::get(&context);
  EXPECT_EQ(roundTo(bf16, 1.00390625), 1.0f); // half way between 1 and 1 + 2^-7: to the even one
  EXPECT_EQ(roundTo(bf16, 1.01171875), 1.015625f); // half way between 1 + 2^-7 and 1 + 2^-6
  EXPECT_EQ(roundTo(bf16, 1.0040), 1.0078125f);
  EXPECT_EQ(roundTo(f16, 70000), INFINITY);
  EXPECT_EQ(roundTo(Float32Type::get(&context), 0.1), 0.1f);
}

/// The scores by which a gate with these logits chooses experts, and the weights of `experts`.
class NearTieTest : public InterpreterTest {
protected:
  std::optional<SmallVector<float>> weights(StringRef scoring, SmallVector<int64_t> experts,
                                            double slack) {
    func::FuncOp function = parse((R"(
      func.func @f(%x: tensor<1x2xf32>, %w: tensor<4x2xf32>, %b: tensor<4xf32>) {
        %weights, %experts = mica.moe_gate %x, %w )" +
                                   scoring + R"( normalize
            : tensor<1x2xf32>, tensor<4x2xf32> -> tensor<1x2xf32>, tensor<1x2xi32>
        return
      })")
                                      .str());
    auto gate = *function.getOps<MoeGateOp>().begin();
    // Logits 2, 1 + 1e-6, 1 and 0.5, all sums of terms whose magnitudes add up to 4 at most.
    interp::Value x = floats({1, 2}, {1, 1}),
                  w = floats({4, 2}, {3, -1, 1 + 1e-6f, 0, 0, 1, 0.25, 0.25}),
                  b = floats({4}, {0, 0, 0, 0.5});
    SmallVector<interp::Value> operands = {x, w};
    if (gate->getNumOperands() > 2)
      operands.push_back(b);
    return weightsIfNearTie(gate, operands, 0, experts, slack);
  }
};

TEST_F(NearTieTest, AcceptsNearTies) {
  EXPECT_TRUE(weights("softmax k(2)", {0, 1}, 0));
  EXPECT_FALSE(weights("softmax k(2)", {0, 2}, 0));
  EXPECT_FALSE(weights("softmax k(2)", {0, 2}, 1e-8));
  std::optional<SmallVector<float>> taken = weights("softmax k(2)", {0, 2}, 1e-6);
  ASSERT_TRUE(taken);
  // Of the unmodified scores.
  EXPECT_NEAR((*taken)[0], 1 / (1 + std::exp(-1.0)), 1e-6);
  EXPECT_NEAR((*taken)[1], 1 / (1 + std::exp(1.0)), 1e-6);
  // In the order of the tokens that chose them.
  EXPECT_EQ(*weights("softmax k(2)", {2, 0}, 1e-6), (SmallVector<float>{(*taken)[1], (*taken)[0]}));
}

TEST_F(NearTieTest, RefusesWorseChoices) {
  for (StringRef scoring : {"softmax k(2)", "sigmoid k(2)"}) {
    EXPECT_FALSE(weights(scoring, {1, 2}, 1e-5));
    EXPECT_FALSE(weights(scoring, {0, 3}, 1e-5));
    EXPECT_FALSE(weights(scoring, {0, 0}, 1e-5));
    EXPECT_FALSE(weights(scoring, {0, 7}, 1e-5));
  }
}

TEST_F(NearTieTest, AppliesCorrectionBiasesAndGroups) {
  // With an additional half of a score, the last expert is the second.
  EXPECT_TRUE(weights("e_score_correction_bias(%b : tensor<4xf32>) sigmoid k(2)", {3, 0}, 1e-6));
  EXPECT_FALSE(weights("e_score_correction_bias(%b : tensor<4xf32>) sigmoid k(2)", {0, 2}, 1e-6));
  // The first group has the best one.
  EXPECT_TRUE(weights("sigmoid k(2) groups(2 keep 1 by best)", {0, 1}, 1e-6));
  EXPECT_FALSE(weights("sigmoid k(2) groups(2 keep 1 by best)", {0, 2}, 1e-6));
}

constexpr const char *kAppend = R"(
  func.func @f(%cache: !mica.kv_cache<1 x 1 x 2 x f32>, %x: tensor<?x1x2xf32>, %s: tensor<?xi32>, %p: tensor<?xi32>)
      -> !mica.kv_cache<1 x 1 x 2 x f32> {
    %layer = arith.constant 0 : index
    %next = mica.kv_append %x, %cache[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>)
        : tensor<?x1x2xf32>, !mica.kv_cache<1 x 1 x 2 x f32>
    return %next : !mica.kv_cache<1 x 1 x 2 x f32>
  })";

TEST_F(InterpreterTest, TheCallersCachesStayAsTheyAre) {
  func::FuncOp f = parse(kAppend);
  Type i32 = IntegerType::get(&context, 32);
  auto cache = interp::Value::makeCache(cast<KvCacheType>(f.getArgumentTypes()[0]), 1, 2);
  SmallVector<interp::Value> args{cache, floats({1, 1, 2}, {3, 4}), Tensor{{1}, i32, {}, {0}},
                                  Tensor{{1}, i32, {}, {1}}};
  SmallVector<interp::Value> results = llvm::cantFail(interpret(f, args));
  EXPECT_EQ(results[0].flattened().getTensor()->floats, (std::vector<float>{0, 0, 3, 4}));
  EXPECT_EQ(cache.flattened().getTensor()->floats, (std::vector<float>{0, 0, 0, 0}));
  EXPECT_EQ(errorOf(interpret(f, args)), "") << "the same cache again";
}

TEST_F(InterpreterTest, ArgumentsMustFit) {
  func::FuncOp f =
      parse("func.func @f(%x: tensor<?x2xf32>) -> tensor<?x2xf32> { return %x : tensor<?x2xf32> }");
  EXPECT_EQ(errorOf(interpret(f, {floats({3, 2}, std::vector<float>(6))})), "");
  EXPECT_THAT(errorOf(interpret(f, {floats({2, 3}, std::vector<float>(6))})),
              HasSubstr("tensor<2x3xf32> does not fit tensor<?x2xf32>"));
  EXPECT_THAT(errorOf(interpret(f, {interp::Value(1)})), HasSubstr("an integer does not fit"));
  EXPECT_THAT(errorOf(interpret(f, {})), HasSubstr("@f arguments: 0 values for 1 names"));
  auto other = KvCacheType::get(&context, 2, 1, 2, Float32Type::get(&context), 0, KvLayoutAttr());
  auto cache = interp::Value::makeCache(other, 1, 2);
  EXPECT_THAT(errorOf(interpret(parse(kAppend), {cache, cache, cache, cache})),
              HasSubstr("a cache of another type does not fit !mica.kv_cache<1 x 1 x 2 x f32>"));
}

TEST_F(InterpreterTest, ErrorsNameOpAndLocation) {
  func::FuncOp f =
      parse(R"(func.func @f(%x: tensor<?x2xf32>, %r: tensor<?xi32>) -> tensor<?x2xf32> {
    %y = mica.select_rows %x, %r : tensor<?x2xf32>, tensor<?xi32> -> tensor<?x2xf32> loc("model.layers.3")
    return %y : tensor<?x2xf32>
  })");
  Tensor rows{{1}, IntegerType::get(&context, 32), {}, {5}};
  EXPECT_THAT(
      errorOf(interpret(f, {floats({1, 2}, {1, 2}), rows})),
      HasSubstr("'mica.select_rows' row 5 is outside of [0, 1) (at loc(\"model.layers.3\"))"));
}

TEST_F(InterpreterTest, FunctionsThatCannotRun) {
  func::FuncOp f = parse("func.func @f() { func.call @f() : () -> () return }");
  EXPECT_THAT(errorOf(interpret(f, {})), HasSubstr("is called recursively"));
  f = parse("func.func private @f()");
  EXPECT_THAT(errorOf(interpret(f, {})), HasSubstr("has no body"));
  f = parse(
      "func.func @f() { %a = arith.constant 1 : index %b = arith.subi %a, %a : index return }");
  EXPECT_THAT(errorOf(interpret(f, {})), HasSubstr("'arith.subi' is unknown to the interpreter"));
}

constexpr const char *kWeight = R"(
  mica.weight @w : tensor<2x2xbf16>
  func.func @f() -> tensor<2x2xbf16> {
    %w = mica.get_weight @w : tensor<2x2xbf16>
    %again = mica.get_weight @w : tensor<2x2xbf16>
    return %again : tensor<2x2xbf16>
  })";

TEST_F(InterpreterTest, WeightsAreReadOnceAndRounded) {
  func::FuncOp f = parse(kWeight);
  int reads = 0;
  auto provider = [&](StringRef name) -> llvm::Expected<Tensor> {
    ++reads;
    EXPECT_EQ(name, "w");
    return floats({2, 2}, {1, 2, 3, 1.0040f});
  };
  SmallVector<interp::Value> results = llvm::cantFail(interpret(f, {}, provider));
  EXPECT_EQ(results[0].getTensor()->floats, (std::vector<float>{1, 2, 3, 1.0078125f}));
  EXPECT_EQ(reads, 1);
}

TEST_F(InterpreterTest, WeightsThatAreMissingOrOfAnotherShape) {
  func::FuncOp f = parse(kWeight);
  EXPECT_THAT(errorOf(interpret(f, {})), HasSubstr("@w is needed, but no weights were given"));
  auto missing = [](StringRef name) -> llvm::Expected<Tensor> {
    return llvm::createStringError("no tensor " + name);
  };
  EXPECT_THAT(errorOf(interpret(f, {}, missing)), HasSubstr("@w: no tensor w"));
  auto other = [&](StringRef) -> llvm::Expected<Tensor> {
    return floats({3, 2}, std::vector<float>(6));
  };
  EXPECT_THAT(errorOf(interpret(f, {}, other)),
              HasSubstr("@w: tensor<3x2xbf16> does not fit tensor<2x2xbf16>"));
}

TEST_F(InterpreterTest, WeightsAndTheirEqualizationAreFloats) {
  auto integers = [&](StringRef name) -> llvm::Expected<Tensor> {
    if (name == "i")
      return Tensor{{2}, IntegerType::get(&context, 32), {}, {1, 2}};
    return floats({2, 2}, {1, 2, 3, 4});
  };
  func::FuncOp f = parse(R"(
  mica.weight @w from ["i"] : tensor<2xf32>
  func.func @f() -> tensor<2xf32> {
    %w = mica.get_weight @w : tensor<2xf32>
    return %w : tensor<2xf32>
  })");
  EXPECT_THAT(errorOf(interpret(f, {}, integers)),
              HasSubstr("@w: source 'i' is not a tensor of floats of rank 1 or more"));
  f = parse(R"(
  mica.equalize rows ["i"] columns ["w"]
  mica.weight @w : tensor<2x2xf32>
  func.func @f() -> tensor<2x2xf32> {
    %w = mica.get_weight @w : tensor<2x2xf32>
    return %w : tensor<2x2xf32>
  })");
  EXPECT_THAT(errorOf(interpret(f, {}, integers)),
              HasSubstr("'mica.equalize' 'i' is not a tensor of floats of rank 1 or more"));
}

TEST_F(InterpreterTest, TraceRecordsEveryOp) {
  func::FuncOp f = parse(R"(
  func.func private @layer(%x: tensor<1x2xf32>) -> tensor<1x2xf32> {
    %y = mica.add %x, %x : tensor<1x2xf32>
    return %y : tensor<1x2xf32>
  }
  func.func @f(%x: tensor<1x2xf32>) -> tensor<1x2xf32> {
    %y = func.call @layer(%x) : (tensor<1x2xf32>) -> tensor<1x2xf32>
    %z = mica.mul %y, %y : tensor<1x2xf32>
    return %z : tensor<1x2xf32>
  })");
  std::vector<std::pair<std::string, float>> seen;
  auto trace = [&](Operation *op, ArrayRef<interp::Value>, ArrayRef<interp::Value> results) {
    seen.emplace_back(op->getName().getStringRef().str(), results[0].getTensor()->floats[1]);
  };
  llvm::cantFail(interpret(f, {floats({1, 2}, {1, 3})}, {}, trace));
  std::vector<std::pair<std::string, float>> expected{
      {"mica.add", 6}, {"func.call", 6}, {"mica.mul", 36}};
  EXPECT_EQ(seen, expected);
  // Later ops read the value with which it replaces a result.
  auto change = [&](Operation *op, ArrayRef<interp::Value> operands,
                    MutableArrayRef<interp::Value> results) {
    if (isa<AddOp>(op)) {
      EXPECT_EQ(operands[1].getTensor()->floats[1], 3);
      results[0] = floats({1, 2}, {4, 5});
    }
  };
  auto changed = interpret(f, {floats({1, 2}, {1, 3})}, {}, change);
  ASSERT_TRUE(static_cast<bool>(changed));
  EXPECT_EQ(changed->front().getTensor()->floats, (std::vector<float>{16, 25}));
}

} // namespace
