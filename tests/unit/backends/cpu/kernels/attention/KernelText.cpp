//===- KernelText.cpp - generated kernels for CompiledModule.h ------------===//

#include "tests/unit/backends/cpu/kernels/attention/KernelText.h"

#include "backends/cpu/lowering/Passes.h"
#include "backends/cpu/lowering/Pipeline.h"
#include "ir/Exec/Exec.h"
#include "ir/Mica/Mica.h"

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;

namespace mica::test {

std::unique_ptr<MLIRContext> makeKernelContext() {
  DialectRegistry registry;
  registerAllDialects(registry);
  registerAllExtensions(registry);
  registry.insert<MicaDialect, exec::ExecDialect, cpu::CpuDialect>();
  exec::registerBufferization(registry);
  return std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
}

llvm::Expected<Loops> lowerToLoops(StringRef kernels, const cpu::TargetDescription &target) {
  std::unique_ptr<MLIRContext> context = makeKernelContext();
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(kernels, context.get());
  if (!module)
    return llvm::createStringError("the text is no module");
  cpu::setTarget(*module, target);
  PassManager passes(context.get());
  cpu::buildLoopsPipeline(passes);
  if (failed(passes.run(*module)))
    return llvm::createStringError("the passes to stage `loops` fail");
  auto number = [&](StringRef name) {
    return (*module)->getAttrOfType<IntegerAttr>(name).getInt();
  };
  Loops loops{{}, number(cpu::kScratchPerRowAttr), number(cpu::kScratchFixedAttr)};
  llvm::raw_string_ostream(loops.text) << *module;
  return loops;
}

} // namespace mica::test
