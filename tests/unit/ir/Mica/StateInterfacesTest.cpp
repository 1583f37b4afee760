#include "ir/Mica/Mica.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"

#include <gmock/gmock.h>

using namespace mlir;
using namespace mica;

namespace {

class StateInterfaces : public testing::Test {
protected:
  StateInterfaces() { context.loadDialect<MicaDialect, func::FuncDialect>(); }

  SequenceState state(StringRef text) { return cast<SequenceState>(parseType(text, &context)); }

  MLIRContext context;
};

TEST_F(StateInterfaces, DescribeReservations) {
  SequenceState plain = state("!mica.kv_cache<5 x 4 x 8 x f32>");
  EXPECT_EQ(plain.getLayers(), 5);
  EXPECT_EQ(plain.getBytesPerPosition(), 5 * 4 * 8 * 4);
  EXPECT_FALSE(plain.getPhysicalType()) << "no layout is chosen yet";
  SequenceState packed = state("!mica.kv_cache<5 x 4 x 8 x bf16, <values, block = 64, depth = 2>>");
  EXPECT_EQ(packed.getPhysicalType(), parseType("tensor<5x?x4x?x1024xbf16>", &context));
  EXPECT_EQ(packed.getContentName(), "values");
  EXPECT_TRUE(packed.getElementType().isBF16());
  EXPECT_EQ(packed.getWindow(), 0) << "all positions are read";
  SequenceState kept =
      state("!mica.kv_cache<5 x 4 x 8 x bf16 window(100), <values, block = 64, depth = 2>>");
  EXPECT_EQ(kept.getWindow(), 100);
  EXPECT_EQ(kept.getPhysicalType(), packed.getPhysicalType()) << "the runtime makes it shorter";
  EXPECT_EQ(kept.getBytesPerPosition(), packed.getBytesPerPosition());
  SequenceState bytes =
      state("!mica.kv_cache<5 x 4 x 8 x !mica.int8, <keys, block = 64, depth = 4>>");
  EXPECT_EQ(bytes.getPhysicalType(), parseType("tensor<5x?x4x?x1280xi8>", &context));
  EXPECT_EQ(bytes.getBytesPerPosition(), 5 * 4 * (8 + 4));
  SequenceState rolling = state("!mica.rolling_state<5 x 24 x f32 window(4)>");
  EXPECT_EQ(rolling.getPhysicalType(), parseType("tensor<5x?x64x24xf32>", &context));
  EXPECT_EQ(rolling.getSlots(), 64);
  EXPECT_EQ(rolling.getWindow(), 4);
  EXPECT_EQ(rolling.getBytesPerPosition(), 0) << "whatever the length";
  SequenceState recurrent = state("!mica.recurrent_state<5 x 3 x 16 x 12 x f32>");
  EXPECT_EQ(recurrent.getPhysicalType(), parseType("tensor<5x?x3x2240xf32>", &context));
  EXPECT_EQ(recurrent.getRowShape(), (llvm::SmallVector<int64_t>{3, 16, 12}));
  EXPECT_EQ(recurrent.getSlots(), 64);
  EXPECT_EQ(recurrent.getWindow(), 32);
  EXPECT_EQ(recurrent.getBytesPerPosition(), 0) << "whatever the length";
  EXPECT_EQ(kept.getSlots(), 0) << "its ring is as long as the runtime likes";
  EXPECT_EQ(rolling.getBytesPerSequence(), 5 * 64 * 24 * 4);
  EXPECT_EQ(kept.getBytesPerSequence(), 0) << "it grows with the context";
  EXPECT_EQ(packed.getPositionBlock(), 64);
  EXPECT_EQ(rolling.getPositionBlock(), 0);
  EXPECT_FALSE(isa<SequenceState>(parseType("tensor<5x?x4x?x1024xf32>", &context)));
}

TEST_F(StateInterfaces, ChangeTheirElements) {
  Type bf16 = BFloat16Type::get(&context);
  EXPECT_EQ(state("!mica.kv_cache<5 x 4 x 8 x f32 window(100)>").withElementType(bf16),
            state("!mica.kv_cache<5 x 4 x 8 x bf16 window(100)>"));
  SequenceState rolling = state("!mica.rolling_state<5 x 24 x f32 window(4)>");
  EXPECT_EQ(rolling.withElementType(bf16), rolling) << "it is always f32";
}

TEST_F(StateInterfaces, StoreThePartOfARank) {
  SequenceState cache = state("!mica.kv_cache<5 x 4 x 8 x f32 window(100)>");
  EXPECT_EQ(cache.getPartsOfRanks(2), 2);
  EXPECT_EQ(cache.getPartsOfRanks(8), 4) << "two ranks have the same head";
  EXPECT_EQ(cache.getPartsOfRanks(3), std::nullopt);
  EXPECT_EQ(cache.getPart(1), cache);
  EXPECT_EQ(cache.getPart(2), state("!mica.kv_cache<5 x 2 x 8 x f32 window(100)>"));
  SequenceState rolling = state("!mica.rolling_state<5 x 24 x f32 window(4)>");
  EXPECT_EQ(rolling.getPartsOfRanks(3), 3);
  EXPECT_EQ(rolling.getPartsOfRanks(5), 1) << "each rank stores all of it";
  EXPECT_EQ(rolling.getPart(3), state("!mica.rolling_state<5 x 8 x f32 window(4)>"));
  SequenceState recurrent = state("!mica.recurrent_state<5 x 6 x 16 x 12 x f32>");
  EXPECT_EQ(recurrent.getPartsOfRanks(2), 2);
  EXPECT_EQ(recurrent.getPartsOfRanks(12), std::nullopt) << "ranks do not share a head";
  EXPECT_EQ(recurrent.getPart(2), state("!mica.recurrent_state<5 x 3 x 16 x 12 x f32>"));
}

TEST_F(StateInterfaces, TakeALayout) {
  EXPECT_EQ(state("!mica.kv_cache<5 x 4 x 8 x bf16 window(100)>")
                .withLayout(KvKind::Values, /*positions=*/64, /*depth=*/2),
            state("!mica.kv_cache<5 x 4 x 8 x bf16 window(100), <values, block = 64, depth = 2>>"));
  SequenceState rolling = state("!mica.rolling_state<5 x 24 x f32 window(4)>");
  EXPECT_EQ(rolling.withLayout(KvKind::Keys, /*positions=*/64, /*depth=*/1), rolling)
      << "it has one layout";
}

TEST_F(StateInterfaces, PairStatesWithTheirNextValues) {
  auto module = parseSourceString<ModuleOp>(R"(
!cache = !mica.kv_cache<5 x 4 x 8 x f32>
func.func @f(%qkv: tensor<?x128xf32>, %table: tensor<?x2x4xf32>, %k: !cache, %v: !cache, %layer: index,
    %s: tensor<?xi32>, %p: tensor<?xi32>) {
  %q, %k1, %v1 = mica.qkv_append %qkv, %table, %k, %v[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) half
      : tensor<?x128xf32>, tensor<?x2x4xf32>, !cache, !cache -> tensor<?x8x8xf32>
  %h = mica.merge_heads %q : tensor<?x8x8xf32> to tensor<?x64xf32>
  return
})",
                                            &context);
  ASSERT_TRUE(module);
  auto function = module->lookupSymbol<func::FuncOp>("f");
  auto append = *function.getOps<QkvAppendOp>().begin();
  auto update = cast<UpdatesState>(append.getOperation());
  EXPECT_EQ(update.getStateBefore(append.getKNext()), append.getKCache());
  EXPECT_EQ(update.getStateBefore(append.getVNext()), append.getVCache());
  EXPECT_FALSE(update.getStateBefore(append.getQ())) << "the queries are no state";
  EXPECT_EQ(update.getStateAfter(append.getVCache()), append.getVNext());
  EXPECT_FALSE(update.getStateAfter(append.getQkv()));
  EXPECT_THAT(update.getTokenRows(), testing::ElementsAre(append.getQkv(), append.getTable()));
  ASSERT_EQ(update.getStateUpdates().size(), 2u) << "keys and values";
  EXPECT_EQ(update.getStateUpdates()[0].kind, KvKind::Keys);
  EXPECT_EQ(update.getStateUpdates()[1].kind, KvKind::Values);
  for (const StateUpdate &each : update.getStateUpdates())
    EXPECT_EQ(each.layer, append.getLayer());
  EXPECT_FALSE(isa<UpdatesState>((*function.getOps<MergeHeadsOp>().begin()).getOperation()));
}

} // namespace
