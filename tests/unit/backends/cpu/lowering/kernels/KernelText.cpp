//===- KernelText.cpp - generated kernels for CompiledModule.h ---------------===//

#include "tests/unit/backends/cpu/lowering/kernels/KernelText.h"

#include "backends/cpu/lowering/Passes.h"
#include "ir/Exec/Exec.h"
#include "ir/Mica/Mica.h"

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;

namespace mica::test {

cpu::KernelTarget kernelTargetOf(const cpu::TargetDescription &target) {
  return {target.avx512Bf16, target.avx512Vnni, target.vectorBits == 512, target.fastBf16Dot};
}

std::unique_ptr<MLIRContext> makeKernelContext() {
  DialectRegistry registry;
  registerAllDialects(registry);
  registerAllExtensions(registry);
  registry.insert<MicaDialect, exec::ExecDialect>();
  exec::registerBufferization(registry);
  return std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
}

llvm::Expected<Loops> lowerToLoops(StringRef kernels, const cpu::TargetDescription &target) {
  std::unique_ptr<MLIRContext> context = makeKernelContext();
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(kernels, context.get());
  if (!module)
    return llvm::createStringError("the text is no module");
  cpu::KernelTarget flags = kernelTargetOf(target);
  PassManager passes(context.get());
  cpu::buildLoopsPipeline(passes, {flags.bf16Dot, flags.int8Dot, flags.wide, flags.fastBf16Dot});
  if (failed(passes.run(*module)))
    return llvm::createStringError("the passes to stage `loops` fail");
  auto number = [&](StringRef name) {
    return (*module)->getAttrOfType<IntegerAttr>(name).getInt();
  };
  Loops loops{{}, number("mica.scratch_per_row"), number("mica.scratch_fixed")};
  llvm::raw_string_ostream(loops.text) << *module;
  return loops;
}

} // namespace mica::test
