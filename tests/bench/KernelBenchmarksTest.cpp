// Every kernel has a benchmark.
#include "tests/bench/KernelBenchmarks.h"

#include "backends/cpu/driver/Compiler.h"
#include "tests/unit/RegisteredOps.h"

#include "mlir/Parser/Parser.h"
#include "llvm/ADT/STLExtras.h"
#include "gmock/gmock.h"

#include <map>
#include <set>

using namespace mlir;
using namespace mica;
using namespace mica::bench;
using testing::ElementsAre;
using testing::IsSupersetOf;

namespace {

/// Ops without a kernel: declarations, views, ops replaced by earlier passes, and those of models
/// that are partitioned for several ranks, which only the interpreter runs.
constexpr llvm::StringRef kNoKernels[] = {
    "mica.all_gather",  "mica.all_slice", "mica.equalize",          "mica.get_weight",
    "mica.index_table", "mica.kv_read",   "mica.moe_down",          "mica.moe_gate_up",
    "mica.merge_heads", "mica.probe",     "mica.repeat_kv",         "mica.select_weight",
    "mica.split_heads", "mica.split",     "mica.sharded_embedding", "mica.weight"};

/// The ops and kernels of the benchmarks.
class KernelBenchmarksTest : public testing::Test {
protected:
  void SetUp() override {
    DialectRegistry registry;
    cpu::registerCompilerDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    for (const KernelBenchmark &benchmark : kernelBenchmarks()) {
      SCOPED_TRACE(benchmark.name);
      EXPECT_TRUE(names.insert(benchmark.name).second);
      auto module = parseSourceString<ModuleOp>(benchmark.text, &context);
      ASSERT_TRUE(module);
      EXPECT_EQ(llvm::range_size(module->getOps<func::FuncOp>()), benchmark.functions);
      module->walk([&](Operation *op) {
        std::string name = op->getName().getStringRef().str();
        ops.insert(name);
        if (auto kernel = op->getAttrOfType<KernelKindAttr>("kernel"))
          kernels[name].insert(stringifyKernelKind(kernel.getValue()).str());
        for (Value operand : op->getOperands())
          if (operand.getDefiningOp<GetWeightOp>() || operand.getDefiningOp<ReadsState>() ||
              isa<KvCacheType>(operand.getType()))
            stored[name].insert(textOf(operand.getType()));
      });
    }
  }

  static std::string textOf(Type type) {
    if (auto cache = dyn_cast<KvCacheType>(type))
      type = cache.getElementType();
    std::string text;
    llvm::raw_string_ostream(text) << getElementTypeOrSelf(type);
    return text;
  }

  MLIRContext context;
  std::set<std::string> names, ops;
  std::map<std::string, std::set<std::string>> stored;  ///< formats of weights and caches, by op
  std::map<std::string, std::set<std::string>> kernels; ///< kernels, by op
};

/// Only one function of each module: the others are equal.
TEST_F(KernelBenchmarksTest, CompileToKernels) {
  auto target = llvm::cantFail(cpu::describeTarget("native"));
  for (const KernelBenchmark &benchmark : kernelBenchmarks()) {
    SCOPED_TRACE(benchmark.name);
    auto module = parseSourceString<ModuleOp>(benchmark.text, &context);
    ASSERT_TRUE(module);
    for (auto function : llvm::make_early_inc_range(module->getOps<func::FuncOp>()))
      if (function.getSymName() != "f0")
        function.erase();
    for (auto weight : llvm::make_early_inc_range(module->getOps<WeightOp>()))
      if (SymbolTable::symbolKnownUseEmpty(weight, *module))
        weight.erase();
    std::string text;
    llvm::raw_string_ostream(text) << *module;
    llvm::Error error = test::KernelModule::lower(text, target);
    EXPECT_FALSE(bool(error)) << llvm::toString(std::move(error));
  }
}

TEST_F(KernelBenchmarksTest, CoverEveryOp) {
  std::vector<std::string> registered = test::registeredMicaOps(context);
  ASSERT_GT(registered.size(), 50u);
  for (llvm::StringRef name : kNoKernels)
    EXPECT_TRUE(llvm::is_contained(registered, name)) << name.str();
  for (const std::string &name : registered)
    if (!llvm::is_contained(kNoKernels, name))
      EXPECT_TRUE(ops.count(name)) << name;
}

TEST_F(KernelBenchmarksTest, CoverEveryWeightFormat) {
  std::set<std::string> formats;
  for (const test::Format &format : allFormats())
    formats.insert(format.weight);
  for (const char *op : {"mica.linear", "mica.gated_linear", "mica.head_linear", "mica.moe_experts",
                         "mica.lm_head", "mica.embedding"})
    EXPECT_THAT(stored[op], IsSupersetOf(formats)) << op;
}

TEST_F(KernelBenchmarksTest, CoverEveryMatmulKernel) {
  for (const char *op : {"mica.linear", "mica.gated_linear"})
    EXPECT_THAT(kernels[op], ElementsAre("generated", "onednn")) << op;
}

TEST_F(KernelBenchmarksTest, CoverEveryCacheType) {
  for (const char *op : {"mica.attention", "mica.kv_append", "mica.qkv_append"})
    EXPECT_THAT(stored[op], IsSupersetOf({"f32", "bf16", "!mica.int8"})) << op;
}

} // namespace
