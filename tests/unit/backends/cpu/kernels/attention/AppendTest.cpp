//===- AppendTest.cpp - appends to int8 caches ----------------------------===//

#include "tests/unit/backends/cpu/kernels/attention/KernelText.h"
#include "tests/unit/backends/cpu/lowering/Memory.h"

#include "ir/Mica/Mica.h"
#include "ir/Quantize/Quantize.h"

#include "mlir/AsmParser/AsmParser.h"
#include "gtest/gtest.h"

#include <cmath>

using namespace mlir;
using namespace mica;
using namespace mica::test;

namespace {

constexpr const char *kModel = R"(
!keys = !mica.kv_cache<1 x 2 x 20 x !mica.int8, #mica.kv_layout<keys, block = 64, depth = 4>>
func.func @main(%p: tensor<?xi32> {mica.role = "positions"}, %s: tensor<?xi32>, %x: tensor<?x2x20xf32>, %k: !keys {mica.role = "cache"})
    -> (tensor<?x2x20xf32> {mica.role = "logits"}, !keys {mica.role = "cache"}) {
  %layer = arith.constant 0 : index
  %next = mica.kv_append %x, %k[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x20xf32>, !keys
  %y = mica.add %x, %x : tensor<?x2x20xf32>
  return %y, %next : tensor<?x2x20xf32>, !keys
})";

class Append : public testing::TestWithParam<std::string> {};

// A NaN only affects its own head at its position; numbers are quantized as by mica::quantizeInt8,
// including ties and tiny numbers.
TEST_P(Append, EqualsQuantizeInt8) {
  constexpr int64_t heads = 2, dim = 20;
  std::vector<std::vector<float>> rows;
  for (float special : {NAN, -NAN, INFINITY, -INFINITY, 0.0f, 2.5f, 1e-20f, 3e38f})
    for (int64_t at : {0, 17}) {
      std::vector<float> row(dim);
      for (int64_t d = 0; d < dim; ++d)
        row[d] = special == 0 ? 0 : 0.5f * static_cast<float>(d - 8);
      row[at] = special == 2.5f ? -127.0f : special;
      rows.push_back(row);
      rows.push_back(std::vector<float>(dim, 1.0f + static_cast<float>(rows.size())));
    }
  int64_t count = rows.size() / heads;
  auto target = llvm::cantFail(cpu::describeTarget(GetParam()));
  Loops loops = llvm::cantFail(lowerToLoops(kModel, target));
  LoadedModel model(llvm::cantFail(compile(loops.text, target)), recordingRuntime);
  ASSERT_EQ(model.error, "");

  auto context = makeKernelContext();
  context->loadDialect<MicaDialect>();
  auto type = cast<KvCacheType>(parseType("!mica.kv_cache<1 x 2 x 20 x !mica.int8, "
                                          "#mica.kv_layout<keys, block = 64, depth = 4>>",
                                          context.get()));
  interp::Value value = interp::Value::makeCache(type, 1, 64);
  interp::Cache &cache = *value.getCache()->cache;
  SmallVector<int64_t> shape = physicalShapeOf(cache, type);
  std::vector<uint8_t> memory(bytesOf(type.getElementType(), shape));
  std::vector<float> x, y(count * heads * dim);
  std::vector<int32_t> positions, sequences(count, 0);
  for (const std::vector<float> &row : rows)
    llvm::append_range(x, row);
  for (int32_t i = 0; i < count; ++i)
    positions.push_back(3 * i);
  std::vector<char> scratch(loops.scratchFixed + count * loops.scratchPerRow + 64);
  auto scratchAt = llvm::alignTo(reinterpret_cast<uintptr_t>(scratch.data()), 64);
  std::array<int64_t, 5> extents;
  llvm::copy(shape, extents.begin());
  Descriptor<1> p(positions.data(), {count}), s(sequences.data(), {count}), weights(nullptr, {0}),
      free(reinterpret_cast<void *>(scratchAt), {static_cast<int64_t>(scratch.size()) - 64});
  Descriptor<3> in(x.data(), {count, heads, dim}), out(y.data(), {count, heads, dim});
  Descriptor<5> k(memory.data(), extents);
  model({&p, &s, &in, &k, &weights, &free, &out});

  loadCache(cache, type, memory);
  for (int64_t i = 0; i < count * heads; ++i) {
    SCOPED_TRACE("head " + std::to_string(i));
    int64_t at = cache.offset(0, 0, positions[i / heads]) + i % heads * dim;
    ArrayRef<float> found = ArrayRef(cache.data).slice(at, dim);
    llvm::cast<QuantizedElementType>(type.getElementType()).roundRow(rows[i]);
    for (auto [a, b] : llvm::zip_equal(found, rows[i]))
      if (std::isnan(b))
        EXPECT_FALSE(std::isfinite(a));
      else
        EXPECT_EQ(a, b);
  }
}

INSTANTIATE_TEST_SUITE_P(On, Append, testing::ValuesIn(runnableTargets({"native", "x86-64-v3"})),
                         [](const testing::TestParamInfo<std::string> &info) {
                           return info.index ? "v3" : "native";
                         });

} // namespace
