//===- CompiledModule.cpp - modules at stage loops, compiled and loaded ---===//

#include "tests/unit/backends/cpu/codegen/CompiledModule.h"

#include "backends/cpu/codegen/Pipeline.h"
#include "ir/Exec/Exec.h"
#include "ir/Mica/Mica.h"

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/Parser/Parser.h"

namespace mica::test {

using namespace mlir;

RuntimeCalls calls;

static void parallelFor(void *runtime, void (*body)(void *, int64_t, int64_t), void *context,
                        int64_t tasks) {
  static_cast<RuntimeCalls *>(runtime)->tasks.push_back(tasks);
  if (tasks / 2 > 0)
    body(context, 0, tasks / 2);
  if (tasks > tasks / 2)
    body(context, tasks / 2, tasks);
}

static void matmul(void *runtime, const void *a, const void *w, void *c, int64_t m, int64_t n,
                   int64_t k, int64_t lda, int64_t ldc, int32_t format, int32_t accumulate) {
  static_cast<RuntimeCalls *>(runtime)->products.push_back(
      {a, w, c, m, n, k, lda, ldc, format, accumulate});
}

static void probe(void *runtime, const char *name, int64_t nameBytes, int64_t layer, const void *x,
                  int64_t rows, int64_t columns, int64_t stride, int32_t numbers) {
  static_cast<RuntimeCalls *>(runtime)->probes.push_back(
      {{name, static_cast<size_t>(nameBytes)}, x, layer, rows, columns, stride, numbers});
}

const rt::RuntimeTable recordingRuntime = {.size = sizeof(rt::RuntimeTable),
                                           .runtime = &calls,
                                           .parallelFor = parallelFor,
                                           .matmul = matmul,
                                           .probe = probe};

static std::unique_ptr<MLIRContext> makeContext() {
  DialectRegistry registry;
  registerAllDialects(registry);
  registerAllExtensions(registry);
  registry.insert<MicaDialect, exec::ExecDialect, cpu::CpuDialect>();
  return std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
}

llvm::Expected<llvm::SmallVector<char, 0>> compile(StringRef text,
                                                   const cpu::TargetDescription &target) {
  std::unique_ptr<MLIRContext> context = makeContext();
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, context.get());
  if (!module)
    return llvm::createStringError("the text is no module");
  cpu::setTarget(*module, target);
  return makeSharedObject(*module, [&]() -> llvm::Error {
    PassManager passes(context.get());
    cpu::addLoopsToLlvmPasses(passes);
    if (failed(passes.run(*module)))
      return llvm::createStringError("the passes fail");
    return llvm::Error::success();
  });
}

} // namespace mica::test
