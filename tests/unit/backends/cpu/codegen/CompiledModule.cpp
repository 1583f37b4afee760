//===- CompiledModule.cpp - stage loops as text, compiled and loaded ------===//

#include "tests/unit/backends/cpu/codegen/CompiledModule.h"

#include "backends/cpu/codegen/NativeCode.h"
#include "backends/cpu/codegen/Passes.h"
#include "ir/Exec/Exec.h"
#include "ir/Mica/Mica.h"

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/Parser/Parser.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

mica::test::RuntimeCalls mica::test::calls;

// What a program's runtime does, on one thread and in two parts, as if the pool had two.
extern "C" void mica_rt_parallel_for(void (*body)(void *, int64_t, int64_t), void *context,
                                     int64_t tasks) {
  mica::test::calls.tasks.push_back(tasks);
  if (tasks / 2 > 0)
    body(context, 0, tasks / 2);
  if (tasks > tasks / 2)
    body(context, tasks / 2, tasks);
}

extern "C" void mica_rt_matmul(const void *a, const void *w, float *c, int64_t m, int64_t n,
                               int64_t k, int64_t lda, int64_t ldc, int32_t format,
                               int32_t accumulate) {
  mica::test::calls.products.push_back({a, w, c, m, n, k, lda, ldc, format, accumulate});
}

namespace mica::test {

using namespace mlir;

static std::unique_ptr<MLIRContext> makeContext() {
  DialectRegistry registry;
  registerAllDialects(registry);
  registerAllExtensions(registry);
  registry.insert<MicaDialect, exec::ExecDialect>();
  return std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
}

llvm::Expected<llvm::SmallVector<char, 0>> compile(StringRef text,
                                                   const cpu::TargetDescription &target) {
  std::unique_ptr<MLIRContext> context = makeContext();
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, context.get());
  if (!module)
    return llvm::createStringError("the text is no module");
  PassManager passes(context.get());
  cpu::addLoopsToLlvmPasses(passes, target);
  if (failed(passes.run(*module)))
    return llvm::createStringError("the passes fail");
  auto machine = cpu::createTargetMachine(target);
  if (!machine)
    return machine.takeError();
  llvm::LLVMContext llvmContext;
  auto ir = cpu::translateToLlvmIr(*module, llvmContext, target, **machine);
  if (!ir)
    return ir.takeError();
  cpu::optimize(**ir, **machine);
  auto object = cpu::emit(**ir, **machine, llvm::CodeGenFileType::ObjectFile);
  if (!object)
    return object.takeError();
  auto shared = cpu::linkSharedObject(*object);
  if (!shared)
    return shared.takeError();
  if (llvm::Error error = cpu::checkUndefinedSymbols(StringRef(shared->data(), shared->size()),
                                                     cpu::runtimeSymbols()))
    return error;
  return shared;
}

LoadedModel::LoadedModel(llvm::ArrayRef<char> sharedObject) : file(memfd_create("model", 0)) {
  if (write(file, sharedObject.data(), sharedObject.size()) ==
      static_cast<ssize_t>(sharedObject.size()))
    handle = dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle)
    forward = reinterpret_cast<void (*)(void *const *)>(dlsym(handle, cpu::kForwardSymbol));
  if (!forward)
    error = dlerror();
}

LoadedModel::~LoadedModel() {
  if (handle)
    dlclose(handle);
  close(file);
}

std::vector<std::string> runnableTargets() {
  llvm::Expected<cpu::TargetDescription> native = cpu::describeTarget("native");
  std::vector<std::string> names;
  for (const char *name : {"native", "x86-64-v3", "x86-64-v4", "znver5", "sapphirerapids"}) {
    llvm::Expected<cpu::TargetDescription> target = cpu::describeTarget(name);
    // Only vector instructions decide here: none of the rest is used by the code of these tests.
    auto usable = [&](const std::string &feature) {
      return native->has(feature) || !StringRef(feature).starts_with("avx");
    };
    if (native && target && llvm::all_of(target->features, usable))
      names.push_back(name);
  }
  return names;
}

} // namespace mica::test
