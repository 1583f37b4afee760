//===- PrefetchTest.cpp - lines that kernels prefetch ---------------------===//

#include "backends/cpu/kernels/matmul/Prefetch.h"
#include "backends/cpu/features/InterleavedPages.h"

#include "mlir/IR/Matchers.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mica;
using namespace mica::cpu;

namespace {

class Prefetch : public testing::Test {
protected:
  Prefetch() {
    context.loadDialect<arith::ArithDialect, func::FuncDialect, memref::MemRefDialect,
                        scf::SCFDialect>();
  }

  /// The bytes of a stream that a kernel prefetches when it reads the unit that begins at byte
  /// `at`, in elements of a type.
  std::vector<int64_t> asked(Type element, int64_t at) {
    Location loc = UnknownLoc::get(&context);
    OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
    OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
    Type memory = MemRefType::get(ShapedType::kDynamic, element);
    auto function = func::FuncOp::create(builder, loc, "ask", builder.getFunctionType(memory, {}));
    builder.setInsertionPointToStart(function.addEntryBlock());
    TargetDescription target;
    target.prefetchPages = true;
    KernelBuilder b(loc, builder, target);
    int64_t bytes = element.getIntOrFloatBitWidth() / 8;
    PackedPanel panel{
        .memory = function.getArgument(0), .offset = b.idx(0), .columns = 64, .depth = 2};
    panel.streams = arith::ConstantIntOp::create(b, 1, 1);
    prefetchAhead(b, panel, b.idx(at / bytes), rt::interleaved_pages::unit / bytes);
    func::ReturnOp::create(b);
    PassManager pm(&context);
    pm.addPass(createCanonicalizerPass());
    EXPECT_TRUE(succeeded(pm.run(*module)));
    std::vector<int64_t> places;
    function.walk([&](memref::PrefetchOp prefetch) {
      APInt place;
      EXPECT_TRUE(matchPattern(prefetch.getIndices().front(), m_ConstantInt(&place)));
      places.push_back(place.getSExtValue() * bytes);
    });
    return places;
  }

  MLIRContext context;
};

/// Four lines for each unit: the ones of prefetchOffset, which has its own test.
TEST_F(Prefetch, AsksForTheUnitOfAnotherPage) {
  using namespace rt::interleaved_pages;
  Builder builder(&context);
  for (Type element :
       {Type(builder.getBF16Type()), Type(builder.getI8Type()), Type(builder.getF32Type())})
    for (int64_t at = 0; at <= 2 * chunk; at += at % page == 2 * unit ? page - 3 * unit : unit) {
      int64_t place = prefetchOffset(at);
      EXPECT_THAT(asked(element, at),
                  testing::ElementsAre(place, place + line, place + 2 * line, place + 3 * line))
          << "at byte " << at;
    }
}

} // namespace
